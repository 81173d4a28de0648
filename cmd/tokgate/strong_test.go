package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/server"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/starter"
	"github.com/tokgate/tokgate/sim"
	"github.com/tokgate/tokgate/strength"
)

var (
	strongRuns = flag.Int("strong", 0, "`runs` of each gate, as it is and under each regression; 0: one of those that take less than a second")
	strongDoc  = flag.String("strong-table", "", "`file` for the table of TestLongShippedGates")
)

// noticed counts how a gate ends with the server as it is, and with what change
// does to each profile of a candidate.
func noticed(t *testing.T, p *plan.Plan, runs int, change func(*sim.Profile)) strength.Tally {
	t.Helper()
	var tally strength.Tally
	var mu sync.Mutex
	var wait sync.WaitGroup
	seeds := make(chan int)
	stored := map[string]*metric.Run{}
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for seed := range seeds {
				judged, err := simulateChanged(t.Context(), p, stored, seed, func(s *plan.Server, to *sim.Profile) {
					if change != nil && strength.Changes(p, s.Address()) {
						change(to)
					}
				})
				mu.Lock()
				if err != nil {
					t.Errorf("%s: %v", p.Path, err)
				}
				tally.Add(judged.Outcome)
				for i := range judged.List {
					if v := &judged.List[i]; change == nil && v.Outcome > assert.Pass && v.Outcome != assert.Skipped {
						t.Logf("run %d: %s %s: %s", seed, v.Workload, v.Name, v.Message)
					}
				}
				mu.Unlock()
			}
		})
	}
	for seed := range runs {
		seeds <- seed
	}
	close(seeds)
	wait.Wait()
	return tally
}

// quarter plants a quarter more of one kind.
func quarter(p *plan.Plan, kind string) func(*sim.Profile) {
	return func(to *sim.Profile) { strength.Regression{Kind: kind, Size: 1.25}.Plant(p, to) }
}

// tenfold makes every step ten times as long.
func tenfold(to *sim.Profile) {
	for _, kind := range []string{strength.Prefill, strength.Decode} {
		strength.Regression{Kind: kind, Size: 10}.Plant(nil, to)
	}
}

// mostly asks for 95 of 100, and of few runs all but one in twenty.
func mostly(t *testing.T, what string, got, runs int) {
	t.Helper()
	if got*100 < 95*runs {
		t.Errorf("%s in %d of %d runs", what, got, runs)
	}
}

// The gates that ship pass the server as it is, and fail one that prefills or
// decodes slower by a quarter. Two are exempt, and say why.
func TestLongShippedGates(t *testing.T) {
	exempt := map[string]bool{"demo.hcl": true, "chat.hcl": true}
	slow := map[string]bool{"compare.hcl": true, "scenarios.hcl": true, "chat.hcl": true, "pull-request.hcl": true}
	files, err := planFiles([]string{filepath.Join("..", "..", "plans"), filepath.Join("..", "..", "plans", "usecases")}, false)
	if err != nil {
		t.Fatal(err)
	}
	runs := max(*strongRuns, 1)
	table := "| plan | passes as it is | fails: decode × 1.25 | fails: prefill × 1.25 |\n|---|---|---|---|\n"
	for _, path := range files {
		name := filepath.Base(path)
		if slow[name] && *strongRuns == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			a := &app{color: "auto", environ: slices.Clone(shippedEnviron), Streams: Streams{Out: t.Output(), Err: t.Output()}}
			p, diags := a.load(path, inputs{}, false)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			row := []string{strings.TrimPrefix(filepath.ToSlash(path), "../../")}
			unchanged := noticed(t, p, runs, nil)
			mostly(t, "the server as it is passes", unchanged.Passed, runs)
			row = append(row, fmt.Sprint(unchanged.Passed))
			for _, kind := range []string{strength.Decode, strength.Prefill} {
				got := noticed(t, p, runs, quarter(p, kind))
				if !exempt[name] {
					mostly(t, kind+" × 1.25 fails", got.Failed, runs)
				}
				row = append(row, fmt.Sprint(got.Failed))
			}
			if exempt[name] {
				if !strings.Contains(read(t, path), "slower by a quarter") {
					t.Error("no comment says why the gate notices no quarter")
				}
				row[0] += " (exempt)"
			}
			t.Log(row)
			table += "| " + strings.Join(row, " | ") + " |\n"
		})
	}
	if *strongDoc != "" {
		if err := os.WriteFile(*strongDoc, []byte(fmt.Sprintf("Of %d runs each:\n\n%s", runs, table)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// loaded is the plan that init writes for the options, from a file.
func (o initOptions) loaded(t *testing.T, in inputs) *plan.Plan {
	t.Helper()
	text, err := o.plan()
	if err != nil {
		t.Fatal(err)
	}
	a := &app{color: "auto", Streams: Streams{Out: t.Output(), Err: t.Output()}}
	p, diags := a.load(writePlan(t, string(text)), in, false)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return p
}

// initOf are the options of `tokgate init --url` for use cases.
func initOf(useCases ...string) initOptions {
	return initOptions{file: "gate.hcl", answers: starter.Answers{Engine: "vllm", URL: "http://127.0.0.1:8000", UseCases: useCases}}
}

// Each gate that init writes passes the server of its simulator block, and fails
// one that prefills and decodes ten times slower, whichever shipped profile it
// has; so does any combination, which has the requirements of all.
func TestLongInitNoticesTenfold(t *testing.T) {
	for _, u := range starter.UseCases {
		t.Run(u.Name, func(t *testing.T) {
			if *strongRuns == 0 && u.Input > 4<<10 {
				t.Skip("takes seconds: -strong 1")
			}
			p := initOf(u.Name).loaded(t, inputs{})
			runs := max(*strongRuns, 1)
			mostly(t, "the server as it is passes", noticed(t, p, runs, nil).Passed, runs)
			for _, name := range sim.Profiles() {
				profile, err := sim.LoadProfile(name, "")
				if err != nil || profile.MaxModelLen < u.Input+2*u.Output || *strongRuns == 0 && name != "default" {
					continue
				}
				p.Servers[0].Simulator.Profile = name
				mostly(t, "ten times slower on "+name+", the gate fails", noticed(t, p, runs, tenfold).Failed, runs)
			}
		})
	}
}

// What init measures becomes a gate that notices a quarter.
func TestLongInitMeasured(t *testing.T) {
	sets := [][]string{{"code_completion"}}
	if *strongRuns > 0 {
		sets = append(sets, []string{"chatbot"}, []string{"rag"}, []string{"chatbot", "rag"}, []string{"short_form_chatbot"}, []string{"agentic"}, []string{"general_chatbot"}, []string{"long_document"}, []string{"coding_assistant"})
	}
	for _, set := range sets {
		t.Run(strings.Join(set, " "), func(t *testing.T) {
			o := initOf(set...)
			var err error
			o.answers.Measured, err = o.measureEach(func(p *plan.Plan, budget time.Duration) (*metric.Run, error) {
				c := clock.NewVirtual()
				run, err := exec.Run(t.Context(), exec.Config{
					Plan: p, Clock: c, Launch: (&server.Virtual{Clock: c}).Launch, Observer: observers{}, Budget: budget,
					Run: metric.Run{ID: "measured", Salt: 1000, Simulated: true},
				})
				if run.End > budget {
					t.Errorf("measured for %s", run.End)
				}
				return run, err
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Log(o.answers.Measured)
			holds(t, o.loaded(t, inputs{}))
		})
	}
}

// So does the comparison with the base branch.
func TestLongInitUpgrade(t *testing.T) {
	o := initOf("chatbot")
	o.answers.URL, o.answers.Image, o.answers.Model, o.answers.Upgrade = "", "vllm/vllm-openai:v1", "Qwen/Qwen3-8B", true
	text, err := o.plan()
	if err != nil {
		t.Fatal(err)
	}
	// The plan is looked for at its path in the repository.
	base := t.TempDir()
	t.Chdir(t.TempDir())
	for dir, image := range map[string]string{base: ":v1", ".": ":v2"} {
		if err := os.WriteFile(filepath.Join(dir, "gate.hcl"), []byte(strings.ReplaceAll(string(text), ":v1", image)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := &app{color: "auto", Streams: Streams{Out: t.Output(), Err: t.Output()}}
	p, diags := a.load("gate.hcl", inputs{base: base}, false)
	if diags.HasErrors() || p.Compares[0].Skip != "" {
		t.Fatal(diags, p.Compares[0].Skip)
	}
	if *strongRuns == 0 {
		mostly(t, "decode × 1.25 fails", noticed(t, p, 1, quarter(p, strength.Decode)).Failed, 1)
		return
	}
	holds(t, p)
	mostly(t, "ten times slower, the gate fails", noticed(t, p, 1, tenfold).Failed, 1)
}

// holds says that a gate passes the server as it is and notices a quarter.
func holds(t *testing.T, p *plan.Plan) {
	t.Helper()
	runs := max(*strongRuns, 1)
	mostly(t, "the server as it is passes", noticed(t, p, runs, nil).Passed, runs)
	for _, kind := range []string{strength.Decode, strength.Prefill} {
		mostly(t, kind+" × 1.25 fails", noticed(t, p, runs, quarter(p, kind)).Failed, runs)
	}
}
