package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/plan"
)

// engineTable returns a table made from real request bodies, with a row for each field and a column
// for each engine.
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

	sent := map[string][]string{} // rows of the table by request field; one cell for each engine
	var order []string
	for i, e := range engine.All {
		for _, q := range requests {
			body, err := q.r.Body(e.Dialect)
			if err != nil {
				panic(err)
			}
			for _, f := range topFields(body) {
				if f == "model" || f == "messages" || f == "prompt" || f == "stream" {
					continue // every engine gets these fields
				}
				if sent[f] == nil {
					sent[f] = make([]string, len(engine.All))
					order = append(order, f)
				}
				sent[f][i] = strings.TrimPrefix(sent[f][i]+", "+q.mark, ", ")
			}
		}
	}
	var b strings.Builder
	row := func(name string, cell func(engine.Engine) string) { engineRow(&b, name, cell) }
	row("field", func(e engine.Engine) string { return "`" + e.Name + "`" })
	b.WriteString("|---|" + strings.Repeat("---|", len(engine.All)) + "\n")
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
	row("exact output length", func(e engine.Engine) string {
		out := yes[e.Dialect.IgnoreEOS]
		for _, api := range e.Dialect.Natural {
			out += ", not by " + code(string(api))
		}
		return out
	})
	row("tokens in the first chunk are told", func(e engine.Engine) string { return yes[e.Dialect.ContinuousUsage || e.Dialect.Timings] })
	row("prompts of token ids", func(e engine.Engine) string { return yes[e.Dialect.PromptIDs] })
	row("prompts are sized by", func(e engine.Engine) string {
		return map[engine.Tokenizer]string{
			engine.NoTokenizer:     "the usage of small requests",
			engine.VLLMTokenizer:   code(e.Pages.Tokenize) + ", chat template included",
			engine.SGLangTokenizer: code(e.Pages.Tokenize) + "; the chat template's part is learnt from usage",
			engine.LlamaTokenizer:  code(e.Pages.Tokenize) + " after " + code(e.Pages.Template),
			engine.AnyTokenizer:    "vLLM's form, then llama.cpp's; where neither answers, the usage of small requests",
		}[e.Dialect.Tokenizer]
	})
	row("a connection for each request", func(e engine.Engine) string { return yes[e.Dialect.FreshConns] })
	return b.String()
}

func engineRow(b *strings.Builder, name string, cell func(engine.Engine) string) {
	fmt.Fprintf(b, "| %s |", name)
	for _, e := range engine.All {
		fmt.Fprintf(b, " %s |", cmp.Or(cell(e), "–"))
	}
	b.WriteString("\n")
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func codes(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, code(w))
	}
	return strings.Join(out, ", ")
}

// launchTable returns a table for the docs: the command line that starts each engine.
func launchTable() string {
	var b strings.Builder
	row := func(name string, cell func(engine.Engine) string) { engineRow(&b, name, cell) }
	row("", func(e engine.Engine) string { return code(e.Name) })
	b.WriteString("|---|" + strings.Repeat("---|", len(engine.All)) + "\n")
	row("a process runs", func(e engine.Engine) string {
		s := &plan.Server{Engine: e.Name, Model: "MODEL" + e.Launch.File, Process: &plan.Process{}}
		return code(strings.Join(s.Launch("127.0.0.1", "PORT"), " "))
	})
	row("entrypoint of a container", func(e engine.Engine) string {
		s := &plan.Server{Engine: e.Name, Container: &plan.Container{}}
		if entry := s.Entrypoint(); entry != "" {
			return code(entry)
		}
		return "the image's"
	})
	row("it is given", func(e engine.Engine) string {
		s := &plan.Server{Engine: e.Name, Model: "MODEL", Container: &plan.Container{}}
		return code(strings.Join(s.Launch("0.0.0.0", fmt.Sprint(e.Launch.Port)), " "))
	})
	row("`/dev/shm` of a container", func(e engine.Engine) string { return code(e.Launch.SharedMemory) })
	row("set in its environment", func(e engine.Engine) string {
		var list []string
		for _, name := range slices.Sorted(maps.Keys(e.Launch.Env)) {
			list = append(list, name+"="+e.Launch.Env[name])
		}
		return codes(list)
	})
	row("health", func(e engine.Engine) string { return code(e.Pages.Health) })
	row("version", func(e engine.Engine) string { return codes(e.Pages.Version) })
	row("tokenizer", func(e engine.Engine) string { return code(e.Pages.Tokenize) })
	row("metrics", func(e engine.Engine) string { return code(e.Pages.Metrics) })
	row("caches are emptied by", func(e engine.Engine) string { return code(e.Pages.Reset) })
	first := func(flags []string) string {
		if len(flags) == 0 {
			return ""
		}
		return code("--" + flags[0])
	}
	row("requests at a time are bounded by", func(e engine.Engine) string { return first(e.Flags.Admission) })
	row("tokens of a request are bounded by", func(e engine.Engine) string { return first(e.Flags.Context) })
	row("drafts are asked for by", func(e engine.Engine) string { return first(e.Flags.Drafts) })
	return b.String()
}

// topFields returns the names of a JSON object's members in order. For the member stream_options it
// returns the names inside it.
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
