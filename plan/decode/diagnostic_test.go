package decode

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
)

// fixtureOptions reads the options of a fixture from its leading comments. A comment has one of
// these forms:
//
//	# VAR: name=value     # VARFILE: path     # ENV: NAME=value     # RUN
func fixtureOptions(t *testing.T, path string) Options {
	t.Helper()
	src := must.Get(os.ReadFile(path))(t)
	opts := Options{Path: path, Root: "testdata", Drafts: func(profile string) bool { return profile == "drafting" }}
	for line := range strings.Lines(string(src)) {
		line = strings.TrimSpace(line)
		key, value, _ := strings.Cut(strings.TrimPrefix(line, "# "), ": ")
		switch key {
		case "VAR":
			opts.Inputs = append(opts.Inputs, Input{Var: value})
		case "VARFILE":
			opts.Inputs = append(opts.Inputs, Input{File: value})
		case "ENV":
			opts.Environ = append(opts.Environ, value)
		case "RUN":
			opts.RequireEnv = true
		}
		if !strings.HasPrefix(line, "#") {
			break
		}
	}
	return opts
}

func fixtures(t *testing.T, patterns ...string) []string {
	t.Helper()
	var all []string
	for _, p := range patterns {
		paths := must.Get(filepath.Glob(p))(t)
		all = append(all, paths...)
	}
	must.Need(t, len(all) != 0, "no fixtures")
	return all
}

var markerPattern = regexp.MustCompile(`# (ERROR|WARNING): ([^#"]*)`)

// badPlan loads a fixture, only once for all tests.
var badPlan = func() func(t *testing.T, path string) (*plan.Plan, hcl.Diagnostics) {
	type loaded struct {
		plan  *plan.Plan
		diags hcl.Diagnostics
	}
	cache := map[string]loaded{}
	return func(t *testing.T, path string) (*plan.Plan, hcl.Diagnostics) {
		l, ok := cache[path]
		if !ok {
			l.plan, l.diags = File(fixtureOptions(t, path))
			cache[path] = l
		}
		return l.plan, l.diags
	}
}()

// markers lists the diagnostics that comments in the fixtures expect, as "file:line SEVERITY:
// summary".
func markers(files map[string]*hcl.File) []string {
	var want []string
	for name, f := range files {
		for i, line := range strings.Split(string(f.Bytes), "\n") {
			for _, m := range markerPattern.FindAllStringSubmatch(line, -1) {
				want = append(want, fmt.Sprintf("%s:%d %s: %s", name, i+1, m[1], strings.TrimSpace(m[2])))
			}
		}
	}
	slices.Sort(want)
	return want
}

func found(diags hcl.Diagnostics) []string {
	var got []string
	for _, d := range diags {
		severity := "ERROR"
		if d.Severity == hcl.DiagWarning {
			severity = "WARNING"
		}
		if d.Subject == nil {
			got = append(got, "command line "+severity+": "+d.Summary)
			continue
		}
		got = append(got, fmt.Sprintf("%s:%d %s: %s", d.Subject.Filename, d.Subject.Start.Line, severity, d.Summary))
	}
	slices.Sort(got)
	return got
}

// TestBadPlans loads every fixture and compares each diagnostic's line and
// summary with the markers in the source.
func TestBadPlans(t *testing.T) { badPlans(t, "testdata/bad/*.hcl", "testdata/bad/*.json") }

// These fixtures take seconds with the race detector. So they have a test of their own, and the
// fuzz tests do not use them.
func TestLongBadPlans(t *testing.T) { badPlans(t, "testdata/bad/long/*.hcl") }

func badPlans(t *testing.T, patterns ...string) {
	for _, path := range fixtures(t, patterns...) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			p, diags := badPlan(t, path)
			want := append(markers(p.Files), commandLineMarkers[filepath.Base(path)]...)
			slices.Sort(want)
			if diff := gocmp.Diff(want, found(diags)); diff != "" {
				var text strings.Builder
				err := WriteDiagnostics(&text, p.Files, diags, 0, false)
				must.Hold(t, err == nil, "%v", err)
				t.Errorf("diagnostics (-marked +got):\n%s\n%s", diff, text.String())
			}
			must.Hold(t, slices.IsSortedFunc(diags, byPlace), "diagnostics are not in the order of the source")
			for _, d := range diags {
				must.Hold(t, d.Detail != "" && !strings.HasSuffix(d.Summary, "."), "%q: a diagnostic has a detail, and a summary without a full stop", d.Summary)
			}
		})
	}
}

// commandLineMarkers lists the expected diagnostics that belong to no line of the fixture.
var commandLineMarkers = map[string][]string{
	"variables.hcl": {
		"command line ERROR: Value for undeclared variable", // --var nmber=3
		"command line ERROR: Invalid value for variable",    // --var nothing
		"command line ERROR: Invalid variable file",         // absent.hcl
		"<--var list>:1 ERROR: Missing expression",
	},
}

// TestEverySummaryHasAFixture checks that some fixture produces each summary in diagnostic.go. So
// the golden files show the text of every diagnostic.
func TestEverySummaryHasAFixture(t *testing.T) {
	f := must.Get(parser.ParseFile(token.NewFileSet(), "diagnostic.go", nil, 0))(t)
	provoked := map[string]bool{}
	for _, path := range fixtures(t, "testdata/bad/*.hcl", "testdata/bad/*.json") {
		_, diags := badPlan(t, path)
		for _, d := range diags {
			provoked[d.Summary] = true
		}
	}
	exempt := map[string]string{
		sumInternal: "no input is known that provokes it",
		sumTooLarge: "TestLongHostileSources makes the files it needs",

		sumTooManyInstances: "TestLongBadPlans provokes it",
	}
	summaries := 0
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "sum") {
			return true
		}
		summaries++
		text := must.Get(strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value))(t)
		if !provoked[text] && exempt[text] == "" {
			t.Errorf("no fixture provokes %s (%q)", spec.Names[0].Name, text)
		}
		return true
	})
	must.Hold(t, summaries != 0, "found no summary: did the constants move?")
}

func TestDiagnosticsForMachines(t *testing.T) {
	src := "server \"s\" {\n  endpoint { url = \"ftp://x\" }\n}\n"
	p, diags := File(Options{Path: "test.hcl", Source: []byte(src)})
	got := Diagnostics(p.Files, diags)
	want := []Diagnostic{
		{
			Severity: "error", Summary: sumURL,
			Detail:  `The URL must start with http:// or https://, such as "http://127.0.0.1:8000".`,
			Range:   &Range{File: "test.hcl", Start: Pos{2, 20, 32}, End: Pos{2, 29, 41}},
			Snippet: `  endpoint { url = "ftp://x" }`,
		},
		{
			Severity: "error", Summary: sumRequiresNothing,
			Detail:  "This plan would always pass, because no threshold can fail. Add an sla block, or write gate { measure_only = true }.",
			Range:   &Range{File: "test.hcl", Start: Pos{1, 1, 0}, End: Pos{1, 1, 0}},
			Snippet: "server \"s\" {",
		},
	}
	must.Same(t, "", want, got)
	if got := Diagnostics(nil, nil); got == nil || len(got) != 0 {
		t.Errorf("no diagnostics are %v, not an empty list", got)
	}
}

// A plan with thousands of mistakes gets a bounded number of diagnostics, in a short time.
func TestLongDiagnosticsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("locals {\n")
	for i := range 2_000 {
		fmt.Fprintf(&b, "  a%d = local.b%d\n", i, i)
	}
	b.WriteString("}\n")
	_, diags := File(Options{Path: "test.hcl", Source: []byte(b.String())})
	must.Hold(t, len(diags) == maxDiagnostics, "%d diagnostics", len(diags))
}

// A diagnostic that another mistake causes comes after the diagnostic of the mistake.
func TestMistakesBeforeTheirConsequences(t *testing.T) {
	src := "server \"s\" {\n  simulator {}\n}\nworklod \"w\" {\n}\n"
	_, diags := File(Options{Path: "test.hcl", Source: []byte(src)})
	if len(diags) == 0 || diags[0].Summary != "Unsupported block type" {
		t.Errorf("the first diagnostic is %v, want the misspelt block before %q", diags, sumRequiresNothing)
	}
}

// A plan may bound a metric of the preset at one level. At all other levels the preset's bound
// still holds.
func TestPresetBoundsEachLevel(t *testing.T) {
	src := `
server "s" {
  simulator {}
}
workload "w" {
  preset = "chatbot"
  load {
    concurrency = [1, 4]
  }
  sla {
    at   = 4
    ttft = "p95 < 1s"
  }
}
`
	p, diags := File(Options{Path: "test.hcl", Source: []byte(src)})
	must.Need(t, !diags.HasErrors(), "%v", diags)
	got := map[string][]string{}
	for _, sla := range p.Workloads[0].SLAs {
		for _, threshold := range sla.Thresholds {
			got[threshold.Text] = sla.At
		}
	}
	want := map[string][]string{"p95 < 1s": {"4"}, "mean <= 3s": {"1"}}
	must.Same(t, "", want, got)
}

func TestChoices(t *testing.T) {
	for _, row := range []struct {
		names []string
		want  string
	}{
		{nil, "none"},
		{[]string{"a"}, "a"},
		{[]string{"a", "b"}, "a or b"},
		{[]string{"a", "b", "c"}, "a, b or c"},
	} {
		must.Same(t, fmt.Sprintf("choices(%q)", row.names), row.want, choices(row.names))
	}
}

// A diagnostic about a very long line shows only a part of it, in text and in JSON. It still has
// the number of the line and names the mistake.
func TestLongLinesAreCut(t *testing.T) {
	for _, row := range []struct{ name, src string }{
		{"a long line", "\n\nlocals { a = [" + strings.Repeat("1,", 30_000) + " nonsense, " + strings.Repeat("1,", 30_000) + "] }\n"},
		{"a long token", "\n\ngate { " + strings.Repeat("x", 100_000) + " = nonsense }\n"},
		{"a long subject", "\n\nserver nonsense " + strings.Repeat("{ a = 1\n", 50) + strings.Repeat("x\n", 20_000)},
		{"a long value", "\nlocals {\n  a = \"" + strings.Repeat("n", 100_000) + "\"\n  nonsense = tonumber(local.a)\n}\n"},
	} {
		p, diags := File(Options{Path: "p.hcl", Source: []byte(row.src)})
		var text strings.Builder
		err := WriteDiagnostics(&text, p.Files, diags, 0, false)
		must.Hold(t, err == nil, "%v", err)
		if len(diags) == 0 || text.Len() > 10_000*len(diags) || !strings.Contains(text.String(), "nonsense") && row.name != "a long token" {
			t.Errorf("%s: %d diagnostics in %d bytes: %.500s", row.name, len(diags), text.Len(), text.String())
		}
		must.Hold(t, strings.Contains(text.String(), "p.hcl line "), "%s: no line is named: %.500s", row.name, text.String())
		for _, d := range Diagnostics(p.Files, diags) {
			must.Hold(t, len(d.Snippet)+len(d.Detail) <= 10_000, "%s: %d bytes for a machine", row.name, len(d.Snippet)+len(d.Detail))
		}
	}
}

// Diagnostics of the same kind at the same place are merged. Diagnostics of different kinds, at
// different places, or without a place stay separate.
func TestGather(t *testing.T) {
	at := func(line int) *hcl.Range { return &hcl.Range{Filename: "p.hcl", Start: hcl.Pos{Line: line}} }
	got := Gather(hcl.Diagnostics{
		{Summary: "a", Detail: "Of x.", Subject: at(3)}, {Summary: "b", Detail: "Of x.", Subject: at(3)}, {Summary: "a", Detail: "Of y.", Subject: at(3)},
		{Summary: "a", Detail: "Of x.", Subject: at(4)}, {Summary: "a", Detail: "Of z.", Subject: at(3)}, {Summary: "a", Detail: "nowhere"}, {Summary: "a", Detail: "nowhere"},
		{Summary: "b", Detail: "Of y.", Subject: at(3)},
	})
	var said []string
	for _, d := range got {
		said = append(said, d.Summary+": "+d.Detail)
	}
	want := []string{"a: Of x. The same is true 2 more times at this place.", "b: Of x. The same is true once more at this place.", "a: Of x.", "a: nowhere", "a: nowhere"}
	must.Same(t, "", want, said)
}
