package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
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
	"github.com/tokgate/tokgate/plan/starter"
	"github.com/tokgate/tokgate/sim"
	"github.com/tokgate/tokgate/strength"
)

var (
	strongRuns  = flag.Int("strong", 0, "`runs` of each gate, as it is and under each regression; 0: one of those that take less than a second")
	strongFirst = flag.Int("strong-first", 0, "`seed` of the first run")
	strongLog   = flag.String("strong-log", "", "`file` that keeps how each run ended: it is not made again")
	strongDoc   = flag.String("strong-table", "", "`file` for the table of all runs in the log")
)

// ending is a line of the log: how a gate judged one simulated run.
type ending struct {
	Gate    string // path of a plan, or the flags of init
	Hash    string // hash of the plan
	Planted string // name of the regression; "" for the unchanged server
	Seed    int
	Outcome string
}

// endings reads the lines of the log.
func endings(t *testing.T) (out []ending) {
	t.Helper()
	for _, line := range linesOf(t, *strongLog) {
		var e ending
		must.Do(t, json.Unmarshal(line, &e))
		out = append(out, e)
	}
	return out
}

// keep appends the ending to the file of the flag -strong-log. Without the flag it does nothing.
func (e ending) keep(t *testing.T) {
	if *strongLog == "" {
		return
	}
	line, _ := json.Marshal(e) // encoding text and numbers never fails
	appendLine(t, *strongLog, line)
}

// linesOf returns the lines of a file; nil if the file does not exist.
func linesOf(t *testing.T, path string) (out [][]byte) {
	t.Helper()
	if path == "" {
		return nil
	}
	src, err := os.ReadFile(path)
	must.Need(t, err == nil || errors.Is(err, fs.ErrNotExist), "%v", err)
	return slices.Collect(bytes.Lines(src))
}

func appendLine(t *testing.T, path string, line []byte) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.Write(append(line, '\n'))
		err = errors.Join(err, f.Close())
	}
	must.Hold(t, err == nil, "%v", err)
}

// noticed counts how often a gate passes and fails in runs with different seeds. planted names the
// regression that every candidate has; "" means an unchanged server. Runs that the log already has
// are not simulated again.
func noticed(t *testing.T, gate string, p *plan.Plan, runs int, planted string) strength.Tally {
	t.Helper()
	known := map[int]string{}
	for _, e := range endings(t) {
		if e.Gate == gate && e.Hash == p.Hash && e.Planted == planted {
			known[e.Seed] = e.Outcome
		}
	}
	var tally strength.Tally
	var mu sync.Mutex
	var wait sync.WaitGroup
	seeds := make(chan int)
	stored := map[string]*metric.Run{}
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for seed := range seeds {
				judged, err := simulateChanged(t.Context(), p, stored, seed, func(s *plan.Server, to *sim.Profile) {
					if strength.Changes(p, s.Address()) {
						plant(p, planted, to)
					}
				})
				mu.Lock()
				if err != nil {
					t.Errorf("%s: %v", p.Path, err)
				}
				tally.Add(judged.Outcome)
				ending{gate, p.Hash, planted, seed, judged.Outcome.String()}.keep(t)
				for i := range judged.List {
					if v := &judged.List[i]; planted == "" && v.Outcome > verdict.Pass && v.Outcome != verdict.Skipped {
						t.Logf("run %d: %s %s: %s", seed, v.Workload, v.Name, v.Message)
					}
				}
				mu.Unlock()
			}
		})
	}
	for seed := *strongFirst; seed < *strongFirst+runs; seed++ {
		if outcome, ok := known[seed]; ok {
			mu.Lock()
			tally.Add(outcomes[outcome])
			mu.Unlock()
			continue
		}
		seeds <- seed
	}
	close(seeds)
	wait.Wait()
	return tally
}

// outcomes maps the name of an outcome in the log to the outcome.
var outcomes = func() map[string]verdict.Outcome {
	out := map[string]verdict.Outcome{}
	for _, o := range []verdict.Outcome{verdict.Pass, verdict.Inconclusive, verdict.Fail, verdict.Error} {
		out[o.String()] = o
	}
	return out
}()

// tenTimes is the name of a regression that makes all steps of the server ten times as long. Other
// regressions make some steps a quarter longer.
const tenTimes = "ten times slower"

func plant(p *plan.Plan, planted string, to *sim.Profile) {
	switch planted {
	case "":
	case tenTimes:
		for _, kind := range []string{strength.Prefill, strength.Decode} {
			strength.Regression{Kind: kind, Size: 10}.Plant(p, to)
		}
	default:
		strength.Regression{Kind: planted, Size: 1.25}.Plant(p, to)
	}
}

// mostly fails the test if got is less than 95 % of the runs.
func mostly(t *testing.T, what string, got, runs int) {
	t.Helper()
	must.Hold(t, got*100 >= 95*runs, "%s in %d of %d runs", what, got, runs)
}

// The shipped gates pass an unchanged server, and fail a server that prefills or decodes a quarter
// slower. The plans in exempt need not fail it; a comment in each plan says why.
func TestLongShippedGates(t *testing.T) {
	exempt := map[string]bool{"demo.hcl": true, "chat.hcl": true, "conversations.hcl": true}
	slow := map[string]bool{"compare.hcl": true, "scenarios.hcl": true, "chat.hcl": true, "pull-request.hcl": true}
	files := must.Get(planFiles([]string{filepath.Join("..", "..", "plans"), filepath.Join("..", "..", "plans", "usecases")}, false))(t)
	runs := max(*strongRuns, 1)
	for _, path := range files {
		name := filepath.Base(path)
		if slow[name] && *strongRuns == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			a := &app{color: "auto", environ: slices.Clone(shippedEnviron), Streams: Streams{Out: t.Output(), Err: t.Output()}}
			p, diags := a.load(path, inputs{}, false)
			must.Need(t, !diags.HasErrors(), "%v", diags)
			gate := strings.TrimPrefix(filepath.ToSlash(path), "../../")
			mostly(t, "the server as it is passes", noticed(t, gate, p, runs, "").Passed, runs)
			for _, kind := range []string{strength.Decode, strength.Prefill} {
				if !exempt[name] {
					mostly(t, kind+" × 1.25 fails", noticed(t, gate, p, runs, kind).Failed, runs)
				}
			}
			must.Hold(t, !exempt[name] || strings.Contains(read(t, path), "slower by a quarter"), "no comment says why the gate notices no quarter")
		})
	}
}

// loaded makes the plan that init writes for the options, writes it to a file, and loads it.
func (o initOptions) loaded(t *testing.T, in inputs) *plan.Plan {
	t.Helper()
	text := must.Get(o.plan())(t)
	a := &app{color: "auto", Streams: Streams{Out: t.Output(), Err: t.Output()}}
	p, diags := a.load(writePlan(t, string(text)), in, false)
	must.Need(t, !diags.HasErrors(), "%v", diags)
	return p
}

// initOf returns options of `tokgate init --url` for the given use cases.
func initOf(useCases ...string) initOptions {
	return initOptions{file: "gate.hcl", answers: starter.Answers{Engine: "vllm", URL: "http://127.0.0.1:8000", UseCases: useCases}}
}

// Each gate that init writes passes the unchanged simulator. It fails a simulator that prefills and
// decodes ten times slower. This holds for every shipped profile. Combinations of use cases need no
// test, because they have the thresholds of all their use cases.
func TestLongInitNoticesTenfold(t *testing.T) {
	for _, u := range starter.UseCases {
		t.Run(u.Name, func(t *testing.T) {
			if *strongRuns == 0 && u.Input > 4<<10 {
				t.Skip("takes seconds: -strong 1")
			}
			p := initOf(u.Name).loaded(t, inputs{})
			runs := max(*strongRuns, 1)
			gate := "init --use-case " + u.Name
			mostly(t, "the server as it is passes", noticed(t, gate, p, runs, "").Passed, runs)
			for _, name := range sim.Profiles() {
				profile, err := sim.LoadProfile(name, "")
				if err != nil || profile.MaxModelLen < u.Input+2*u.Output || *strongRuns == 0 && name != "default" {
					continue
				}
				p.Servers[0].Simulator.Profile = name
				mostly(t, "ten times slower on "+name+", the gate fails", noticed(t, gate+" on "+name, p, 1, tenTimes).Failed, 1)
			}
		})
	}
}

// measuredIn returns a function that measures like init, but in virtual time. It uses the given
// shipped profile without a time limit. If profile is "", it uses the plan's profile.
func measuredIn(t *testing.T, profile string) func(*plan.Plan, time.Duration) (*metric.Run, error) {
	return func(p *plan.Plan, budget time.Duration) (*metric.Run, error) {
		if profile != "" {
			p.Servers[0].Simulator.Profile, budget = profile, 0
		}
		c := clock.NewVirtual()
		run, err := exec.Run(t.Context(), exec.Config{
			Plan: p, Clock: c, Launch: (&server.Virtual{Clock: c}).Launch, Observer: observers(), Budget: budget,
			Run: metric.Run{ID: "measured", Salt: 1000, Simulated: true},
		})
		must.Hold(t, budget <= 0 || run.End <= budget, "measured for %s", run.End)
		return run, err
	}
}

// A gate with the thresholds that init measures fails a server that is a quarter slower.
func TestLongInitMeasured(t *testing.T) {
	sets := [][]string{{"code_completion"}}
	if *strongRuns > 0 {
		sets = append(sets, []string{"chatbot"}, []string{"rag"}, []string{"chatbot", "rag"}, []string{"short_form_chatbot"}, []string{"agentic"}, []string{"general_chatbot"}, []string{"long_document"}, []string{"coding_assistant"})
	}
	for _, set := range sets {
		t.Run(strings.Join(set, " "), func(t *testing.T) {
			o := initOf(set...)
			var err error
			o.answers.Measured, err = o.measureEach(measuredIn(t, ""))
			must.Do(t, err)
			t.Log(o.answers.Measured)
			holds(t, "init --measure --use-case "+strings.Join(set, ","), o.loaded(t, inputs{}))
		})
	}
}

// init writes a comparison with the base branch. It must fail a server that is a quarter slower.
func TestLongInitUpgrade(t *testing.T) {
	o := initOf("chatbot")
	o.answers.URL, o.answers.Image, o.answers.Model, o.answers.Upgrade = "", "vllm/vllm-openai:v1", "Qwen/Qwen3-8B", true
	text := must.Get(o.plan())(t)
	// The base branch has the same plan, at the same path in its folder, with the image :v1 instead
	// of :v2.
	base := t.TempDir()
	t.Chdir(t.TempDir())
	for dir, image := range map[string]string{base: ":v1", ".": ":v2"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, "gate.hcl"), []byte(strings.ReplaceAll(string(text), ":v1", image)), 0o600))
	}
	a := &app{color: "auto", Streams: Streams{Out: t.Output(), Err: t.Output()}}
	p, diags := a.load("gate.hcl", inputs{base: base}, false)
	if diags.HasErrors() || p.Compares[0].Skip != "" {
		t.Fatal(diags, p.Compares[0].Skip)
	}
	if *strongRuns == 0 {
		mostly(t, "decode × 1.25 fails", noticed(t, "", p, 1, strength.Decode).Failed, 1)
		return
	}
	const gate = "init --upgrade --use-case chatbot"
	holds(t, gate, p)
	mostly(t, "ten times slower, the gate fails", noticed(t, gate, p, 1, tenTimes).Failed, 1)
}

// holds checks that a gate passes the unchanged server, and fails a server whose steps of one kind
// take a quarter longer.
func holds(t *testing.T, gate string, p *plan.Plan) {
	t.Helper()
	runs := max(*strongRuns, 1)
	mostly(t, "the server as it is passes", noticed(t, gate, p, runs, "").Passed, runs)
	for _, kind := range []string{strength.Decode, strength.Prefill} {
		mostly(t, kind+" × 1.25 fails", noticed(t, gate, p, runs, kind).Failed, runs)
	}
}

// TestLongStrengthTable writes a table of all runs in the log, with a row for each gate.
func TestLongStrengthTable(t *testing.T) {
	if *strongDoc == "" {
		t.Skip("writes a table: -strong-table")
	}
	must.Do(t, os.WriteFile(*strongDoc, []byte(strengthTable(endings(t))), 0o644))
}

// strengthTable returns a table of how often each gate passed the unchanged server, and how often
// it failed each regression. The gates that init writes for different profiles share a row.
func strengthTable(list []ending) string {
	type cell struct{ hits, runs int }
	cells := map[[2]string]*cell{}
	var gates []string
	for _, e := range list {
		gate, _, _ := strings.Cut(e.Gate, " on ")
		if !slices.Contains(gates, gate) {
			gates = append(gates, gate)
		}
		c := cells[[2]string{gate, e.Planted}]
		if c == nil {
			c = &cell{}
			cells[[2]string{gate, e.Planted}] = c
		}
		c.runs++
		if want := map[bool]string{true: "pass", false: "fail"}[e.Planted == ""]; e.Outcome == want || want == "fail" && e.Outcome == "error" {
			c.hits++
		}
	}
	slices.Sort(gates)
	out := "| gate | passes as it is | fails: decode × 1.25 | prefill × 1.25 | ten times slower |\n|---|---|---|---|---|\n"
	for _, gate := range gates {
		out += "| " + gate
		for _, planted := range []string{"", strength.Decode, strength.Prefill, tenTimes} {
			said := " | –"
			if c := cells[[2]string{gate, planted}]; c != nil {
				said = fmt.Sprintf(" | %d of %d", c.hits, c.runs)
			}
			out += said
		}
		out += " |\n"
	}
	return out
}

func TestStrengthTable(t *testing.T) {
	got := strengthTable([]ending{
		{"b.hcl", "", "", 0, "pass"}, {"b.hcl", "", "", 1, "inconclusive"}, {"b.hcl", "", strength.Decode, 0, "fail"},
		{"a on x", "", tenTimes, 0, "fail"}, {"a on y", "", tenTimes, 0, "pass"},
	})
	want := `| gate | passes as it is | fails: decode × 1.25 | prefill × 1.25 | ten times slower |
|---|---|---|---|---|
| a | – | – | – | 1 of 2 |
| b.hcl | 1 of 2 | 1 of 1 | – | – |
`
	must.Hold(t, got == want, "%s", got)
}

// TestLongSeldomReadings checks that verdicts do not change if the server's metrics are read only
// once a minute. The tests that count gates read them once a minute, to save time.
func TestLongSeldomReadings(t *testing.T) {
	for _, name := range []string{"capacity.hcl", "upgrade.hcl"} {
		a := &app{color: "auto", environ: slices.Clone(shippedEnviron), Streams: Streams{Out: t.Output(), Err: t.Output()}}
		p, diags := a.load(filepath.Join(plansDir, name), inputs{}, false)
		must.Need(t, !diags.HasErrors(), "%v", diags)
		var said []string
		for _, seldom := range []time.Duration{0, time.Minute} {
			c := clock.NewVirtual()
			run := must.Get(exec.Run(t.Context(), exec.Config{
				Plan: p, Clock: c, Launch: (&server.Virtual{Clock: c, Dir: filepath.Dir(p.Path), Seldom: seldom}).Launch, Observer: observers(),
				Judge: looks(p), JudgeComparison: comparisonLooks(p), Run: metric.Run{ID: "r", Salt: 1, Simulated: true},
			}))(t)
			verdicts := ""
			for _, v := range assert.Judge(p, run, assert.Options{}).List {
				if v.Required() {
					verdicts += fmt.Sprintln(v.Workload, v.Level, v.Name, v.Outcome, v.Value.V)
				}
			}
			said = append(said, verdicts)
		}
		diff := cmp.Diff(said[0], said[1])
		must.Hold(t, diff == "" && said[0] != "", "%s: %s", name, diff)
	}
}
