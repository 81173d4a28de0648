package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
)

// smallPlan gates an endpoint by one threshold. Its format verbs are the URL and the line of the
// threshold.
const smallPlan = `gate {
  decide = "estimate"
}

server "s" {
  endpoint { url = %q }
}

workload "w" {
  input_tokens  = 64
  output_tokens = { mean = 16, jitter = "10%%" }

  load {
    concurrency = 2
    requests    = 20
    seeds       = [1, 2]
  }

  sla {
    %s
  }
}
`

func TestRunPasses(t *testing.T) { inBubble(testRunPasses)(t) }

func testRunPasses(t *testing.T) {
	server := simServer(t)
	dir := filepath.Join(t.TempDir(), "out")
	extra := t.TempDir()
	r := tokgate(t, "run", "--out", dir,
		"--junit", filepath.Join(extra, "j.xml"), "--json", filepath.Join(extra, "r.json"),
		"--markdown", filepath.Join(extra, "r.md"), "--csv", filepath.Join(extra, "levels.csv"),
		writePlan(t, fmt.Sprintf(smallPlan, server.URL(), `ttft = "p95 < 2s"`)))
	r.check(t, verdict.ExitPass, "PASS", "w on s")
	wellFormed(t, filepath.Join(dir, "junit.xml"))
	for _, pair := range [][2]string{{"junit.xml", "j.xml"}, {"results.json", "r.json"}, {"report.md", "r.md"}} {
		must.Same(t, fmt.Sprintf("the copy of %s differs", pair[0]), read(t, filepath.Join(dir, pair[0])), read(t, filepath.Join(extra, pair[1])))
	}
	if !strings.Contains(read(t, filepath.Join(dir, "results.json")), `"path": "own transport"`) {
		t.Error("results.json does not say by which path the streams were read")
	}
	// The file has a header and a line for each request. At least 20 of the requests are measured.
	if n := strings.Count(read(t, filepath.Join(extra, "levels.samples.csv")), "\n"); n < 21 {
		t.Errorf("the samples have %d lines, want at least 21", n)
	}
	if n := strings.Count(read(t, filepath.Join(extra, "levels.csv")), "\n"); n != 2 {
		t.Errorf("the levels have %d lines, want a header and one level", n)
	}

	// After the server has ended, judge still works on a recording, even with a changed plan.
	// report needs only the recording.
	server.Close()
	strict := writePlan(t, fmt.Sprintf(smallPlan, server.URL(), `ttft = "p95 < 1us"`))
	tokgate(t, "judge", dir, strict).check(t, verdict.ExitFail, "ttft p95", "1 µs")
	// A recording cannot be judged by a plan that sends other requests.
	for _, change := range [][2]string{
		{"input_tokens  = 64", "input_tokens = 65"}, {"mean = 16", "mean = 17"}, {"jitter = \"10%\"", "jitter = \"20%\""},
		{"input_tokens  =", "api = \"completions\"\ninput_tokens ="}, {"  load {", "request {\n temperature = 0.5\n}\n load {\n pause = \"0s\"\n"},
		{"requests    = 20", "requests = 20\n pause = \"1s\""}, {"endpoint {", "engine = \"vllm\"\n endpoint {"},
	} {
		src := fmt.Sprintf(smallPlan, server.URL(), `ttft = "p95 < 2s"`)
		other := strings.Replace(src, change[0], change[1], 1)
		if other == src {
			t.Fatalf("the plan does not hold %q", change[0])
		}
		tokgate(t, "judge", dir, writePlan(t, other)).check(t, verdict.ExitError, "another workload")
	}
	tokgate(t, "report", dir).check(t, verdict.ExitPass, "PASS", "w on s")
	must.Do(t, os.Remove(filepath.Join(dir, "results.json")))
	tokgate(t, "report", dir).check(t, verdict.ExitPass, "w on s")
}

// With --transport net/http the streams are read by net/http, which results.json and the report tell.
// Such a recording is not compared with one that was made without the flag.
func TestRunTransport(t *testing.T) { inBubble(testRunTransport)(t) }

func testRunTransport(t *testing.T) {
	path := writePlan(t, fmt.Sprintf(smallPlan, simServer(t).URL(), `ttft = "p95 < 2s"`))
	own, standard := t.TempDir(), t.TempDir()
	tokgate(t, "run", "--out", own, path).check(t, verdict.ExitPass)
	tokgate(t, "run", "--out", standard, "--transport", "net/http", path).check(t, verdict.ExitPass)
	if !strings.Contains(read(t, filepath.Join(standard, "results.json")), `"path": "net/http: --transport"`) {
		t.Error("results.json does not say that --transport was given")
	}
	if page := read(t, filepath.Join(standard, "report.html")); !strings.Contains(page, "streams read by") || !strings.Contains(page, metric.PathChosen) {
		t.Error("the report does not say that --transport was given")
	}
	tokgate(t, "compare", own, standard).check(t, verdict.ExitError, "streams of the control were read by own transport", "record both with the same --transport")
	again := t.TempDir()
	tokgate(t, "run", "--out", again, "--transport", "net/http", path).check(t, verdict.ExitPass)
	if r := tokgate(t, "compare", standard, again); strings.Contains(r.out+r.err, "--transport") {
		t.Errorf("both were recorded alike:\n%s", r.out)
	}
}

// A threshold that no server can meet fails the gate. The output has its name, its value and its
// line in the plan.
func TestRunFails(t *testing.T) { inBubble(testRunFails)(t) }

func testRunFails(t *testing.T) {
	server := simServer(t)
	dir := t.TempDir()
	path := writePlan(t, fmt.Sprintf(smallPlan, server.URL(), `ttft = "p95 < 1us"`))
	r := tokgate(t, "run", "--out", dir, path)
	r.check(t, verdict.ExitFail, "FAIL", "sla.ttft.p95 at 2", `ttft = "p95 < 1us"`, "test.hcl:20", "> 1 µs")
	junit := read(t, filepath.Join(dir, "junit.xml"))
	for _, want := range []string{`<failure`, `type="sla"`, `line="20"`, "ttft p95"} {
		if !strings.Contains(junit, want) {
			t.Errorf("junit.xml does not say %s:\n%s", want, junit)
		}
	}
	var doc report.Document
	must.Do(t, json.Unmarshal([]byte(read(t, filepath.Join(dir, "results.json"))), &doc))
	if doc.Outcome != verdict.Fail || doc.ExitCode != verdict.ExitFail {
		t.Errorf("results.json says %s, exit %d; want fail, exit 1", doc.Outcome, doc.ExitCode)
	}
}

// Errors in a plan or a command line are reported before any server starts.
func TestNothingStarts(t *testing.T) {
	server := simServer(t)
	good := fmt.Sprintf(smallPlan, server.URL(), `ttft = "p95 < 2s"`)
	tests := []struct {
		name  string
		plan  string
		args  []string // arguments that follow run --out DIR; PLAN stands for the plan's path
		words []string
	}{
		{"a typo", strings.Replace(good, "ttft =", "tftt =", 1), []string{"PLAN"}, []string{`Did you mean "ttft"?`, "line 20"}},
		{"a statistic is missing", strings.Replace(good, "p95 < 2s", "< 2s", 1), []string{"PLAN"}, []string{"mean", "p95"}},
		{"nothing is required", good[:strings.Index(good, "  sla {")] + "}\n", []string{"PLAN"}, []string{"measure_only"}},
		{"no such plan", good, []string{"PLANX"}, []string{"no such file", "did you mean"}},
		{"no plan", good, nil, []string{"no plan named", "tokgate init"}},
		{"an unknown flag", good, []string{"--junitt", "x", "PLAN"}, []string{"--junitt", "did you mean --junit?"}},
		{"an unknown server", good, []string{"--endpoint", "t=http://127.0.0.1:1", "PLAN"}, []string{`no server "t"`, "tokgate plan"}},
		{"an endpoint that is no URL", good, []string{"--endpoint", "s=ftp:/x", "PLAN"}, []string{"--endpoint s: the URL must start with http:// or https://"}},
		{"an unknown case", good, []string{"--only", "w/3", "PLAN"}, []string{`no case "w/3"`, `did you mean "w/2"?`}},
		{"an unknown variable", good, []string{"--var", "x=1", "PLAN"}, []string{`"x"`}},
		{"one file for two plans", good, []string{"--junit", "x", "PLAN", "PLAN"}, []string{"cannot share"}},
		{"one folder for two plans", good, []string{"PLAN", "PLAN"}, []string{"would both leave"}},
		{"an unknown transport", good, []string{"--transport", "http", "PLAN"}, []string{`unknown --transport "http"`, "use own or net/http"}},
		{"a transport in virtual time", good, []string{"--transport", "net/http", "--simulate", "PLAN"}, []string{"virtual time has no connections"}},
		{"no colour", good, []string{"--color", "green", "PLAN"}, []string{"auto, always or never"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := writePlan(t, tt.plan)
			dir := filepath.Join(t.TempDir(), "out")
			args := []string{"run", "--out", dir}
			for _, a := range tt.args {
				args = append(args, strings.ReplaceAll(strings.Replace(a, "PLANX", filepath.Join(filepath.Dir(path), "tset.hcl"), 1), "PLAN", path))
			}
			tokgate(t, args...).check(t, verdict.ExitPlan, tt.words...)
			if _, err := os.Stat(dir); err == nil {
				t.Error("a results folder was made")
			}
		})
	}
	if n := server.State().PromptTokens; n != 0 {
		t.Errorf("the server read %d tokens, want none", n)
	}
}

func TestOnly(t *testing.T) { inBubble(testOnly)(t) }

func testOnly(t *testing.T) {
	server := simServer(t)
	path := writePlan(t, strings.Replace(fmt.Sprintf(smallPlan, server.URL(), `ttft = "p95 < 2s"`), "concurrency = 2", "concurrency = [1, 2]", 1))
	r := tokgate(t, "run", "--out", t.TempDir(), "--only", "w/2", path)
	r.check(t, verdict.ExitPass, "partial", "sla.ttft.p95 at 2")
}

func TestEndpointFlag(t *testing.T) { inBubble(testEndpointFlag)(t) }

func testEndpointFlag(t *testing.T) {
	server := simServer(t)
	path := writePlan(t, fmt.Sprintf(smallPlan, "http://127.0.0.1:1", `ttft = "p95 < 2s"`))
	tokgate(t, "run", "--out", t.TempDir(), "--endpoint", "s="+server.URL(), path).check(t, verdict.ExitPass, "PASS")
}

// A run changes nothing in a results folder with files that tokgate did not write.
func TestForeignResults(t *testing.T) { inBubble(testForeignResults)(t) }

func testForeignResults(t *testing.T) {
	server := simServer(t)
	dir := t.TempDir()
	foreign := filepath.Join(dir, "samples.jsonl")
	must.Do(t, os.WriteFile(foreign, []byte("mine\n"), 0o644))
	path := writePlan(t, fmt.Sprintf(smallPlan, server.URL(), `ttft = "p95 < 2s"`))
	tokgate(t, "run", "--out", dir, path).check(t, verdict.ExitError, "in the way")
	if read(t, foreign) != "mine\n" {
		t.Error("the foreign file was changed")
	}
}

func TestValidate(t *testing.T) {
	good := writePlan(t, fmt.Sprintf(smallPlan, "http://127.0.0.1:1", `ttft = "p95 < 2s"`))
	bad := writePlan(t, fmt.Sprintf(smallPlan, "http://127.0.0.1:1", `tftt = "p95 < 2s"`))
	tokgate(t, "validate", good).check(t, verdict.ExitPass, "is valid: 1 server, 1 workload, 1 level, 2 requirements")
	tokgate(t, "validate", good, bad).check(t, verdict.ExitPlan, `Did you mean "ttft"?`, "nothing was started")

	r := tokgate(t, "validate", "--json", bad)
	r.check(t, verdict.ExitPlan)
	var got struct {
		Valid       bool
		Diagnostics []struct{ Severity, Summary string }
	}
	if err := json.Unmarshal([]byte(r.out), &got); err != nil {
		t.Fatalf("%v in:\n%s", err, r.out)
	}
	if got.Valid || len(got.Diagnostics) == 0 || got.Diagnostics[0].Severity != "error" {
		t.Errorf("validate --json says %+v", got)
	}
	tokgate(t, "validate", "--json", good).check(t, verdict.ExitPass, `"valid": true`)

	// The plan has too few requests, so no server can pass its threshold.
	never := writePlan(t, `
server "s" {
  simulator {}
}
workload "w" {
  input_tokens  = 64
  output_tokens = 16
  load {
    concurrency = 2
    requests    = 200
  }
  sla {
    ttft = "p99 < 2s"
  }
}
`)
	tokgate(t, "validate", never).check(t, verdict.ExitPlan, "299", "never")
}

func TestPlanCommand(t *testing.T) {
	path := writePlan(t, fmt.Sprintf(smallPlan, "http://127.0.0.1:1", `ttft = "p95 < 2s"`))
	r := tokgate(t, "plan", path)
	// 20 requests of 64 prompt tokens and 16 answer tokens: 1,280 prompt tokens and 320 answer
	// tokens
	r.check(t, verdict.ExitPass, "1,280", "320", "Defaults filled in", "load.stagger", "  workload.w\n", "ttft p95 < 2s")
	path = writePlan(t, `
server "one" {
  engine = "vllm"
  endpoint { url = "http://127.0.0.1:1" }
}
server "other" {
  endpoint { url = "http://127.0.0.1:1" }
}
workload "text" {
  server        = server.one
  api           = "completions"
  input_tokens  = 64
  output_tokens = 16
  load {
    concurrency = [1, 4]
    requests    = 20
    seeds       = [1, 2]
  }
  load {
    burst  = 8
    bursts = 3
  }
  sla { ttft = "mean < 2s" }
}
workload "chat" {
  server        = server.other
  input_tokens  = 512
  prompt {
    shared_prefix = { tokens = 256, groups = 3 }
    warm          = true
  }
  output_tokens = 16
  load {
    concurrency = 1
    requests    = 20
    seeds       = [1]
    warmup      = 2
  }
  sla { ttft = "mean < 2s" }
}
workload "thinks" {
  server        = server.other
  input_tokens  = 64
  output_tokens = 16
  request { reasoning_effort = "high" }
  load {
    concurrency = 1
    requests    = 20
    seeds       = [1]
    warmup      = 0
  }
  sla { ttft = "mean < 2s" }
}
`)
	r = tokgateWith(t, t.Context(), []string{"COLUMNS=1000"}, "", "plan", path)
	r.check(t, verdict.ExitPass,
		"15 warm-up requests", // 1 + 4 for the levels, 8 before a burst, 2 for "other"
		"  one: one request for a token when it is ready. Then 3 questions, 2 of them requests for a token, to learn how it counts tokens.",
		"  other: one request for a token when it is ready. Then 8 questions if it has a tokenizer, or 6 requests for a token, to learn how it counts tokens for each of 2 kinds of request.",
		"3 requests for a token, so that the cache has the shared prefixes.",
		"The load generator: it reads 64 streams")
}

func TestPlanCommandShowsSearches(t *testing.T) {
	r := tokgate(t, "plan", filepath.Join("..", "..", "plans", "capacity.hcl"))
	r.check(t, verdict.ExitPass, "Capacity searches", "requests in flight", "8–64        16", "200–1,280", "800–5,120")
}

func TestFmt(t *testing.T) {
	const ugly, pretty = "gate {\ndecide=\"estimate\"\n}\n", "gate {\n  decide = \"estimate\"\n}\n"
	path := writePlan(t, ugly)
	tokgate(t, "fmt", "--check", path).check(t, verdict.ExitFail, path)
	if read(t, path) != ugly {
		t.Error("fmt --check wrote the plan")
	}
	tokgate(t, "fmt", "--check", "--diff", path).check(t, verdict.ExitFail, "-decide=", "+  decide = ")
	tokgate(t, "fmt", path).check(t, verdict.ExitPass, path)
	if got := read(t, path); got != pretty {
		t.Errorf("fmt wrote %q, want %q", got, pretty)
	}
	if r := tokgate(t, "fmt", "--check", path); r.code != verdict.ExitPass || r.out != "" {
		t.Errorf("a formatted plan: exit %d, %q", r.code, r.out)
	}
	if r := tokgateWith(t, t.Context(), nil, ugly, "fmt", "-"); r.code != verdict.ExitPass || r.out != pretty {
		t.Errorf("fmt - wrote %q, exit %d", r.out, r.code)
	}
	tokgateWith(t, t.Context(), nil, "gate {", "fmt", "-").check(t, verdict.ExitPlan, "<stdin>")
	tokgate(t, "fmt", "--check", t.TempDir()).check(t, verdict.ExitPlan, "no plan in folder")
}

func TestCommands(t *testing.T) {
	tokgate(t, "--help").check(t, verdict.ExitPass, "tokgate run plans/demo.hcl", "Exit codes")
	tokgate(t).check(t, verdict.ExitPass, "Usage")
	tokgate(t, "version").check(t, verdict.ExitPass, "tokgate ")
	tokgate(t, "version", "--json").check(t, verdict.ExitPass, `"version"`, `"go"`)
	tokgate(t, "rum").check(t, verdict.ExitPlan, `unknown command "rum"`, "tokgate run")
	tokgate(t, "help", "rum").check(t, verdict.ExitPlan, `unknown command "rum"`, "tokgate run")
	tokgate(t, "audit", "results/demo").check(t, verdict.ExitPlan, "the command audit was removed", "tokgate judge RESULTS PLAN")
	tokgate(t, "help", "nosuch").check(t, verdict.ExitPlan, `unknown command "nosuch"`, "tokgate --help")
	tokgate(t, "help", "history", "ad").check(t, verdict.ExitPlan, `unknown command "ad"`, "tokgate history add")
	tokgate(t, "help", "run", "it").check(t, verdict.ExitPlan, "`tokgate run` has no subcommand \"it\"", "tokgate help run")
	tokgate(t, "help", "run").check(t, verdict.ExitPass, "Runs plans one after another", "--simulate")
	tokgate(t, "completion", "fihs").check(t, verdict.ExitPlan, `unknown command "fihs"`, "tokgate completion fish")
	tokgate(t, "completion", "fish").check(t, verdict.ExitPass, "complete")
	tokgate(t, "schema", "plans").check(t, verdict.ExitPlan, `there is no schema "plans"`)
	tokgate(t, "--version").check(t, verdict.ExitPass, buildInfo().Version)
	tokgate(t, "sim", "--list").check(t, verdict.ExitPass, "default", "http-500")
	tokgate(t, "sim", "--profile", "defalt").check(t, verdict.ExitPlan, "default")
	tokgate(t, "sim", "--fault", "http-501").check(t, verdict.ExitPlan, "http-50")
	tokgate(t, "sim", "--log", "no/folder").check(t, verdict.ExitPlan, "no/folder")
	tokgate(t, "completion", "bash").check(t, verdict.ExitPass, "tokgate")
	tokgate(t, "schema", "plan").check(t, verdict.ExitPass, "tokgate plan, JSON syntax")
	tokgate(t, "schema", "results").check(t, verdict.ExitPass, "tokgate results")
	tokgate(t, "schema", "rezults").check(t, verdict.ExitPlan, `there is no schema "rezults"`, "schema results")
	results := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(results, "samples.jsonl"), nil, 0o644))
	tokgate(t, "report", filepath.Join(results, "samples.jsonl")).check(t, verdict.ExitPlan, "is no results folder", "did you mean", filepath.Base(results))
	tokgate(t, "judge", writePlan(t, ""), results).check(t, verdict.ExitPlan, "a plan comes after the folder")
	tokgate(t, "judge", "x").check(t, verdict.ExitPlan, "judge takes")
	tokgate(t, "report", t.TempDir()).check(t, verdict.ExitError, "samples.jsonl")
	for _, cmd := range (&app{}).root().Commands() {
		if cmd.Name() == "help" || cmd.Name() == "completion" {
			continue
		}
		if cmd.Example == "" && cmd.HasFlags() && cmd.Name() != "version" {
			t.Errorf("%s teaches nothing by example", cmd.Name())
		}
	}
}

// A command that cannot write its output, for example to a full disk, must end with an error.
// Otherwise the user would take half of a plan for the whole.
func TestOutputMustBeWritten(t *testing.T) {
	path := writePlan(t, fmt.Sprintf(smallPlan, "http://127.0.0.1:1", `ttft = "p95 < 2s"`))
	for _, args := range [][]string{{"plan", path}, {"validate", path}, {"validate", "--json", path}, {"version"}, {"version", "--json"}, {"schema", "plan"}, {"sim", "--list"}, {"help", "run"}, {"completion", "bash"}} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip(err)
		}
		var errs bytes.Buffer
		code := Main(t.Context(), args, nil, Streams{In: strings.NewReader(""), Out: full, Err: &errs})
		if code != verdict.ExitError || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%v: exit %d: %s", args, code, errs.String())
		}
		full.Close()
	}
}

func TestVersion(t *testing.T) {
	version, commit, date = "v1.2.3", "0123abcd", "2026-11-21T20:00:00Z"
	t.Cleanup(func() { version, commit, date = "", "", "" })
	r := tokgate(t, "version", "--json")
	r.check(t, verdict.ExitPass)
	var got build
	must.Do(t, json.Unmarshal([]byte(r.out), &got))
	want := build{"v1.2.3", "0123abcd", "2026-11-21T20:00:00Z", runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	must.Same(t, "", want, got)
	tokgate(t, "version").check(t, verdict.ExitPass, "tokgate v1.2.3 (")
	dir := t.TempDir()
	tokgate(t, "man", dir).check(t, verdict.ExitPass)
	if page := read(t, filepath.Join(dir, "tokgate.1")); !strings.Contains(page, `"Nov 2026" "tokgate 1.2.3"`) {
		t.Errorf("the page has another date or version:\n%.300s", page)
	}
}

// A release contains a man page for each command, which lists its flags.
func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	tokgate(t, "man", dir).check(t, verdict.ExitPass)
	for _, cmd := range (&app{}).root().Commands() {
		if cmd.Hidden || cmd.Name() == "help" {
			continue
		}
		page := read(t, filepath.Join(dir, "tokgate-"+cmd.Name()+".1"))
		for _, want := range []string{".TH", cmd.Short[:10], "--color"} {
			if !strings.Contains(strings.ReplaceAll(page, `\-`, "-"), want) {
				t.Errorf("the page of %s does not say %s:\n%s", cmd.Name(), want, page)
			}
		}
	}
}

func TestWorst(t *testing.T) {
	for _, tt := range []struct {
		codes []int
		want  int
	}{
		{nil, 0}, {[]int{0, 0}, 0}, {[]int{0, 3}, 3}, {[]int{3, 1}, 1}, {[]int{1, 4}, 4}, {[]int{4, 130, 1}, 130},
		{[]int{0, 99}, 4}, // an unknown code
	} {
		if got := worst(tt.codes); got != tt.want {
			t.Errorf("worst(%v) = %d, want %d", tt.codes, got, tt.want)
		}
	}
	// An interrupt came after the first of two plans, which passed. The result of both must be
	// "interrupted", not "passed".
	if got := worst(completeCodes([]int{0}, 2)); got != verdict.ExitInterrupted {
		t.Errorf("one of two plans was run: %d", got)
	}
	if got := worst(completeCodes([]int{0, 1}, 2)); got != verdict.ExitFail {
		t.Errorf("both were run: %d", got)
	}
}

// All shipped plans are valid and formatted. Other tests run those plans that need no hardware.
func TestLongShippedPlans(t *testing.T) {
	for _, path := range shipped(t) {
		tokgateWith(t, t.Context(), shippedEnviron, "", "validate", path).check(t, verdict.ExitPass, "is valid")
		tokgate(t, "fmt", "--check", path).check(t, verdict.ExitPass)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	src := must.Get(os.ReadFile(path))(t)
	return string(src)
}

// tokgate plan estimates the time of a plan from the plan's last run.
func TestLongPlanKnowsTheLastRun(t *testing.T) { inVirtualTime(testPlanKnowsTheLastRun)(t) }

func testPlanKnowsTheLastRun(t *testing.T) {
	t.Chdir(t.TempDir())
	const src = `gate {
  decide = "estimate"
}
server "s" {
  simulator {}
}
workload "w" {
  input_tokens  = 64
  output_tokens = 24
  load {
    concurrency = 4
    requests    = 20
    seeds       = [1]
  }
  sla {
    ttft = "p95 < 2s"
  }
}
`
	must.Do(t, os.WriteFile("w.hcl", []byte(src), 0o644))
	tokgate(t, "plan", "w.hcl").check(t, verdict.ExitPass, "unknown before the first run; tokgate run --simulate gives an estimate")
	tokgate(t, "run", "w.hcl").check(t, verdict.ExitPass)
	tokgate(t, "plan", "w.hcl").check(t, verdict.ExitPass, "by the run in results/w/results.json")
}

func TestCompletion(t *testing.T) {
	path := writePlan(t, fmt.Sprintf(smallPlan, "http://127.0.0.1:1", `ttft = "p95 < 2s"`))
	tokgate(t, "__complete", "run", path, "--only", "w").check(t, verdict.ExitPass, "w/2")
	tokgate(t, "__complete", "run", path, "--endpoint", "").check(t, verdict.ExitPass, "s=")
	tokgate(t, "__complete", "run", "").check(t, verdict.ExitPass, "hcl")
	tokgate(t, "__complete", "sim", "--profile", "").check(t, verdict.ExitPass, "default")
	tokgate(t, "__complete", "sim", "--fault", "").check(t, verdict.ExitPass, "error-event")
	tokgate(t, "__complete", "report", "").check(t, verdict.ExitPass)
}
