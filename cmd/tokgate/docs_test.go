package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/internal/studies/runner"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/formats"
)

var update = flag.Bool("update", false, "rewrite the generated parts of the documentation")

// The part of a document between <!-- name --> and <!-- /name --> is generated from
// the code.
func TestDocsAreCurrent(t *testing.T) {
	for _, doc := range []struct{ file, name, want string }{
		{"metrics.md", "definitions", metricTable()},
		{"engines.md", "fields", engineTable()},
		{"engines.md", "metrics", nameTable()},
		{"engines.md", "launch", launchTable()},
		{"servers.md", "facts", factTable()},
		{"reports.md", "formats", formatTable()},
		{"ci.md", "action", actionTable(t)},
	} {
		t.Run(doc.file+" "+doc.name, func(t *testing.T) {
			path := filepath.Join("..", "..", "docs", doc.file)
			src, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			begin, end := fmt.Sprintf("<!-- %s -->\n", doc.name), fmt.Sprintf("<!-- /%s -->", doc.name)
			head, rest, ok := strings.Cut(string(src), begin)
			got, tail, ok2 := strings.Cut(rest, end)
			if !ok || !ok2 {
				t.Fatalf("%s has no part %q", path, doc.name)
			}
			if got == doc.want {
				return
			}
			if *update {
				if err := os.WriteFile(path, []byte(head+begin+doc.want+end+tail), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s is not current; `make golden` rewrites it (-want +got):\n%s", path, cmp.Diff(doc.want, got))
		})
	}
}

// nameTable returns a table of tokgate's metrics. For each engine, it has the names of the series
// that the metric is read from.
func nameTable() string {
	engines := engine.Names(engine.Engine.Known)
	var ours []string
	cells := map[string]map[string][]string{}
	for _, e := range engine.All {
		for _, s := range e.Series {
			if cells[s.Ours] == nil {
				cells[s.Ours] = map[string][]string{}
				ours = append(ours, s.Ours)
			}
			name := s.Name
			if s.Value != "" {
				name += fmt.Sprintf("{%s=%q}", s.Label, s.Value)
			}
			if s.Kind == engine.Sum {
				name += "_sum"
			}
			cell := code(name)
			if s.Old != "" {
				cell += " (" + s.Old + ")"
			}
			cells[s.Ours][e.Name] = append(cells[s.Ours][e.Name], cell)
		}
	}
	var b strings.Builder
	b.WriteString("| | kind | " + "`" + strings.Join(engines, "` | `") + "` |\n|---|---|" + strings.Repeat("---|", len(engines)) + "\n")
	for _, name := range ours {
		kind := "counter"
		if def, ok := metric.Lookup(name); ok && def.Scope == metric.Counted {
			kind = "histogram"
		} else if ok && name != metric.Preempted {
			kind = "gauge"
		}
		fmt.Fprintf(&b, "| `%s` | %s |", name, kind)
		for _, e := range engines {
			cell := strings.Join(cells[name][e], ", ")
			if cell == "" {
				cell = "–"
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func factTable() string {
	var b strings.Builder
	b.WriteString("| key | what it is | follows |\n|---|---|---|\n")
	for _, f := range metric.Facts {
		follows := strings.Join(f.Follows, ", ")
		if f.Varies {
			follows = "*varies*"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Key, f.Doc, follows)
	}
	return b.String()
}

func formatTable() string {
	var b strings.Builder
	b.WriteString("| file | flag | for | what it is |\n|---|---|---|---|\n")
	for _, f := range formats.All {
		file := ""
		if f.File != "" {
			file = " `" + f.File + "`"
		}
		fmt.Fprintf(&b, "|%s | `--%s` | %s | %s |\n", file, f.Flag, f.For, f.Doc)
	}
	return b.String()
}

// actionTable lists the inputs and outputs of the action, in the order of action.yml.
func actionTable(t *testing.T) string {
	t.Helper()
	src := read(t, filepath.Join(repository, "action.yml"))
	v, err := runner.DecodeYAML([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, part := range []struct{ key, head string }{
		{"inputs", "| input | what | default |\n|---|---|---|\n"},
		{"outputs", "\n| output | what |\n|---|---|\n"},
	} {
		_, rest, _ := strings.Cut(src, "\n"+part.key+":\n")
		settings := v.(map[string]any)[part.key].(map[string]any)
		names := slices.SortedFunc(maps.Keys(settings), func(a, b string) int {
			return strings.Index(rest, "  "+a+":\n") - strings.Index(rest, "  "+b+":\n")
		})
		b.WriteString(part.head)
		for _, name := range names {
			setting := settings[name].(map[string]any)
			fmt.Fprintf(&b, "| `%s` | %s |", name, setting["description"])
			if part.key == "inputs" {
				def, _ := setting["default"].(string)
				fmt.Fprintf(&b, " %s |", code(def))
			}
			b.WriteString("\n")
		}
	}
	return strings.ReplaceAll(b.String(), "|  |\n", "| |\n")
}

// Each command that writes reports has a flag for each format.
func TestFormatsOfCommands(t *testing.T) {
	for _, c := range (&app{}).root().Commands() {
		switch c.Name() {
		case "run", "judge", "compare", "report":
			for _, f := range formats.All {
				if c.Flags().Lookup(f.Flag) == nil {
					t.Errorf("%s has no --%s", c.Name(), f.Flag)
				}
			}
		}
	}
}

func metricTable() string {
	var b strings.Builder
	b.WriteString("| name | definition | unit, better | no value when |\n|---|---|---|---|\n")
	better := map[metric.Direction]string{metric.LowerIsBetter: ", lower", metric.HigherIsBetter: ", higher"}
	for _, d := range slices.Concat(metric.Defs, metric.OfPairs) {
		doc := d.Doc
		if d.Later {
			doc = "*Later.* " + doc
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s%s | %s |\n", d.Name, doc, d.Unit, better[d.Better], d.NoValue)
	}
	return b.String()
}
