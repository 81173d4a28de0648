package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/internal/must"
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
		{"metrics.md", "series", nameTable()},
		{"engines.md", "launch", launchTable()},
		{"servers.md", "facts", factTable()},
		{"reports.md", "formats", formatTable()},
	} {
		t.Run(doc.file+" "+doc.name, func(t *testing.T) {
			currentDoc(t, doc.file, doc.name, doc.want)
		})
	}
}

func currentDoc(t *testing.T, file, name, want string) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", file)
	src := must.Get(os.ReadFile(path))(t)
	begin, end := fmt.Sprintf("<!-- %s -->\n", name), fmt.Sprintf("<!-- /%s -->", name)
	head, rest, ok := strings.Cut(string(src), begin)
	got, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no part %q", path, name)
	}
	if got == want {
		return
	}
	if *update {
		must.Do(t, os.WriteFile(path, []byte(head+begin+want+end+tail), 0o644))
		return
	}
	t.Errorf("%s is not current; `make golden` rewrites it (-want +got):\n%s", path, cmp.Diff(want, got))
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
	b.WriteString("| | " + "`" + strings.Join(engines, "` | `") + "` |\n|---|" + strings.Repeat("---|", len(engines)) + "\n")
	for _, name := range ours {
		fmt.Fprintf(&b, "| `%s` |", name)
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

// factTable lists the facts of a fingerprint. The longest list of settings is written once, below it.
func factTable() string {
	var b strings.Builder
	longest := slices.MaxFunc(metric.Facts, func(a, b metric.Fact) int { return len(a.Follows) - len(b.Follows) }).Follows
	b.WriteString("| key | what it is | follows |\n|---|---|---|\n")
	for _, f := range metric.Facts {
		follows := strings.Join(f.Follows, ", ")
		if f.Varies {
			follows = "*varies*"
		} else if slices.Equal(f.Follows, longest) {
			follows = "*start*"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Key, f.Doc, follows)
	}
	fmt.Fprintf(&b, "\n*start*: how it is started, by %s.\n", strings.Join(longest, ", "))
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
		fmt.Fprintf(&b, "| `%s` | %s | %s%s | %s |\n", d.Name, d.Doc, d.Unit, better[d.Better], d.NoValue)
	}
	return b.String()
}
