package assert

import (
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Recorded is one run of the corpus. A test checks that its verdicts stay the same when all
// messages change.
type Recorded struct {
	Name string
	Plan *plan.Plan
	Run  *metric.Run
}

// Corpus returns recorded runs with every kind of outcome and cause. They also have every possible
// fault of a level, a comparison and a search.
func Corpus() []Recorded {
	return append(append(levelCorpus(), comparisonCorpus()...), searchCorpus()...)
}

func levelCorpus() []Recorded {
	var out []Recorded
	health := func(set func(*metric.Round)) func(*plan.Plan, *metric.Run) {
		return func(_ *plan.Plan, r *metric.Run) { set(r.Levels[0].Rounds[1]) }
	}
	sample := func(set func(*metric.Sample)) func(*plan.Plan, *metric.Run) {
		return func(_ *plan.Plan, r *metric.Run) { set(r.Levels[0].Rounds[0].Samples[0]) }
	}
	for _, c := range []struct {
		name   string
		bound  string
		change func(*plan.Plan, *metric.Run)
	}{
		{"pass", "p95 < 2s", nil}, {"fail", "p95 < 1us", nil}, {"mean", "mean < 1s", nil}, {"too few", "p99 < 2s", nil},
		{"no such level", "p95 < 2s", func(_ *plan.Plan, r *metric.Run) { r.Levels = nil }},
		{"not run", "p95 < 2s", func(_ *plan.Plan, r *metric.Run) { r.Levels[0].Skipped = "the budget was spent" }},
		{"left out", "p95 < 2s", func(_ *plan.Plan, r *metric.Run) { r.Levels[0].Skipped = metric.SkippedOnly }},
		{"server lost", "p95 < 2s", func(_ *plan.Plan, r *metric.Run) { r.Servers[0].Error = "it died" }},
		{"server not started", "p95 < 2s", func(_ *plan.Plan, r *metric.Run) { r.Servers = nil }},
		{"server unended", "p95 < 2s", func(_ *plan.Plan, r *metric.Run) { r.Servers[0].Unended = true }},
		{"another workload", "p95 < 2s", func(_ *plan.Plan, r *metric.Run) { r.Levels[0].Asked = &metric.Asked{Input: 7} }},
		{"another load", "p95 < 2s", func(_ *plan.Plan, r *metric.Run) { r.Levels[0].N = 3 }},
		{"a look too far", "p95 < 2s", func(_ *plan.Plan, r *metric.Run) { r.Levels[0].Looks = []metric.Look{{Requests: 999, Planned: 2}} }},
		{"a look", "p95 < 2s", func(_ *plan.Plan, r *metric.Run) { r.Levels[0].Looks = []metric.Look{{Requests: 50, Planned: 2}} }},
		{"CPU", "p95 < 2s", health(func(r *metric.Round) { r.Health.CPU = 0.95 })},
		{"delay", "p95 < 2s", health(func(r *metric.Round) { r.Health.Delay = time.Second })},
		{"stall", "max < 2s", health(func(r *metric.Round) { r.Health.Stall = 2 * time.Second })},
		{"cut short", "p95 < 2s", health(func(r *metric.Round) { r.Complete, r.Stopped = false, "interrupted" })},
		{"idle slots", "p95 < 2s", health(func(r *metric.Round) { r.Busy = 0.5 })},
		{"CPU and cut short", "p95 < 2s", health(func(r *metric.Round) { r.Health.CPU, r.Complete = 0.95, false })},
		{"without usage", "p95 < 2s", sample(func(x *metric.Sample) { x.Usage = nil })},
		{"short answer", "p95 < 2s", sample(func(x *metric.Sample) { x.Usage = &metric.Usage{Input: 1000, Output: 3} })},
		{"cached", "p95 < 2s", sample(func(x *metric.Sample) { x.Usage = &metric.Usage{Input: 1000, Output: 11, Cached: 900} })},
		{"one failed", "mean < 2s", sample(fail)},
		{"nothing completed", "p95 < 2s", func(_ *plan.Plan, r *metric.Run) {
			for _, round := range r.Levels[0].Rounds {
				for _, x := range round.Samples {
					fail(x)
				}
			}
		}},
	} {
		p, run := gate(shape{rounds: 8, perRound: 20, ttft: slow(0)}.level(), threshold("ttft", c.bound))
		if c.change != nil {
			c.change(p, run)
		}
		out = append(out, Recorded{c.name, p, run})
	}
	return out
}

func comparisonCorpus() []Recorded {
	var out []Recorded
	for _, c := range []struct {
		name   string
		factor float64
		claim  *plan.Claim
		change func(*plan.Plan, *metric.Run)
	}{
		{"unchanged servers", 1, tolerate("ttft mean +10%", "success rate -2pp"), nil},
		{"a slower candidate", 1.5, tolerate("ttft mean +10%", "e2e mean +5%"), nil},
		{"a faster candidate", 0.5, improve("ttft mean -10%"), nil},
		{"on the brink", 1.1, tolerate("ttft mean +10%"), nil},
		{"nothing that applies", 1, tolerate("cache_hit_rate +10%", "ttft mean +10%"), nil},
		{"nothing that applies at all", 1, tolerate("cache_hit_rate +10%"), nil},
		{"not compared", 1, tolerate("ttft mean +10%"), func(_ *plan.Plan, r *metric.Run) { r.Comparisons[0].Skipped = "the budget was spent" }},
		{"left out", 1, tolerate("ttft mean +10%"), func(_ *plan.Plan, r *metric.Run) { r.Comparisons[0].Skipped = metric.SkippedOnly }},
		{"one level left out", 1, tolerate("ttft mean +10%"), func(_ *plan.Plan, r *metric.Run) { r.Levels[0].Skipped = metric.SkippedOnly }},
		{"no comparison", 1, tolerate("ttft mean +10%"), func(_ *plan.Plan, r *metric.Run) { r.Comparisons = nil }},
		{"skipped by the plan", 1, tolerate("ttft mean +10%"), func(p *plan.Plan, _ *metric.Run) { p.Compares[0].Skip = "base is not set" }},
		{"nothing changed", 1, tolerate("ttft mean +10%"), func(p *plan.Plan, _ *metric.Run) { p.Compares[0].Skip, p.Compares[0].Unchanged = "the same", true }},
		{"nothing improved", 1, improve("ttft mean -10%"), func(p *plan.Plan, _ *metric.Run) { p.Compares[0].Skip, p.Compares[0].Unchanged = "the same", true }},
		{"servers that differ", 1, tolerate("ttft mean +10%"), func(_ *plan.Plan, r *metric.Run) {
			r.Servers[0].Fingerprint = metric.Fingerprint{"engine.version": "1"}
			r.Servers[1].Fingerprint = metric.Fingerprint{"engine.version": "2"}
		}},
		{"candidate not valid", 1, tolerate("ttft mean +10%"), func(_ *plan.Plan, r *metric.Run) { r.Levels[1].Rounds[0].Health.CPU = 1 }},
		{"candidate lost", 1, tolerate("ttft mean +10%"), func(_ *plan.Plan, r *metric.Run) { r.Servers[1].Error = "it died" }},
		{"candidate silent", 1, tolerate("ttft mean +10%"), func(_ *plan.Plan, r *metric.Run) {
			for _, round := range r.Levels[1].Rounds {
				for _, x := range round.Samples {
					fail(x)
				}
			}
		}},
	} {
		p, run := duel{rounds: 8, perRound: 20, control: noisy(1, 1, 0.01), candidate: noisy(2, c.factor, 0.01), claims: []*plan.Claim{c.claim}}.make()
		if c.change != nil {
			c.change(p, run)
		}
		out = append(out, Recorded{"compare: " + c.name, p, run})
	}
	return out
}

func searchCorpus() []Recorded {
	var out []Recorded
	for _, c := range []struct {
		name    string
		require int
		change  func(*plan.Plan, *metric.Run)
	}{
		{"found", 0, nil}, {"reached", 30, nil}, {"missed", 50, nil},
		{"not searched", 30, func(_ *plan.Plan, r *metric.Run) { r.Capacities = nil }},
		{"left out", 30, func(_ *plan.Plan, r *metric.Run) { r.Capacities[0].Reason = metric.SkippedOnly }},
		{"server lost", 30, func(_ *plan.Plan, r *metric.Run) { r.Servers[0].Error = "it died" }},
		{"a probe is lacking", 30, func(_ *plan.Plan, r *metric.Run) { r.Levels = r.Levels[1:] }},
		{"a short search", 38, func(_ *plan.Plan, r *metric.Run) { r.Capacities[0].Probes = r.Capacities[0].Probes[:6] }},
		{"a busy generator", 39, func(_ *plan.Plan, r *metric.Run) {
			for _, l := range r.Levels {
				if l.N > 36 {
					l.Rounds[0].Health.CPU = 0.95
				}
			}
		}},
		{"probes that were cut short", 39, func(_ *plan.Plan, r *metric.Run) {
			for _, l := range r.Levels {
				l.Rounds[0].Complete = false
			}
		}},
	} {
		p, run := searched(c.require, append([]metric.CapacityProbe(nil), exactly39...)...)
		if c.change != nil {
			c.change(p, run)
		}
		out = append(out, Recorded{"search: " + c.name, p, run})
	}
	return out
}
