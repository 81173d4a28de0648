package report

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// drawnComparison returns a plan with a comparison, and a run of it with random problems. Servers
// are slower, requests fail, the generator is late, or rounds are missing.
func drawnComparison(r *rand.Rand) (*plan.Plan, *metric.Run) {
	chance := func(p float64) bool { return r.Float64() < p }
	policy := plan.Policy{Confidence: 0.95, Decide: plan.Certified, OnInconclusive: plan.Stop}
	if chance(.2) {
		policy.OnInconclusive = plan.Warn
	}
	if chance(.2) {
		policy.Decide = plan.Estimate
	}
	a, b := &plan.Server{Name: "a"}, &plan.Server{Name: "b"}
	load := &plan.Load{Kind: metric.ClosedLoop}
	w := &plan.Workload{Name: "chat", Servers: []*plan.Server{a, b}, Policy: policy, Loads: []*plan.Load{load}}
	run := &metric.Run{ID: "1", Servers: []*metric.ServerRun{{Address: "a"}, {Address: "b"}},
		Comparisons: []*metric.Comparison{{Name: "c", Control: "a", Candidate: "b", Restart: string(plan.RestartLeg)}}}
	const rounds, each = 6, 12
	for _, name := range []string{"4", "8"}[:1+r.IntN(2)] {
		load.Levels = append(load.Levels, plan.Level{Name: name, N: 4, Requests: rounds * each, Rounds: rounds})
		for side, server := range []string{"a", "b"} {
			factor, failing := 1.0, 0.0
			if side == 1 {
				factor, failing = []float64{.8, 1, 1, 1.05, 1.2, 1.5}[r.IntN(6)], []float64{0, 0, 0, .1, 1}[r.IntN(5)]
			}
			run.Levels = append(run.Levels, drawnLevel(r, server, name, rounds, each, factor, failing))
		}
	}
	l := run.Levels[r.IntN(len(run.Levels))]
	round := l.Rounds[r.IntN(rounds)]
	switch r.IntN(12) {
	case 0:
		round.Busy = .5
	case 1:
		round.Health.CPU = 1
	case 2:
		round.Health.Stall = 3 * time.Second
	case 3:
		l.Rounds = l.Rounds[:rounds-1]
	case 4:
		round.Leg = nil
	case 5:
		l.Voided = []*metric.Round{round}
	case 6:
		run.Servers[r.IntN(2)].Error = "it died"
	case 7:
		run.Comparisons = nil
	case 8:
		l.Skipped = "the budget was spent"
	case 9:
		run.Servers[0].Fingerprint = metric.Fingerprint{"version": "2"}
	}
	change := func(name, stat string, limit float64) *plan.ChangeBound {
		s, _ := metric.ParseStat(stat)
		return &plan.ChangeBound{Metric: metric.MustLookup(name), Stat: s, Limit: limit, Text: stat}
	}
	c := &plan.Compare{Name: "c", Control: plan.Control{Server: a}, Candidate: b, Rounds: rounds, Restart: plan.RestartLeg, Policy: policy}
	for range 1 + r.IntN(2) {
		claim := &plan.Claim{Severity: plan.SeverityError, Workloads: []*plan.Workload{w}, Improve: chance(.2)}
		if chance(.2) {
			claim.Severity = plan.SeverityWarn
		}
		for _, level := range load.Levels {
			claim.At = append(claim.At, level.Name)
		}
		limit := .05
		if claim.Improve {
			limit = -.05
		}
		changes := []*plan.ChangeBound{change("ttft", "mean", limit), change("e2e", "mean", limit), change("throughput", "", -limit), change("ttft", "p95", limit)}
		claim.Changes = changes[:1+r.IntN(len(changes))]
		c.Claims = append(c.Claims, claim)
	}
	return &plan.Plan{Path: "c.hcl", Gate: plan.Gate{Policy: policy}, Servers: []*plan.Server{a, b}, Workloads: []*plan.Workload{w}, Compares: []*plan.Compare{c}}, run
}

func drawnLevel(r *rand.Rand, server, name string, rounds, each int, factor, failing float64) *metric.Level {
	l := &metric.Level{Server: server, Workload: "chat", Name: name, Kind: metric.ClosedLoop, N: 4, Exact: true}
	at := time.Second
	for i := range rounds {
		round := &metric.Round{Index: i, Seed: int64(i), Due: each, Complete: true, Busy: 1, Start: at, WindowStart: at, Health: metric.Health{CPU: .1}, Leg: &metric.Leg{Slot: 2 * i, Start: i}}
		for k := range each {
			sent := at + time.Duration(k/4)*4*time.Second
			first := sent + time.Duration(factor*math.Exp(.2*r.NormFloat64())*1e9)
			s := &metric.Sample{Server: server, Workload: "chat", Level: name, Round: i, Slot: k % 4, Order: k, Phase: metric.Measured, Scheduled: sent, Sent: sent, Headers: first, First: first,
				Last: first, End: first, Chunks: 1, FirstTokens: 1, InputAsked: 10, OutputAsked: 1, Status: 200, Finish: "length", Usage: &metric.Usage{Input: 10, Output: 1}}
			if r.Float64() < failing {
				s.Failure = &metric.Failure{Kind: metric.FailStream, Message: "gone"}
			}
			round.Samples = append(round.Samples, s)
			round.End = max(round.End, s.End)
		}
		round.WindowEnd, at = round.End, round.End+time.Second
		l.Rounds = append(l.Rounds, round)
	}
	return l
}

// The summary line of a comparison agrees with the verdicts on its changes. A failed change never
// gives a passing line, and passed changes never give the answer "no".
//
// A comparison that was not possible is never shown as passed, not even in JUnit.
func TestComparisonLines(t *testing.T) {
	seen := map[verdict.Outcome]int{}
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 15))
		p, run := drawnComparison(r)
		v := assert.Judge(p, run, assert.Options{})
		d := New(run, p, v, Meta{ExitCode: verdict.ExitCode(v.Outcome)})
		own := d.Verdicts[slices.IndexFunc(d.Verdicts, func(v verdict.Verdict) bool { return v.Name == "compare.c" })]
		seen[own.Outcome]++
		worst := verdict.Outcome(verdict.Pass)
		rank := map[verdict.Outcome]int{verdict.Skipped: 0, verdict.Pass: 1, verdict.Inconclusive: 2, verdict.Fail: 3, verdict.Error: 4}
		invalid := false // true if the verdict on a server or on the load is bad
		for _, x := range d.Verdicts {
			if x.Kind == "load" && x.Outcome != verdict.Pass || x.Kind == "server" && x.Outcome == verdict.Error {
				invalid = true
			}
			if x.Kind != "compare" || x.Name == own.Name || x.Severity == verdict.SeverityWarn || x.Warn && x.Outcome == verdict.Inconclusive {
				continue
			}
			if rank[x.Outcome] > rank[worst] {
				worst = x.Outcome
			}
			if level := slices.IndexFunc(d.Verdicts, func(l verdict.Verdict) bool {
				return l.Kind == "load" && l.Level == x.Level && l.Outcome != verdict.Pass
			}); level >= 0 && x.Outcome == verdict.Pass {
				t.Errorf("seed %d: %s passes, and %s on %s is not valid", seed, x.Name, d.Verdicts[level].Name, d.Verdicts[level].Server)
			}
		}
		must.Hold(t, rank[own.Outcome] >= rank[worst], "seed %d: the line is %s above what is %s: %s", seed, own.Outcome, worst, own.Message)
		must.Hold(t, !invalid || own.Outcome == verdict.Error, "seed %d: the line is %s, and something was not measured: %s", seed, own.Outcome, own.Message)
		for _, c := range d.Comparisons {
			for _, x := range c.Decisions {
				if strings.HasPrefix(x.Why, "fails its requirements") && own.Outcome != verdict.Fail && own.Outcome != verdict.Error {
					t.Errorf("seed %d: %s %s beside %s: %s", seed, x.Answer, x.Workload, own.Outcome, x.Why)
				}
			}
		}
		failed := 0
		for _, x := range d.Verdicts {
			if x.Name != own.Name && x.Status() == verdict.StatusFail {
				failed++
			}
		}
		if tally := d.Tally(); tally.Failed != failed || tally.Met+tally.Failed > tally.Required {
			t.Errorf("seed %d: %+v, and %d changes failed: %s", seed, tally, failed, d.Headline())
		}
		root, _ := junitOf(t, d)
		green := true
		for _, c := range cases(root) {
			if name, _ := c.attr("name"); name == own.Name {
				green = len(c.all("failure"))+len(c.all("error"))+len(c.all("skipped")) == 0
			}
		}
		bad := own.Outcome == verdict.Error || own.Outcome == verdict.Fail
		must.Hold(t, !bad || !green, "seed %d: %s is green in JUnit, and %s", seed, own.Name, own.Outcome)
	}
	for _, o := range []verdict.Outcome{verdict.Pass, verdict.Fail, verdict.Inconclusive, verdict.Error} {
		must.Hold(t, seen[o] >= 10, "only %d of 400 lines are %s", seen[o], o)
	}
}
