package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/sim"
	"github.com/tokgate/tokgate/strength"
)

var (
	redEarly      = flag.Int("red-early", 5, "simulated gates in each row of TestLongRedEarly")
	redEarlyTable = flag.String("red-early-table", "", "write what TestLongRedEarly counts to this file, as Markdown")
)

// A server that is ten times slower fails at the first look: after five batches of a closed loop, or
// after a quarter of a rate. One that is exactly at its limit rarely fails: a lower 99 % bound of 5 %
// allows 11 of 100.
func TestLongRedEarly(t *testing.T) {
	runs := *redEarly
	rows := []struct {
		name, load, stat string
		first            int // requests of the first look
	}{
		{"32 in flight", "concurrency = 32\n    waves = 20", "p95", 160},
		{"32 in flight", "concurrency = 32\n    waves = 20", "mean", 160},
		{"8 in flight", "concurrency = 8\n    waves = 20", "p95", 50},
		{"8 in flight", "concurrency = 8\n    waves = 20", "mean", 50},
		{"a rate", "rate = \"4 req/s\"\n    duration = \"5m\"", "p95", 300},
		{"a rate", "rate = \"4 req/s\"\n    duration = \"5m\"", "mean", 300},
	}
	lines := make([]string, len(rows))
	t.Cleanup(func() {
		if *redEarlyTable != "" && !t.Failed() {
			must.Do(t, os.WriteFile(*redEarlyTable, []byte(fmt.Sprintf("**Ten times slower, %d gates a row; the limit is twice the healthy value**\n\n"+
				"| load | threshold | red at the first look | after | the healthy run takes | at its limit: red |\n|---|---|---|---|---|---|\n%s\n", runs, strings.Join(lines, ""))), 0o644))
		}
	})
	for i, tt := range rows {
		t.Run(tt.name+", e2e "+tt.stat, func(t *testing.T) {
			t.Parallel()
			truth, healthy := measuredE2E(t, tt.load, tt.stat)
			slow := redEarlyPlan(t, tt.load, fmt.Sprintf("sla { e2e = \"%s < %.6fs\" }", tt.stat, 2*truth))
			var took time.Duration
			for seed := 1; seed <= runs; seed++ {
				run, v := redEarlyRun(t, slow, seed, tenTimesSlower(slow))
				l := run.Levels[0]
				if n := len(l.Looks); v.Outcome != verdict.Fail || n == 0 || l.Looks[n-1].Requests != tt.first {
					t.Fatalf("run %d: %v after looks %+v, want fail after %d requests", seed, v.Outcome, l.Looks, tt.first)
				}
				took += run.End / time.Duration(runs)
			}
			red := 0
			at := redEarlyPlan(t, tt.load, fmt.Sprintf("sla { e2e = \"%s < %.6fs\" }", tt.stat, truth))
			for seed := 1; seed <= runs; seed++ {
				if _, v := redEarlyRun(t, at, seed, nil); v.Outcome == verdict.Fail {
					red++
				}
			}
			lines[i] = fmt.Sprintf("| %s | e2e %s | %d of %d | %.0f s | %.0f s | %d of %d |\n", tt.name, tt.stat, runs, runs, took.Seconds(), healthy.Seconds(), red, runs)
			t.Log(lines[i])
			must.Hold(t, took <= 4*healthy, "a failing run takes %v, a healthy one %v", took, healthy)
			must.Hold(t, red <= 1+runs/10, "%d of %d runs of a server at its limit failed", red, runs)
		})
	}
}

// A comparison ends after the first starts if an exact threshold of the candidate fails for good. It then
// shows nothing about changes. Certified thresholds wait for the planned looks.
func TestRedAfterOneStart(t *testing.T) {
	for _, tt := range []struct {
		sla    string
		rounds int // of the first look
		fails  bool
	}{
		{`e2e = "every < 1ms"`, 1, true},
		{`e2e = "max < 1ms"`, 1, true},
		{`e2e = "p95 < 1ms"`, 3, true},
		{`e2e = "every < 1m"`, 3, false},
	} {
		p := planOf(t, fmt.Sprintf(`
server "a" {
  simulator {}
}
server "b" {
  simulator { seed = 2 }
}
workload "w" {
  server        = [server.a, server.b]
  input_tokens  = 256
  output_tokens = { mean = 16, jitter = "50%%" }
  load {
    concurrency = 8
    requests    = 480
  }
  sla { %s }
}
compare "them" {
  control   = server.a
  candidate = server.b
  changed   = ["simulator"]
  tolerate { e2e = "mean +20%%" }
}
`, tt.sla))
		run, v := redEarlyRun(t, p, 1, nil)
		looks := run.Comparisons[0].Looks
		if len(looks) == 0 || looks[0].Rounds != tt.rounds || (v.Outcome == verdict.Fail) != tt.fails {
			t.Errorf("%s: %v, looks %+v; want the first look after %d", tt.sla, v.Outcome, looks, tt.rounds)
		}
		for _, x := range v.List {
			if strings.HasPrefix(x.Name, "compare.them") && tt.rounds < 3 && x.Outcome == verdict.Pass {
				t.Errorf("%s: %s passes after %d round: %s", tt.sla, x.Name, tt.rounds, x.Message)
			}
		}
	}
}

func redEarlyPlan(t *testing.T, load, rest string) *plan.Plan {
	t.Helper()
	return planOf(t, fmt.Sprintf(`
server "s" {
  simulator {}
}
workload "w" {
  input_tokens  = 256
  output_tokens = { mean = 64, jitter = "50%%" }
  load {
    %s
  }
  %s
}
`, load, rest))
}

func planOf(t *testing.T, src string) *plan.Plan {
	t.Helper()
	path := t.TempDir() + "/plan.hcl"
	must.Do(t, os.WriteFile(path, []byte(src), 0o600))
	p, diags := (&app{color: "auto", Streams: Streams{Out: t.Output(), Err: t.Output()}}).load(path, inputs{}, false)
	must.Need(t, !diags.HasErrors(), "%v", diags)
	return p
}

func redEarlyRun(t *testing.T, p *plan.Plan, seed int, change func(*plan.Server, *sim.Profile)) (*metric.Run, assert.Verdicts) {
	t.Helper()
	run := must.Get(simulatedRun(t.Context(), p, seed, func(s *plan.Server, profile *sim.Profile) {
		if change != nil {
			change(s, profile)
		}
	}))(t)
	return run, assert.Judge(p, run, assert.Options{})
}

// measuredE2E returns a statistic of e2e over many runs, and the duration of one.
func measuredE2E(t *testing.T, load, stat string) (truth float64, took time.Duration) {
	t.Helper()
	p := redEarlyPlan(t, load, "sla { success = \"every\" }")
	p.Gate.MeasureOnly = true
	runs := 10 + *redEarly/3
	var all []float64
	for seed := 1001; seed <= 1000+runs; seed++ {
		run, _ := redEarlyRun(t, p, seed, nil)
		for _, x := range run.Levels[0].MeasuredSamples() {
			all = append(all, (x.End - x.Scheduled).Seconds())
		}
		took += run.End / time.Duration(runs)
	}
	slices.SortFunc(all, cmp.Compare)
	if stat == "p95" {
		return all[len(all)*95/100], took
	}
	for _, x := range all {
		truth += x / float64(len(all))
	}
	return truth, took
}

// tenTimesSlower plants all regressions of the factor ten.
func tenTimesSlower(p *plan.Plan) func(*plan.Server, *sim.Profile) {
	return func(_ *plan.Server, profile *sim.Profile) {
		for _, r := range strength.All() {
			if r.Size == 10 {
				r.Plant(p, profile)
			}
		}
	}
}
