package main

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/server"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/progress"
	"github.com/tokgate/tokgate/report/text"
)

// shipped returns the paths of the plans that ship with tokgate.
func shipped(t *testing.T) []string {
	t.Helper()
	files := must.Get(planFiles([]string{filepath.Join("..", "..", "plans")}, true))(t)
	files = slices.DeleteFunc(files, func(path string) bool { return filepath.Base(filepath.Dir(path)) == "lib" })
	must.Need(t, len(files) >= 15, "%d plans ship", len(files))
	return files
}

// shippedEnviron sets the variables of those plans that need a server or a model.
var shippedEnviron = []string{"TOKGATE_VAR_model=any.gguf", "TOKGATE_VAR_in_flight=8", "TOKGATE_VAR_requests=200", "TOKGATE_VAR_url=http://127.0.0.1:8000", "TOKGATE_VAR_times=../../cmd/tokgate/testdata/times.csv"}

// requirement is one requirement of a plan, as `tokgate plan` lists it and as a run judges it.
type requirement struct{ server, workload, name string }

func (r requirement) String() string {
	return strings.TrimSpace(r.workload + " on " + r.server + ": " + r.name)
}

// For every plan that ships, `tokgate plan` lists the same requirements, with the same names, as a
// run judges.
func TestLongShippedPlanAndRunAgree(t *testing.T) {
	for _, path := range shipped(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			a := &app{color: "auto", environ: append(slices.Clone(shippedEnviron), "TOKGATE_STATE_DIR="+t.TempDir()), Streams: Streams{Out: t.Output(), Err: t.Output()}}
			p, diags := a.load(path, inputs{}, false)
			must.Need(t, !diags.HasErrors(), "%v", diags)
			shorten(p)
			for _, s := range p.Servers {
				// A simulator in the plan keeps its settings. Other servers are simulated with the
				// default profile.
				if s.Simulator == nil {
					s.Simulator = &plan.Simulator{Profile: "default", Seed: 1}
				}
			}
			var planned []requirement
			for _, v := range assert.Awaited(p) {
				if v.Required() {
					planned = append(planned, requirement{v.Server, v.Workload, v.Name})
				}
			}
			run := must.Get(simulatedRun(t.Context(), p, 0, nil))(t)
			doc := report.New(run, p, assert.Judge(p, run, assert.Options{}), report.Meta{})
			var judged []requirement
			for i := range doc.Verdicts {
				// A plan that only measures requires nothing, but what it could not measure counts.
				if v := &doc.Verdicts[i]; v.Required() && !(p.Gate.MeasureOnly && v.Outcome == verdict.Error) {
					judged = append(judged, requirement{v.Server, v.Workload, v.Name})
				}
			}
			byName := func(a, b requirement) int { return strings.Compare(a.String(), b.String()) }
			slices.SortFunc(planned, byName)
			slices.SortFunc(judged, byName)
			must.Same(t, "requirements of the plan (-) and of the run (+)", planned, judged, cmp.AllowUnexported(requirement{}))
			want := verdict.Count(len(judged), "requirements")
			must.Hold(t, strings.HasSuffix(planSize(p), want), "the run has %s, the plan says %q", want, planSize(p))
		})
	}
}

// shorten reduces the requests of a plan. All levels stay, so every verdict is still given.
func shorten(p *plan.Plan) {
	for _, w := range p.Workloads {
		w.Output.Mean = min(w.Output.Mean, 16)
		for _, load := range w.Loads {
			for i := range load.Levels {
				l := &load.Levels[i]
				l.Rounds = min(l.Rounds, 2)
				l.Requests = min(l.Requests, 2*l.N)
			}
		}
		if c := w.Capacity; c != nil {
			c.UpTo = min(c.UpTo, 2*c.From)
		}
	}
}

// No line of `tokgate plan` is wider than the terminal.
func TestLongPlanFitsTheTerminal(t *testing.T) {
	a := &app{environ: shippedEnviron, Streams: Streams{Out: t.Output(), Err: t.Output()}}
	for _, path := range shipped(t) {
		p, diags := a.load(path, inputs{}, false)
		must.Need(t, !diags.HasErrors(), "%v", diags)
		for _, width := range []int{80, 100} {
			var out strings.Builder
			(&expansion{&out, width, p, readLastRun(p.Path), nil}).print()
			fits(t, path, out.String(), width)
		}
	}
}

// fits reports a test error if a line of s is wider than the given number of columns.
func fits(t *testing.T, name, s string, columns int) {
	t.Helper()
	for line := range strings.Lines(s) {
		n := text.Width(strings.TrimRight(line, "\n"))
		must.Hold(t, n <= columns, "%s: %d of %d columns: %s", name, n, columns, line)
	}
}

func TestPlanGroups(t *testing.T) {
	t.Chdir(t.TempDir())
	path := writePlan(t, `
server "one" {
  for_each = { a = 1, b = 2 }
  simulator { seed = each.value }
}
workload "w" {
  for_each      = toset(["x.y", "z"])
  server        = each.key == "z" ? server.one["a"] : null
  input_tokens  = 100
  output_tokens = 1000 # too many to be simulated on the way
  load {
    concurrency = [1, 2, 4]
    requests    = 80
  }
  sla {
    at   = [4, 2, 1]
    ttft = "mean < 2s"
  }
  sla {
    at       = 2
    severity = "warn"
    e2e      = "p95 < 5s"
  }
}
`)
	r := tokgateWith(t, t.Context(), []string{"COLUMNS=80"}, "", "plan", path)
	r.check(t, verdict.ExitPass)
	words := "2 servers, 2 workloads, 9 levels, 18 requirements"
	must.Hold(t, strings.Contains(strings.Join(strings.Fields(r.out), " "), words), "nothing says %q:\n%s", words, r.out)
	got := regexp.MustCompile(`(?s)Requirements\n.*?\n\n`).FindString(r.out)
	want := `Requirements
  w["x.y"] on one["a"], one["b"]
    At       Must hold                Needed to certify
    1, 2, 4  ttft mean < 2s           5 batches
    1, 2, 4  success every (implied)  1 request, exact
    2        e2e p95 < 5s (warns)     59 effective requests
`
	must.Hold(t, strings.HasPrefix(got, want), "got:\n%s\nwant:\n%s", got, want)
	for _, words := range []string{"  server.one[*]\n", "  workload.w[*]\n", "Together 720 requests"} {
		must.Hold(t, strings.Contains(r.out, words), "nothing says %q:\n%s", words, r.out)
	}
}

// Compared servers are restarted for each turn. In the test's first run, six starts of 10 s took
// most of the time, because nothing changed. The estimate for the next run includes the starts.
func TestLongPlanCountsStarts(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Do(t, os.WriteFile("slow.json", []byte(`{"name": "slow", "base": "default", "load_ms": 10000}`), 0o600))
	src := `
gate { budget = "1m" }
server "a" {
  simulator { profile = "slow.json" }
}
server "b" {
  simulator { profile = "slow.json" }
}
workload "w" {
  input_tokens  = 100
  output_tokens = 10
  load {
    concurrency = 1
    requests    = 80
  }
}
compare "c" {
  control   = server.a
  candidate = server.b
  tolerate { e2e = "mean +20%" }
}
`
	must.Do(t, os.WriteFile("gate.hcl", []byte(strings.Replace(src, `gate { budget = "1m" }`, "", 1)), 0o600))
	tokgate(t, "run", "--simulate", "gate.hcl")
	doc := must.Get(report.ReadDocument(strings.NewReader(read(t, "results/gate-simulated/results.json"))))(t)
	if n := len(doc.Run.Servers[0].Starts) + len(doc.Run.Servers[1].Starts); n != 6 || doc.Run.Servers[0].Starts[0].Took() < 10*time.Second {
		t.Errorf("%d starts, the first of %v s", n, doc.Run.Servers[0].Starts)
	}
	a := &app{color: "auto", Streams: Streams{Out: t.Output(), Err: t.Output()}}
	p, _ := a.load("gate.hcl", inputs{}, false)
	last := readLastRun("gate.hcl")
	s := last.takes(p, startTimes(p, last))
	if s.unknown > 0 || math.Abs(s.expected.took.Seconds()/doc.Run.End.Seconds()-1) > 0.2 {
		t.Errorf("estimated %s, %d unknown, and it took %v", s.expected.took, s.unknown, doc.Run.End)
	}
	must.Do(t, os.WriteFile("gate.hcl", []byte(src), 0o600))
	tokgate(t, "plan", "gate.hcl").check(t, verdict.ExitPass, "Starts: about 2m40s in all: 16 starts", "longer than its budget of 1m")
	container := strings.NewReplacer("simulator { profile = \"slow.json\" }", "engine = \"vllm\"\n  model = \"m\"\n  container { image = \"i\" }").Replace(src)
	must.Do(t, os.WriteFile("other.hcl", []byte(container), 0o600))
	tokgate(t, "plan", "other.hcl").check(t, verdict.ExitPass, "Starts: unknown: 16 starts")
}

// The test forecasts the end of a run with servers that take 10 s to start. The first forecast is
// within 20 % of the actual time. It appears after the first turn of a server, or earlier if a
// previous run has shown how long the servers take to start.
func TestLongRunTellsItsEnd(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Do(t, os.WriteFile("slow.json", []byte(`{"name": "slow", "base": "default", "load_ms": 10000}`), 0o600))
	const src = `
server "a" {
  simulator { profile = "slow.json" }
}
server "b" {
  simulator { profile = "slow.json" }
}
workload "w" {
  for_each      = toset(["one", "two"])
  input_tokens  = 200
  output_tokens = { mean = 100, jitter = "10%" }
  load {
    concurrency = [1, 4]
    requests    = 80
  }
}
compare "c" {
  control   = server.a
  candidate = server.b
  rounds    = 8
  least_rounds = 8 # judged once, so its end is known
  tolerate { e2e = "mean +20%" }
}
`
	a := &app{color: "auto", Streams: Streams{Out: t.Output(), Err: t.Output()}}
	must.Do(t, os.WriteFile("gate.hcl", []byte(src), 0o600))
	p, diags := a.load("gate.hcl", inputs{}, false)
	must.Need(t, !diags.HasErrors(), "%v", diags)
	known := (*lastRun)(nil).forecast(p, nil, nil)
	for range 2 {
		c := clock.NewVirtual()
		var lines strings.Builder
		d := progress.New(&lines, progress.Options{Now: c.Now, Forecast: known})
		run := must.Get(exec.Run(t.Context(), exec.Config{
			Plan: p, Clock: c, Launch: (&server.Virtual{Clock: c}).Launch, Observer: d.Observe, JudgeComparison: comparisonLooks(p),
			Run: metric.Run{ID: "r", Salt: 1, Simulated: true},
		}))(t)
		said := regexp.MustCompile(`(?m)^ *(\w+)  .*(?:ETA of the run|levels, about) (\w+)$`).FindStringSubmatch(lines.String())
		must.Need(t, said != nil, "no line tells the end of the run:\n%s", lines.String())
		at, _ := time.ParseDuration(said[1])
		left, _ := time.ParseDuration(said[2])
		t.Logf("%s: %s and %s, it took %s", strings.TrimSpace(said[0]), at, left, run.End)
		must.Hold(t, math.Abs((at+left).Seconds()/run.End.Seconds()-1) <= 0.2, "told wrongly:\n%s", lines.String())
		// From this document the next run reads how long starts and levels took.
		doc := report.New(run, p, assert.Verdicts{}, report.Meta{})
		var b strings.Builder
		must.Do(t, doc.Write(&b))
		must.Do(t, os.WriteFile("results.json", []byte(b.String()), 0o600))
		last := readRunAt("results.json")
		known = last.forecast(p, nil, startTimes(p, last))
	}
}
