package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/plan"
)

// engineTable is made of the very bodies that are sent: a row for each field, a
// column for each engine.
func engineTable() string {
	chat := client.Request{API: "chat", Model: "m", Prompt: client.Prompt{Text: "p"}, Output: 7}
	text := chat
	text.API = "completions"
	natural := chat
	natural.Natural = true
	requests := []struct {
		mark string
		r    client.Request
	}{{"chat", chat}, {"completions", text}, {"natural", natural}}

	engines := each(client.DialectOf)
	sent := map[string][]string{} // field → for each engine, where
	var order []string
	for i, d := range engines {
		for _, q := range requests {
			body, err := d.Body(&q.r)
			if err != nil {
				panic(err)
			}
			for _, f := range topFields(body) {
				if f == "model" || f == "messages" || f == "prompt" || f == "stream" {
					continue // all of them
				}
				if sent[f] == nil {
					sent[f] = make([]string, len(engines))
					order = append(order, f)
				}
				sent[f][i] = strings.TrimPrefix(sent[f][i]+", "+q.mark, ", ")
			}
		}
	}
	var b strings.Builder
	row := func(name string, cell func(client.Dialect) string) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, d := range engines {
			fmt.Fprintf(&b, " %s |", cell(d))
		}
		b.WriteString("\n")
	}
	row("field", func(d client.Dialect) string { return "`" + d.Name + "`" })
	b.WriteString("|---|" + strings.Repeat("---|", len(engines)) + "\n")
	for _, f := range order {
		fmt.Fprintf(&b, "| `%s` |", f)
		for _, where := range sent[f] {
			switch where {
			case "":
				where = "–"
			case "chat, completions, natural":
				where = "always"
			case "chat, completions":
				where = "exact lengths"
			case "chat, natural":
				where = "chat"
			}
			fmt.Fprintf(&b, " %s |", where)
		}
		b.WriteString("\n")
	}
	yes := map[bool]string{true: "yes", false: "–"}
	row("exact output length", func(d client.Dialect) string { return yes[d.Exact()] })
	row("tokens in the first chunk are told", func(d client.Dialect) string { return yes[d.ContinuousUsage || d.Timings] })
	row("prompts of token ids", func(d client.Dialect) string { return yes[d.PromptIDs] })
	row("prompts are sized by", func(d client.Dialect) string { return d.Tokenizer.String() })
	row("connections", func(d client.Dialect) string {
		if d.FreshConns {
			return "one for each request"
		}
		return "kept alive"
	})
	return b.String()
}

// each asks for every engine of the language, in its order.
func each[T any](of func(engine string) T) []T {
	var out []T
	for _, name := range plan.Engines {
		out = append(out, of(name))
	}
	return out
}

// launchTable is made of the words that would start each engine.
func launchTable() string {
	engines := each(plan.EngineOf)
	var b strings.Builder
	row := func(name string, cell func(plan.Engine) string) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, e := range engines {
			c := cell(e)
			if c == "" {
				c = "–"
			}
			fmt.Fprintf(&b, " %s |", c)
		}
		b.WriteString("\n")
	}
	code := func(s string) string {
		if s == "" {
			return ""
		}
		return "`" + s + "`"
	}
	row("", func(e plan.Engine) string { return code(e.Name) })
	b.WriteString("|---|" + strings.Repeat("---|", len(engines)) + "\n")
	row("a process runs", func(e plan.Engine) string {
		s := &plan.Server{Engine: e.Name, Model: "MODEL", Process: &plan.Process{}}
		if e.Name == "llama.cpp" {
			s.Model = "MODEL.gguf"
		}
		return code(strings.Join(s.Launch("127.0.0.1", "PORT"), " "))
	})
	row("entrypoint of a container", func(e plan.Engine) string {
		s := &plan.Server{Engine: e.Name, Container: &plan.Container{}}
		if entry := s.Entrypoint(); entry != "" {
			return code(entry)
		}
		return "the image's"
	})
	row("it is given", func(e plan.Engine) string {
		s := &plan.Server{Engine: e.Name, Model: "MODEL", Container: &plan.Container{}}
		return code(strings.Join(s.Launch("0.0.0.0", fmt.Sprint(e.Port)), " "))
	})
	row("`/dev/shm` of a container", func(e plan.Engine) string { return code(e.SharedMemory) })
	row("set in its environment", func(e plan.Engine) string {
		var list []string
		for _, name := range slices.Sorted(maps.Keys(e.Env)) {
			list = append(list, code(name+"="+e.Env[name]))
		}
		return strings.Join(list, ", ")
	})
	row("health", func(e plan.Engine) string { return code(e.Health) })
	row("version", func(e plan.Engine) string { return code(e.Version) })
	row("tokenizer", func(e plan.Engine) string { return code(e.Tokenize) })
	row("caches are emptied by", func(e plan.Engine) string { return code(e.Reset) })
	row("requests at a time are bounded by", func(e plan.Engine) string {
		if len(e.Admission) == 0 {
			return ""
		}
		return code("--" + e.Admission[0])
	})
	return b.String()
}

// topFields are the names of an object's members, stream_options with its own,
// in order.
func topFields(body []byte) []string {
	var names []string
	d := json.NewDecoder(strings.NewReader(string(body)))
	_, _ = d.Token()
	for d.More() {
		name, _ := d.Token()
		var value json.RawMessage
		_ = d.Decode(&value)
		if name == "stream_options" {
			for _, inner := range topFields(value) {
				names = append(names, "stream_options."+inner)
			}
			continue
		}
		names = append(names, name.(string))
	}
	return names
}

// Every engine of the language has a dialect and a row of its own.
func TestEngines(t *testing.T) {
	for _, name := range plan.Engines {
		if d, e := client.DialectOf(name), plan.EngineOf(name); d.Name != name || e.Name != name {
			t.Errorf("%s: the dialect is %q, the engine %q", name, d.Name, e.Name)
		}
	}
}
