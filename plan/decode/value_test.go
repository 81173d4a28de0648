package decode

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
)

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

const hashed = `
variable "model" {
  default = "a"
}
variable "token" {
  sensitive = true
  default   = "t0"
}
server "s" {
  model = var.model
  endpoint {
    url     = "http://127.0.0.1:8000"
    api_key = var.token
    headers = { X = file("x.txt") }
  }
}
workload "w" {
  input_tokens  = 1
  output_tokens = 1
  load { concurrency = 1 }
  sla { success = "every" }
}
`

// The hash of a plan covers its sources, variables and files, but neither its folder nor secrets.
func TestHash(t *testing.T) {
	load := func(files map[string]string, inputs ...Input) string {
		t.Helper()
		p, diags := File(Options{Path: filepath.Join(write(t, files), "p.hcl"), Inputs: inputs})
		must.Need(t, len(diags) <= 0, "%v", diags)
		return p.Hash
	}
	base := load(map[string]string{"p.hcl": hashed, "x.txt": "1"})
	for _, row := range []struct {
		what string
		hash string
		same bool
	}{
		{"another folder", load(map[string]string{"p.hcl": hashed, "x.txt": "1"}), true},
		{"another secret", load(map[string]string{"p.hcl": hashed, "x.txt": "1"}, Input{Var: "token=t1"}), true},
		{"another variable", load(map[string]string{"p.hcl": hashed, "x.txt": "1"}, Input{Var: "model=b"}), false},
		{"another file", load(map[string]string{"p.hcl": hashed, "x.txt": "2"}), false},
		{"another source", load(map[string]string{"p.hcl": hashed + "# x\n", "x.txt": "1"}), false},
	} {
		must.Hold(t, (row.hash == base) == row.same, "%s: same hash is %v, want %v", row.what, row.hash == base, row.same)
	}
	must.Hold(t, len(base) == 64, "hash %q is no SHA-256", base)
}

// A link inside the repository must not lead to a file outside of it.
func TestFilesStayInside(t *testing.T) {
	outside := write(t, map[string]string{"secret.txt": "secret", "s.hcl": "gate {}\n"})
	dir := write(t, map[string]string{
		".git/HEAD": "ref: x\n", "lib/ok.txt": "fine", "plans/p.hcl": "locals {\n  a = file(\"../lib/ok.txt\")\n  b = file(\"out/secret.txt\")\n  c = file(\"" + outside + "/secret.txt\")\n}\n",
		"plans/q.hcl": "include = [\"out/s.hcl\"]\n",
	})
	if err := os.Symlink(outside, filepath.Join(dir, "plans", "out")); err != nil {
		t.Skip(err)
	}
	_, diags := File(Options{Path: filepath.Join(dir, "plans", "p.hcl")})
	var lines []int
	for _, d := range diags {
		if strings.Contains(d.Detail, "outside the repository") {
			lines = append(lines, d.Subject.Start.Line)
		}
	}
	diff := gocmp.Diff([]int{3, 4}, lines)
	must.Hold(t, diff == "", "refused lines: %s\n%v", diff, diags)
	_, diags = File(Options{Path: filepath.Join(dir, "plans", "q.hcl")})
	if !slices.ContainsFunc(diags, func(d *hcl.Diagnostic) bool { return d.Summary == sumInclude }) {
		t.Errorf("an include through a link was followed: %v", diags)
	}
}

// A plan must not read git's own files. It must not read pipes or devices either, because these may
// never end.
func TestFilesThatAreNone(t *testing.T) {
	dir := write(t, map[string]string{".git/config": "[http]\n", "plans/lib/.GIT/x": "x", "plans/p.hcl": ""})
	if err := os.Symlink(filepath.Join(dir, ".git"), filepath.Join(dir, "plans", "out")); err != nil {
		t.Skip(err)
	}
	for _, row := range []struct{ src, want string }{
		{"locals {\n  a = file(\"../.git/config\")\n}\n", "where git may store tokens"},
		{"locals {\n  a = file(\"lib/.GIT/x\")\n}\n", "where git may store tokens"},
		{"locals {\n  a = file(\"out/config\")\n}\n", "where git may store tokens"},
		{"include = [\"../.git/config\"]\n", "where git may store tokens"},
		{"history {\n  folder = \"../.git/hooks\"\n}\n", "where git may store tokens"},
		{"history {\n  folder = \"out/hooks\"\n}\n", "where git may store tokens"},
		{"history {\n  folder = \"../../elsewhere\"\n}\n", "outside the repository"},
		{"locals {\n  a = file(\"lib\")\n}\n", "not a regular file"},
	} {
		_, diags := File(Options{Path: filepath.Join(dir, "plans", "p.hcl"), Source: []byte(row.src)})
		if !slices.ContainsFunc(diags, func(d *hcl.Diagnostic) bool { return strings.Contains(d.Detail, row.want) }) {
			t.Errorf("%s: want %q, got %v", row.src, row.want, diags)
		}
	}
	for _, opts := range []Options{{Path: os.DevNull}, {Path: filepath.Join(dir, "plans", "p.hcl"), Source: []byte("\n"), Inputs: []Input{{File: "/dev/zero"}}}} {
		_, diags := File(opts)
		if !slices.ContainsFunc(diags, func(d *hcl.Diagnostic) bool { return strings.Contains(d.Detail, "not a regular file") }) {
			t.Errorf("%s %v: %v", opts.Path, opts.Inputs, diags)
		}
	}
}

// A value from the environment is a secret wherever the plan uses it. Every value computed from it
// is a secret too.
func TestEnvironmentIsSecret(t *testing.T) {
	src := `
locals {
  half = substr(env.GITHUB_TOKEN, 0, 12)
}
server "s" {
  model = local.half
  simulator {}
}
workload "w" {
  input_tokens  = 1
  output_tokens = 1
  load { concurrency = 1 }
  request {
    user  = upper(env.GITHUB_TOKEN)
    extra = { name = "for ${env.OTHER}" }
  }
}
`
	p, _ := File(Options{Path: "p.hcl", Source: []byte(src), Environ: []string{"GITHUB_TOKEN=ghs_0123456789abcdef", "OTHER=another-secret"}})
	for _, want := range []string{"ghs_0123456789abcdef", "ghs_01234567", "GHS_0123456789ABCDEF", "another-secret", "for another-secret"} {
		must.Hold(t, slices.Contains(p.Secrets, want), "%s is not among the secrets %q", want, p.Secrets)
	}
}

const secretive = `
variable "token" {
  sensitive = true
}
server "s" {
  engine = var.token
  endpoint {
    url     = "ftp://${var.token}"
    api_key = "literal-key-123"
    headers = { Authorization = "Basic ${env.USER_AND_PASSWORD}", "X y" = var.token }
  }
}
`

// No diagnostic prints a secret, whatever is wrong with the secret's value.
func TestSecretsAreNotPrinted(t *testing.T) {
	p, diags := File(Options{
		Path: "p.hcl", Source: []byte(secretive),
		Inputs:  []Input{{Var: "token=s3cr3t-token"}},
		Environ: []string{"USER_AND_PASSWORD=me:pa55word"},
	})
	var text strings.Builder
	must.Do(t, WriteDiagnostics(&text, p.Files, diags, 0, false))
	n := len(diags)
	must.Hold(t, n >= 3, "%d diagnostics, want at least engine, URL and header:\n%s", n, text.String())
	for _, secret := range []string{"s3cr3t-token", "pa55word"} {
		must.Hold(t, !strings.Contains(text.String(), secret), "%s was printed:\n%s", secret, text.String())
	}
	for _, secret := range []string{"s3cr3t-token", "me:pa55word", "literal-key-123"} {
		must.Hold(t, slices.Contains(p.Secrets, secret), "%s is not among the secrets %q", secret, p.Secrets)
	}
}

// The decoder reads environment variables only from Options.Environ.
func TestEnvironmentIsExplicit(t *testing.T) {
	t.Setenv("TOKGATE_VAR_x", "from the process")
	t.Setenv("NAME", "from the process")
	src := "variable \"x\" {\n  default = \"default\"\n}\nserver \"s\" {\n  model = \"${var.x} ${env.NAME}\"\n  simulator {}\n}\n"
	p, _ := File(Options{Path: "p.hcl", Source: []byte(src), Environ: []string{"OTHER=1"}})
	got := p.Servers[0].Model
	must.Hold(t, got == unknownText, "model = %q, want %q", got, unknownText)
	p, _ = File(Options{Path: "p.hcl", Source: []byte(src), Environ: []string{"NAME=n"}})
	must.Same(t, "model", "default n", p.Servers[0].Model)
}

func TestResultType(t *testing.T) {
	p, diags := File(fixtureOptions(t, "testdata/ok/chatbot.hcl"))
	must.Need(t, !diags.HasErrors(), "%v", diags)
	level := plan.ResultType(p).AttributeType("vllm").AttributeType("general_chatbot").AttributeType("level")
	must.Same(t, "levels", []string{"1", "2", "30", "5"}, slices.Sorted(maps.Keys(level.AttributeTypes())))
	attrs := level.AttributeType("30").AttributeTypes()
	want := []string{"mean", "min", "max", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p99.9"}
	slices.Sort(want)
	for _, name := range []string{"ttft", "itl", "e2e", "speed"} {
		must.Same(t, name, want, slices.Sorted(maps.Keys(attrs[name].AttributeTypes())))
	}
	for _, name := range []string{"throughput", "success", "requests", "completed", "failed", "goodput_share", "preemptions", "cost_per_hour"} {
		must.Hold(t, attrs[name] == cty.Number, "%s is %#v, want a number", name, attrs[name])
	}
	// A metric that the server counts in buckets has no minimum and no maximum. A metric that is
	// read at intervals has no percentiles.
	for name, want := range map[string][]string{
		"queue_wait": slices.DeleteFunc(slices.Clone(want), func(s string) bool { return s == "min" || s == "max" }),
		"kv_usage":   {"max", "mean", "min"},
	} {
		must.Same(t, name, want, slices.Sorted(maps.Keys(attrs[name].AttributeTypes())))
	}
	typ := attrs["accept_rate_at"]
	must.Hold(t, typ.Equals(cty.List(cty.Number)), "accept_rate_at is %#v, want a list of numbers", typ)
}

// The value result is missing in an assert's context, which has variables, locals and functions.
// The caller that evaluates the assert adds result.
func TestAssertContext(t *testing.T) {
	src := `
variable "limit" {
  default = "2s"
}
locals {
  factor = 2
}
server "s" {
  simulator {}
}
workload "w" {
  input_tokens  = 1
  output_tokens = 1
  load { concurrency = 1 }
}
assert "a" {
  condition     = result.s.w.level[1].ttft.p95 * local.factor < seconds(var.limit)
  error_message = "${result.s.w.level[1].ttft.p95}s of ${env.WHO}"
}
`
	p, diags := File(Options{Path: "p.hcl", Source: []byte(src), Environ: []string{"WHO=me"}})
	must.Need(t, len(diags) <= 0, "%v", diags)
	a := p.Asserts[0]
	for _, row := range []struct {
		p95  float64
		want bool
	}{{0.9, true}, {1.1, false}} {
		ctx := a.Context.NewChild()
		ctx.Variables = map[string]cty.Value{"result": nested(cty.NumberFloatVal(row.p95), "p95", "ttft", "1", "level", "w", "s")}
		v, diags := a.Condition.Value(ctx)
		must.Hold(t, !diags.HasErrors() && v.True() == row.want, "p95 %v: %#v, %v; want %v", row.p95, v, diags, row.want)
		if row.want {
			continue
		}
		m, diags := a.ErrorMessage.Value(ctx)
		if !m.HasMark(sensitive) { // the message contains a value from the environment
			t.Errorf("message %#v has no mark", m)
		}
		if m, _ = m.Unmark(); diags.HasErrors() || m.AsString() != "1.1s of me" {
			t.Errorf("message %#v, %v", m, diags)
		}
	}
}

// nested returns v inside objects with the given names. The last name is the outermost.
func nested(v cty.Value, names ...string) cty.Value {
	for _, n := range names {
		v = cty.ObjectVal(map[string]cty.Value{n: v})
	}
	return v
}

// A variable without a type takes its type from the value. A value on the command line that looks
// like a number or a bool becomes one.
func TestUntypedVariable(t *testing.T) {
	for _, tt := range []struct{ declared, given, want string }{
		{``, "8", "number"}, {``, "0.5", "number"}, {``, "-3", "number"}, {``, "true", "bool"},
		{``, "08", "string"}, {``, "1e3", "string"}, {``, "8s", "string"}, {``, "", "string"},
		{``, strings.Repeat("7", 500), "string"},
		// a sensitive value stays text: masking finds secrets only as text
		{`sensitive = true`, "8", "string"},
		{`type = string`, "8", "string"}, {`type = number`, "08", "number"},
	} {
		d := newDecoder(Options{
			Path: "x.hcl", Source: []byte("variable \"x\" {\n" + tt.declared + "\n}\n"),
			Inputs: []Input{{Var: "x=" + tt.given}}, ReadFile: ReadFile,
		})
		d.load()
		must.Same(t, fmt.Sprintf("%q of %q is a", tt.given, tt.declared), tt.want, d.values["x"].Type().FriendlyName())
	}
}
