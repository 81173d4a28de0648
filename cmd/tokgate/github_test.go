package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"

	judged "github.com/tokgate/tokgate/assert/nights"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/internal/studies/runner"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/report/github"
	"github.com/tokgate/tokgate/report/nights"
)

// step is a simulated step of a GitHub Actions job. A test runs one tokgate command in it.
type step struct {
	t         *testing.T
	workspace string
	environ   []string
}

func newStep(t *testing.T) *step {
	s := &step{t: t, workspace: t.TempDir()}
	t.Chdir(s.workspace)
	s.environ = []string{
		"GITHUB_ACTIONS=true", "GITHUB_WORKSPACE=" + s.workspace,
		"GITHUB_OUTPUT=" + filepath.Join(s.workspace, ".output"), "GITHUB_STEP_SUMMARY=" + filepath.Join(s.workspace, ".summary"),
	}
	return s
}

func (s *step) write(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.workspace, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
	return name
}

// stepResult is what the runner sees of a step.
type stepResult struct {
	code     int
	log      string // standard output and then standard error
	commands []runner.Command
	outputs  map[string]string
	summary  string
}

func (s *step) run(args ...string) stepResult {
	s.t.Helper()
	var out, errs bytes.Buffer
	a := &app{Streams: Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, environ: s.environ, network: inMemory, salts: saltsOf(s.t, s.t.TempDir())}
	r := stepResult{code: a.main(s.t.Context(), args), outputs: map[string]string{}}
	r.log = out.String() + errs.String()
	r.commands, _ = runner.Commands(r.log)
	r.summary = s.read(".summary")
	pairs, err := runner.Pairs(s.read(".output"))
	if err != nil {
		s.t.Errorf("the runner cannot read the outputs: %v", err)
	}
	r.outputs = pairs
	return r
}

func (s *step) read(name string) string {
	b, err := os.ReadFile(filepath.Join(s.workspace, name))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return string(b)
}

// annotations returns the errors and warnings of the step, such as "error p.hcl:20 title".
func (r stepResult) annotations() []string {
	list := []string{}
	for _, c := range r.commands {
		if c.Name == "error" || c.Name == "warning" {
			list = append(list, c.Name+" "+c.Properties["file"]+":"+c.Properties["line"]+" "+c.Properties["title"])
		}
	}
	return list
}

func TestActionsRun(t *testing.T) {
	const unbound = "warning plans/p.hcl:9 Nothing bounds decoding" // TTFT is the only threshold

	tests := []struct {
		name, threshold string
		code            int
		verdict         string
		annotations     []string
		summary         string
	}{
		{"green", `ttft = "p95 < 2s"`, verdict.ExitPass, "pass", []string{unbound}, "✅ PASS"},
		{"red", `ttft = "p95 < 1us"`, verdict.ExitFail, "fail", []string{"error plans/p.hcl:20 fail: sla.ttft.p95 at 2 (w on s)", unbound}, "❌ FAIL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, inVirtualTime(func(t *testing.T) {
			s := newStep(t)
			s.write(".summary", "what an earlier command of the step wrote")
			r := s.run("run", s.write("plans/p.hcl", fmt.Sprintf(smallPlan, simServer(t).URL(), tt.threshold)))
			must.Hold(t, r.code == tt.code, "exit code %d, want %d\n%s", r.code, tt.code, r.log)
			must.Hold(t, len(r.outputs["recording"]) == 64, "the recording is %q", r.outputs["recording"])
			delete(r.outputs, "recording")
			want := map[string]string{"verdict": tt.verdict, "exit-code": fmt.Sprint(tt.code), "capacity": "", "capacity-kind": "",
				"results": "results/p", "junit": "results/p/junit.xml"}
			must.Same(t, "outputs (-want +got)", want, r.outputs)
			must.Same(t, "annotations (-want +got)", tt.annotations, r.annotations())
			if !strings.HasPrefix(r.summary, "what an earlier command of the step wrote\n## "+tt.summary) || !strings.Contains(r.summary, "| w | s |") {
				t.Errorf("the summary begins %.300q", r.summary)
			}
			_, err := os.Stat(r.outputs["junit"])
			must.Hold(t, err == nil, "%v", err)
			// The log folds each phase of a run. The verdict is not folded.
			groups, open := []string{}, false
			for _, c := range r.commands {
				switch c.Name {
				case "group":
					groups, open = append(groups, c.Data), true
				case "endgroup":
					open = false
				}
			}
			diff := cmp.Diff([]string{"starting servers", "w on s"}, groups)
			must.Hold(t, diff == "" && !open, "groups (-want +got), open %t:\n%s", open, diff)
			must.Hold(t, strings.LastIndex(r.log, "::endgroup::") <= strings.Index(r.log, "results in results/p"), "the verdict is folded away:\n%s", r.log)
		}))
	}
}

// If a step runs several plans, the worst verdict is its verdict. Each plan has a line of its own.
func TestActionsRunSeveral(t *testing.T) { inVirtualTime(testActionsRunSeveral)(t) }

func testActionsRunSeveral(t *testing.T) {
	server := simServer(t)
	s := newStep(t)
	s.write("plans/a.hcl", fmt.Sprintf(smallPlan, server.URL(), `ttft = "p95 < 1us"`))
	s.write("plans/b.hcl", fmt.Sprintf(smallPlan, server.URL(), `ttft = "p95 < 2s"`))
	r := s.run("run", "plans")
	must.Hold(t, r.outputs["verdict"] == "fail" && r.outputs["results"] == "results/a\nresults/b", "outputs %v", r.outputs)
	a, b := strings.Index(r.summary, "FAIL · a"), strings.Index(r.summary, "PASS · b")
	must.Hold(t, a >= 0 && b >= a, "the summary has a at %d and b at %d", a, b)
}

// Every command reports an error in a plan at its line.
func TestActionsDiagnose(t *testing.T) {
	typo := fmt.Sprintf(smallPlan, "http://127.0.0.1:1", `tftt = "p95 < 2s"`)
	for _, args := range [][]string{{"validate"}, {"validate", "--json"}, {"plan"}, {"run"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			s := newStep(t)
			r := s.run(append(args, s.write("p.hcl", typo))...)
			if r.code != verdict.ExitPlan || !slices.Contains(r.annotations(), "error p.hcl:20 Unsupported argument") {
				t.Errorf("exit code %d, annotations %q", r.code, r.annotations())
			}
			// Only commands that run or judge a plan have a verdict.
			want := map[string]string{}
			if args[0] == "run" {
				want = map[string]string{"verdict": "invalid", "exit-code": "2", "capacity": "", "capacity-kind": "", "results": "", "junit": "", "recording": ""}
			}
			must.Same(t, "outputs (-want +got)", want, r.outputs)
		})
	}
}

func TestActionsFormat(t *testing.T) {
	s := newStep(t)
	good := fmt.Sprintf(smallPlan, "http://127.0.0.1:1", `ttft = "p95 < 2s"`)
	s.write("good.hcl", good)
	s.write("bad.hcl", strings.Replace(good, "  input_tokens  =", "  input_tokens =", 1))
	s.write("broken.hcl", "server {")
	r := s.run("fmt", "--check")
	want := []string{"error bad.hcl:10 not formatted", "error broken.hcl:1 Missing closing brace"}
	diff := cmp.Diff(want, r.annotations())
	must.Hold(t, diff == "" && r.code == verdict.ExitPlan, "exit code %d, annotations (-want +got):\n%s", r.code, diff)
}

// An error in the command line gives an annotation without file and line. The outputs of the step
// also report the error.
func TestActionsUsage(t *testing.T) {
	for _, args := range [][]string{{"run"}, {"run", "--junitt", "x", "p.hcl"}, {"run", "absent.hcl"}, {"judge", "x"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			r := newStep(t).run(args...)
			if r.code != verdict.ExitPlan || r.outputs["verdict"] != "invalid" || r.outputs["exit-code"] != "2" {
				t.Errorf("exit code %d, outputs %v", r.code, r.outputs)
			}
			must.Same(t, "annotations (-want +got)", []string{"error : tokgate"}, r.annotations())
		})
	}
}

func TestActionsOffAndOn(t *testing.T) {
	bad := fmt.Sprintf(smallPlan, "http://127.0.0.1:1", `tftt = "p95 < 2s"`)
	for _, tt := range []struct {
		flag, variable string
		on             bool
	}{{"auto", "true", true}, {"auto", "false", false}, {"off", "true", false}, {"on", "", true}} {
		t.Run(tt.flag+" "+tt.variable, func(t *testing.T) {
			s := newStep(t)
			s.environ[0] = "GITHUB_ACTIONS=" + tt.variable
			r := s.run("run", "--github="+tt.flag, s.write("p.hcl", bad))
			got := len(r.commands) > 0
			must.Hold(t, got == tt.on && (r.outputs["verdict"] != "") == tt.on, "%d commands, outputs %v; want some: %t", len(r.commands), r.outputs, tt.on)
		})
	}
	tokgate(t, "version", "--github=maybe").check(t, verdict.ExitPlan, "auto, on or off")
}

// A gate that passed but cannot write its outputs for later steps counts as an error.
func TestActionsUnwritable(t *testing.T) { inVirtualTime(testActionsUnwritable)(t) }

func testActionsUnwritable(t *testing.T) {
	server := simServer(t)
	s := newStep(t)
	s.environ = append([]string{"GITHUB_OUTPUT=" + filepath.Join(s.workspace, "absent", "output")}, s.environ...)
	r := s.run("run", s.write("p.hcl", fmt.Sprintf(smallPlan, server.URL(), `ttft = "p95 < 2s"`)))
	must.Hold(t, r.code == verdict.ExitError && strings.Contains(r.log, "could not write the outputs of the step"), "exit code %d\n%s", r.code, r.log)
}

// A night that is worse than earlier ones gets an annotation at the history block. The summary of
// the step shows it in a table.
func TestActionsNightly(t *testing.T) {
	for _, severity := range []string{"error", "warning"} {
		t.Run(severity, func(t *testing.T) {
			s := newStep(t)
			h := &plan.History{Severity: plan.SeverityError, Range: hcl.Range{Filename: "plans/control.hcl", Start: hcl.Pos{Line: 5}}}
			if severity == "warning" {
				h.Severity = plan.SeverityWarn
			}
			a := &app{workflow: "auto", environ: s.environ}
			var err error
			if a.actions, err = a.newActions(); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			a.actions.log = &log
			n := judged.Result{Outcome: verdict.Fail, Trends: []judged.Trend{
				{Trend: metric.Trend{Server: "s", Workload: "w", Level: "4", Metric: "ttft", Stat: "p95"}, Outcome: verdict.Fail, Message: "20% higher"},
				{Trend: metric.Trend{Server: "s", Workload: "w", Level: "4", Metric: "e2e", Stat: "mean"}, Outcome: verdict.Pass},
			}}
			a.trended(n, nights.Options{Folder: "perf/history"}, h)
			must.Do(t, a.actions.finish(&exitError{}, true))
			r := stepResult{summary: s.read(".summary")}
			r.commands, _ = runner.Commands(log.String())
			word := map[string]string{"error": "fail", "warning": "warning"}[severity]
			must.Same(t, "annotations (-want +got)", []string{severity + " plans/control.hcl:5 " + word + ": history.ttft.p95 at 4 (w on s)"}, r.annotations())
			must.Hold(t, strings.HasPrefix(r.summary, "\n## FAIL · history"), "the summary begins %.100q", r.summary)
		})
	}
}

// In GitHub Actions, `history check` writes its own annotation and outputs, as `run` does.
func TestActionsHistoryCheck(t *testing.T) {
	s := newStep(t)
	must.Do(t, os.Mkdir(filepath.Join(s.workspace, "h"), 0o755))
	r := s.run("history", "check", "h")
	if r.code != verdict.ExitError || r.outputs["verdict"] != "error" || len(r.annotations()) != 1 {
		t.Errorf("exit code %d, outputs %v, annotations %q", r.code, r.outputs, r.annotations())
	}
}

// Nothing that a server prints in its errors can become a command for the runner. The server is a
// real process whose output goes through a pipe and a log.
func TestActionsForeignText(t *testing.T) {
	s := newStep(t)
	plan := fmt.Sprintf(smallPlan, "URL", `ttft = "p95 < 2s"`)
	script := `printf '::error file=x::pwned\n##[error]pwned\n  ::set-output name=verdict::pass\n::stop-commands::x\n\r::warning::pwned\n'; echo '::add-mask::a' >&2; exit 3`
	plan = strings.Replace(plan, `endpoint { url = "URL" }`, fmt.Sprintf("process {\n    command = [\"sh\", \"-c\", %q]\n    port    = 1\n  }", script), 1)
	r := s.run("run", s.write("p.hcl", plan))
	must.Hold(t, r.code == verdict.ExitError && r.outputs["verdict"] == "error", "exit code %d, outputs %v\n%s", r.code, r.outputs, r.log)
	must.Hold(t, strings.Contains(r.log, "pwned"), "the server's words are not shown:\n%s", r.log)
	for _, c := range r.commands {
		switch c.Name {
		case "group", "endgroup":
		case "error", "warning":
			must.Hold(t, c.Properties["file"] == "p.hcl", "the runner was told %+v", c)
		default:
			t.Errorf("the runner was told %+v", c)
		}
	}
	must.Hold(t, len(r.summary) <= github.SummaryBytes, "a summary of %d bytes", len(r.summary))
}
