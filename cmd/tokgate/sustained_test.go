package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/sim"
)

var (
	sustainedGates = flag.Int("sustained", 2, "simulated gates of each cell of the table of sustained rates; of its largest level a third, of the drifting servers a quarter")
	sustainedTable = flag.String("sustained-table", "", "file for the table of sustained rates")
)

// steadyServer is a server of the table of sustained rates.
type steadyServer struct {
	name   string
	change func(*sim.Profile)
}

// rated is a level at a share of the server's largest rate.
type rated struct {
	near     float64
	requests int
}

// firstSaturation is when the first saturation of a default server has ended, in seconds after its
// start.
const firstSaturation = 66

// largestRate returns the largest rate of the default server, changed by f.
func largestRate(t *testing.T, f func(*sim.Profile)) float64 {
	run := ratedRun(t, 1, 10, 0, f)
	mean := 0.0
	for _, x := range run.Levels[0].Saturation {
		mean += x / float64(len(run.Levels[0].Saturation))
	}
	return mean
}

func ratedPlan(t *testing.T, rate float64, requests int) *plan.Plan {
	p, diags := decode.File(decode.Options{Path: "rate.hcl", Source: []byte(fmt.Sprintf(`server "s" {
  simulator {}
}
workload "chat" {
  input_tokens  = 256
  output_tokens = { mean = 96, jitter = "50%%" }
  load {
    rate     = "%.4f req/s"
    requests = %d
  }
  sla { backlog_growth = "< 2%%" }
}
`, rate, requests))})
	must.Need(t, !diags.HasErrors(), "%v", diags)
	return p
}

// ratedRun simulates a level at a rate, with a salt, on the default server as f changes it.
func ratedRun(t *testing.T, rate float64, requests, salt int, f func(*sim.Profile)) *metric.Run {
	t.Helper()
	run := must.Get(simulatedRun(t.Context(), ratedPlan(t, rate, requests), salt, func(_ *plan.Server, p *sim.Profile) { f(p) }))(t)
	return run
}

// sustained is the verdict on the growth of a backlog. without is the outcome without the rule that
// a saturation must follow a level whose backlog grew: as if every such saturation were fast.
type sustained struct {
	verdict.Verdict
	without  verdict.Outcome
	followed bool
}

func sustainedOf(t *testing.T, rate float64, requests, salt int, f func(*sim.Profile)) sustained {
	t.Helper()
	run := ratedRun(t, rate, requests, salt, f)
	judged := func(run *metric.Run) verdict.Verdict {
		verdicts := assert.Judge(ratedPlan(t, rate, requests), run, assert.Options{}).List
		i := slices.IndexFunc(verdicts, func(v verdict.Verdict) bool { return strings.Contains(v.Name, "backlog_growth") })
		return verdicts[i]
	}
	out := sustained{Verdict: judged(run), followed: run.Levels[0].After != nil}
	fast := *run.Levels[0]
	fast.After, fast.Unrecovered = slices.Repeat([]float64{10 * rate}, 10), false
	run.Levels = slices.Clone(run.Levels)
	run.Levels[0] = &fast
	out.without = judged(run).Outcome
	return out
}

// Where the backlog grew, a rate below the largest rate passes only if the server still carries it
// after the level. This takes away hardly a right pass, and leaves hardly a wrong one.
func TestLongSustained(t *testing.T) {
	var out strings.Builder
	steady := []steadyServer{
		{"default, noise of 2 % a step", func(*sim.Profile) {}},
		{"noise of 10 % that lasts 2 s", func(p *sim.Profile) { p.Noise.SlowCV, p.Noise.SlowS = 0.1, 2 }},
		{"2 % slower after the first saturation", func(p *sim.Profile) { p.Drift = &sim.Drift{AfterS: firstSaturation, Slower: 0.02} }},
	}
	sizes := []int{120, 300, 1200, 4500}
	fmt.Fprintf(&out, "\n**Lost to the saturation after the level**: passes without that rule; how many of them it follows; and how many become inconclusive / fail.\n\n| server | rate / largest | %d requests | %d | %d | %d |\n|---|---|---|---|---|---|\n", sizes[0], sizes[1], sizes[2], sizes[3])
	most := largestRate(t, func(*sim.Profile) {})
	for _, server := range steady {
		for _, near := range []float64{0.5, 0.85, 0.95} {
			t.Run(fmt.Sprintf("%s/%v", server.name, near), func(t *testing.T) {
				row := fmt.Sprintf("| %s | %.2f |", server.name, near)
				for _, requests := range sizes {
					row += lostAt(t, server, rated{near, requests}, most)
				}
				t.Log(row)
				out.WriteString(row + "\n")
			})
		}
	}
	t.Run("drifting", func(t *testing.T) { drifting(t, &out) })
	if *sustainedTable != "" {
		must.Do(t, os.WriteFile(*sustainedTable, []byte(out.String()), 0o644))
	}
	t.Log(out.String())
}

// lostAt returns a cell of the table: what the rule takes from a server that carries the rate.
func lostAt(t *testing.T, server steadyServer, at rated, most float64) (cell string) {
	gates := *sustainedGates
	if at.requests > 4000 {
		gates /= 3
	}
	passes, followed, lost := 0, 0, map[verdict.Outcome]int{}
	for salt := range gates {
		is := sustainedOf(t, at.near*most, at.requests, salt, server.change)
		if is.without == verdict.Pass {
			passes++
			lost[is.Outcome]++
			if is.followed {
				followed++
			}
		}
	}
	allowed := 1.0 / 40
	if at.near == 0.95 {
		allowed = 1.0 / 20
	}
	if n := passes - lost[verdict.Pass]; float64(n) > allowed*float64(passes)+1 { // one more by chance
		t.Errorf("%s, %d requests at %.2f of the largest rate: %d of %d passes are lost", server.name, at.requests, at.near, n, passes)
	}
	return fmt.Sprintf(" %d of %d; %d; %d / %d |", passes, gates, followed, lost[verdict.Inconclusive], lost[verdict.Fail])
}

// drifting writes a table of servers that become slower while requests arrive. None of them carries
// its rate to the end of the level.
func drifting(t *testing.T, out *strings.Builder) {
	few := func(p *sim.Profile) { p.Limits.MaxSeqs = 16 }
	most := largestRate(t, few)
	gates, greens := 0, 0
	fmt.Fprintf(out, "\n**Servers that become slower**, 16 requests at a time, times from the start of the server: without the rule, and with it.\n\n| server | rate / largest | level | passes without | passes | fails | inconclusive |\n|---|---|---|---|---|---|---|\n")
	for _, x := range []struct {
		name    string
		drift   sim.Drift
		near    float64
		minutes int
		gates   int // of 38
	}{
		{"10 % slower from minute 3", sim.Drift{AfterS: 180, Slower: 0.1}, 0.95, 5, 8},
		{"20 % slower from minute 4", sim.Drift{AfterS: 240, Slower: 0.2}, 0.90, 5, 8},
		{"2 % slower a minute", sim.Drift{SlowerPerMinute: 0.02}, 0.95, 5, 8},
		{"4 % slower a minute", sim.Drift{SlowerPerMinute: 0.04}, 0.95, 3, 14},
	} {
		n := max(*sustainedGates*x.gates/32, 1)
		rate := x.near * most
		requests := int(rate * 60 * float64(x.minutes))
		counts, passes := map[verdict.Outcome]int{}, 0
		for salt := range n {
			is := sustainedOf(t, rate, requests, salt, func(p *sim.Profile) {
				few(p)
				p.Drift = &x.drift
			})
			counts[is.Outcome]++
			if is.without == verdict.Pass {
				passes++
			}
			if is.Outcome == verdict.Pass && (!is.Value.OK || is.Value.V >= plan.DefaultGrowth) {
				t.Errorf("%s, salt %d: passes though its backlog grew: %s", x.name, salt, is.Message)
			}
		}
		gates, greens = gates+n, greens+counts[verdict.Pass]
		fmt.Fprintf(out, "| %s | %.2f | %d min | %d of %d | %d | %d | %d |\n", x.name, x.near, x.minutes, passes, n, counts[verdict.Pass], counts[verdict.Fail], counts[verdict.Inconclusive])
	}
	must.Hold(t, greens <= max(2*gates/38, 1), "%d of %d drifting servers pass", greens, gates)
}
