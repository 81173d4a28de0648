package decode

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

func addSeeds(f *testing.F) {
	for _, pattern := range []string{"testdata/ok/*.hcl", "testdata/ok/*.json", "testdata/bad/*.hcl", "testdata/bad/*.json"} {
		paths := must.Get(filepath.Glob(pattern))(f)
		for _, path := range paths {
			src := must.Get(os.ReadFile(path))(f)
			f.Add(src, isJSON(path))
		}
	}
	f.Add([]byte("a = \"${\"${1}\"}\""), false)
	f.Add([]byte("locals {\n x = %{ if true }a%{ endif }\n}"), false)
	f.Add([]byte("\xef\xbb\xbflocals {}\r\n"), false)
	f.Add([]byte("{\"locals\":{\"x\":\"${[for x in [1]: x]}\"}}"), true)
}

func fuzzName(json bool) string {
	if json {
		return "fuzz.hcl.json"
	}
	return "fuzz.hcl"
}

// FuzzLoad checks that every text gives a plan or diagnostics. Each diagnostic names a place in the
// plan. Its text can be printed on a terminal, and it is not an internal error.
func FuzzLoad(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, src []byte, json bool) {
		if len(src) > 1<<16 {
			t.Skip()
		}
		opts := Options{
			Path: fuzzName(json), Source: src, Root: "/nonexistent",
			Environ:  []string{"A=b", "TOKGATE_VAR_tokens=12", "TOKGATE_VAR_x=[1"},
			ReadFile: func(string) ([]byte, error) { return nil, os.ErrNotExist },
		}
		p, diags := File(opts)
		if p == nil {
			t.Fatal("no plan")
		}
		for _, d := range diags {
			must.Hold(t, d.Summary != sumInternal, "internal error: %s", d.Detail)
		}
		var text strings.Builder
		if err := WriteDiagnostics(&text, p.Files, diags, 78, true); err != nil {
			t.Error(err)
		}
		Diagnostics(p.Files, diags)
		if !diags.HasErrors() {
			checkPlanInvariants(t, p)
		}
	})
}

// FuzzParts checks that a simple source is within the limits, and that its parts make the tree that HCL's
// parser makes of the whole.
func FuzzParts(f *testing.F) {
	addSeeds(f)
	filler := strings.Repeat("# comment\n", leastPart/10)
	for _, src := range []string{
		"a {\n}\nb {\n}\n", "a {\n}\nb = 1\n", "a {\n}\n}\n", "x = <<E\n{\n}\nE\nb {}\n", "/*\n}\n*/ a {\n}\n", "a {\n}\n\ufeffb {}\n", "x = \"${[\n}\n]}\"\n",
	} {
		f.Add([]byte(filler+src), false)
		f.Add([]byte(src+filler), false)
	}
	f.Add([]byte("x = 1e5"), false)
	f.Fuzz(func(t *testing.T, src []byte, _ bool) {
		tokens, _ := hclsyntax.LexConfig(src, "fuzz.hcl", hcl.InitialPos)
		diags := checkTokens(tokens)
		must.Hold(t, !simple(src) || !diags.HasErrors(), "simple: %v", diags)
		parts := parseParts(src, "fuzz.hcl")
		if parts == nil {
			return
		}
		must.Need(t, !diags.HasErrors(), "parsed in parts: %v", diags)
		whole, diags := hclsyntax.ParseConfig(src, "fuzz.hcl", hcl.InitialPos)
		must.Hold(t, !diags.HasErrors() && reflect.DeepEqual(parts, whole), "the parts make another tree: %v", diags)
	})
}

// FuzzVarFile loads a plan with any content of its variable file, or of a file that it reads. No
// content may cause an internal error.
func FuzzVarFile(f *testing.F) {
	f.Add([]byte("tokens = 64\nname = \"x\"\n"), false)
	f.Add([]byte(`{"tokens": 64, "name": ["x"]}`), true)
	f.Add([]byte("tokens = -1\nblock {}\n"), false)
	f.Add([]byte("tokens = \"${file(\"x\")}\"\n"), false)
	const src = `
variable "tokens" { type = number }
variable "name" { default = "x" }
locals { text = file("text") }
server "s" { endpoint { url = "http://127.0.0.1:1/${var.name}" } }
workload "w" {
  input_tokens  = var.tokens
  output_tokens = 8
  description   = local.text
  load { concurrency = 1 }
  sla { ttft = "p95 < 2s" }
}
`
	f.Fuzz(func(t *testing.T, values []byte, json bool) {
		if len(values) > 1<<16 {
			t.Skip()
		}
		name := "values.hcl"
		if json {
			name = "values.json"
		}
		p, diags := File(Options{
			Path: "fuzz.hcl", Source: []byte(src), Root: "/nonexistent", Inputs: []Input{{File: name}},
			ReadFile: func(string) ([]byte, error) { return values, nil },
		})
		for _, d := range diags {
			must.Hold(t, d.Summary != sumInternal, "internal error: %s", d.Detail)
		}
		if !diags.HasErrors() {
			checkPlanInvariants(t, p)
		}
	})
}

// FuzzFormat formats any text that can be parsed. The result must mean the same as the text.
func FuzzFormat(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, src []byte, json bool) {
		if len(src) > 1<<16 {
			t.Skip()
		}
		checkFormat(t, src, fuzzName(json))
	})
}

// checkPlanInvariants checks properties of every plan that loads without errors.
func checkPlanInvariants(t *testing.T, p *plan.Plan) {
	t.Helper()
	if p.Gate.Confidence <= 0.5 || p.Gate.Confidence >= 1 {
		t.Errorf("confidence %v", p.Gate.Confidence)
	}
	required := p.Gate.MeasureOnly || len(p.Asserts) > 0
	for _, c := range p.Compares {
		required = required || c.Answers != nil
	}
	for _, s := range p.Servers {
		targets := 0
		for _, is := range []bool{s.Endpoint != nil, s.Process != nil, s.Container != nil} {
			if is {
				targets++
			}
		}
		if targets > 1 || targets == 0 && s.Simulator == nil {
			t.Errorf("server %s has no or several targets", s.Address())
		}
		must.Hold(t, s.Ready.Timeout > 0, "server %s: ready timeout %v", s.Address(), s.Ready.Timeout)
	}
	for _, w := range p.Workloads {
		search := w.Capacity
		if w.Of != nil {
			search = w.Of.Capacity
		}
		if w.Mix == nil && (w.Input < 1 && w.Prompt.Dataset == nil || w.Output.Mean < 1) || w.Output.Jitter < 0 || w.Output.Jitter >= 1 || len(w.Servers) == 0 || len(w.Loads) == 0 && w.Capacity == nil {
			t.Errorf("workload %+v", w)
		}
		names := map[string]bool{}
		for _, l := range w.Loads {
			if len(l.Levels) == 0 || len(l.Seeds) == 0 || l.Timeout <= 0 {
				t.Errorf("load %+v", l)
			}
			for _, lv := range l.Levels {
				if names[lv.Name] || lv.Rounds < 1 || (lv.N < 1) != (lv.Rate > 0) {
					t.Errorf("level %+v", lv)
				}
				names[lv.Name] = true
				sum := 0
				for i := range lv.Rounds {
					n := lv.RoundRequests(i)
					if n < 1 && w.Of == nil || n < lv.N && l.Kind != metric.Users && w.Of == nil { // users come one after another
						t.Errorf("level %+v: round %d has %d requests", lv, i, n)
					}
					sum += n
				}
				if sum != lv.Requests {
					t.Errorf("level %+v: its rounds have %d requests", lv, sum)
				}
			}
		}
		if c := w.Capacity; c != nil {
			required = required || c.Require > 0
			if c.From < 1 || c.UpTo < c.From || c.Require != 0 && (c.Require < c.From || c.Require > c.UpTo) || c.Resolution < 1 || !(c.Relative >= 0 && c.Relative < 1) || !c.Bounded(w) {
				t.Errorf("capacity %+v", c)
			}
			if l := c.Load; l == nil || len(l.Seeds) == 0 || l.Timeout <= 0 || l.Kind != c.Over {
				t.Errorf("the load of capacity %+v", c)
			}
			for _, n := range []int{c.From, c.UpTo} {
				if l := c.Level(n); c.Over != metric.Users && (l.Rounds < 1 || l.Requests < 5*l.N || l.RoundRequests(l.Rounds-1) < l.N) {
					t.Errorf("probe %+v", l)
				}
			}
		}
		for _, s := range w.SLAs {
			required = required || s.Severity == plan.SeverityError && len(s.At) > 0
			if len(s.At) == 0 && !s.AtCapacity || s.AtCapacity && search == nil || len(s.Thresholds) == 0 {
				t.Errorf("sla %+v", s)
			}
			for _, at := range s.At {
				if !names[at] {
					t.Errorf("sla at %q, which is no level", at)
				}
			}
			for _, th := range s.Thresholds {
				if th.Range.Empty() || th.Limit < 0 || th.Op == "" && th.Stat.String() != "every" {
					t.Errorf("threshold %+v", th)
				}
			}
		}
	}
	if !required {
		t.Error("the plan requires nothing")
	}
}
