package assert

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

func TestCombine(t *testing.T) {
	sla := func(o verdict.Outcome, s verdict.Severity) verdict.Verdict {
		return verdict.Verdict{Kind: verdict.KindSLA, Outcome: o, Severity: s}
	}
	load := verdict.Verdict{Kind: verdict.KindLoad, Outcome: verdict.Pass}
	const err, warn = verdict.SeverityError, verdict.SeverityWarn
	for _, c := range []struct {
		name    string
		list    []verdict.Verdict
		on      plan.OnInconclusive
		measure bool
		want    verdict.Outcome
	}{
		{"nothing", nil, plan.Stop, false, verdict.Error},
		{"nothing, measure only", nil, plan.Stop, true, verdict.Error},
		{"measured only", []verdict.Verdict{load}, plan.Stop, true, verdict.Pass},
		{"measured, nothing judged", []verdict.Verdict{load}, plan.Stop, false, verdict.Error},
		{"judged, nothing measured", []verdict.Verdict{sla(verdict.Pass, err)}, plan.Stop, false, verdict.Error},
		{"pass", []verdict.Verdict{load, sla(verdict.Pass, err)}, plan.Stop, false, verdict.Pass},
		{"inconclusive over pass", []verdict.Verdict{load, sla(verdict.Inconclusive, err), sla(verdict.Pass, err)}, plan.Stop, false, verdict.Inconclusive},
		{"fail over inconclusive", []verdict.Verdict{load, sla(verdict.Fail, err), sla(verdict.Inconclusive, err)}, plan.Stop, false, verdict.Fail},
		{"error over fail", []verdict.Verdict{load, sla(verdict.Fail, err), sla(verdict.Error, err)}, plan.Stop, false, verdict.Error},
		{"pending is an error", []verdict.Verdict{load, sla(verdict.Pass, err), sla(verdict.Pending, err)}, plan.Stop, false, verdict.Error},
		{"no such outcome", []verdict.Verdict{load, sla(verdict.Pass, err), sla(verdict.Outcome(9), err)}, plan.Stop, false, verdict.Outcome(9)},
		{"skipped counts as nothing", []verdict.Verdict{load, sla(verdict.Skipped, err), sla(verdict.Pass, err)}, plan.Stop, false, verdict.Pass},
		{"all skipped", []verdict.Verdict{load, sla(verdict.Skipped, err)}, plan.Stop, false, verdict.Error},
		{"a warning does not fail", []verdict.Verdict{load, sla(verdict.Fail, warn), sla(verdict.Pass, err)}, plan.Stop, false, verdict.Pass},
		{"inconclusive that warns", []verdict.Verdict{load, sla(verdict.Inconclusive, err)}, plan.Warn, false, verdict.Pass},
		{"fail under warn", []verdict.Verdict{load, sla(verdict.Fail, err)}, plan.Warn, false, verdict.Fail},
		{"extend is stop", []verdict.Verdict{load, sla(verdict.Inconclusive, err)}, plan.Extend, false, verdict.Inconclusive},
		{"load fails", []verdict.Verdict{{Kind: verdict.KindLoad, Outcome: verdict.Error}, sla(verdict.Pass, err)}, plan.Stop, false, verdict.Error},
	} {
		j := judge{promised: &plan.Plan{}, run: &metric.Run{}}
		for _, v := range c.list {
			j.add(v, c.on)
		}
		got, why := verdict.Combine(j.list, c.measure)
		must.Hold(t, got == c.want, "%s: %v, want %v", c.name, got, c.want)
		code := (Verdicts{Outcome: got}).ExitCode(false)
		must.Hold(t, code != verdict.ExitPass || c.want == verdict.Pass, "%s: exit %d", c.name, code)
		must.Hold(t, why != "" || len(c.list) != 0, "%s is not explained", c.name)
	}
}

func TestExitCode(t *testing.T) {
	for o, want := range map[verdict.Outcome]int{verdict.Pass: 0, verdict.Fail: 1, verdict.Inconclusive: 3, verdict.Error: 4, verdict.Pending: 4, verdict.Skipped: 4, verdict.Outcome(9): 4} {
		must.Same(t, fmt.Sprintf("%v: exit", o), want, (Verdicts{Outcome: o}).ExitCode(false))
		must.Same(t, fmt.Sprintf("%v, interrupted: exit", o), 130, (Verdicts{Outcome: o}).ExitCode(true))
	}
	got := (Verdicts{}).ExitCode(false)
	must.Hold(t, got == verdict.ExitError, "the zero value exits %d", got)
}

func TestPolicies(t *testing.T) {
	short := func() *metric.Level { return shape{rounds: 5, perRound: 4}.level() } // too few: a p95 needs 59
	for _, c := range []struct {
		name   string
		change func(*plan.Plan)
		want   verdict.Outcome
	}{
		{"stop", func(*plan.Plan) {}, verdict.Inconclusive},
		{"warn", func(p *plan.Plan) { p.Workloads[0].Policy.OnInconclusive = plan.Warn }, verdict.Pass},
		{"extend", func(p *plan.Plan) { p.Workloads[0].Policy.OnInconclusive = plan.Extend }, verdict.Inconclusive},
		{"severity warn", func(p *plan.Plan) { p.Workloads[0].SLAs[0].Severity = plan.SeverityWarn }, verdict.Pass},
		{"estimate", func(p *plan.Plan) { p.Workloads[0].Policy.Decide = plan.Estimate }, verdict.Pass},
		// At 60% confidence, a p95 needs only 18 good requests, because 0.95¹⁸ < 0.4.
		{"confidence 60%", func(p *plan.Plan) { p.Workloads[0].Policy.Confidence = 0.6 }, verdict.Pass},
		{"no policy", func(p *plan.Plan) { p.Workloads[0].Policy = plan.Policy{} }, verdict.Inconclusive},
		{"at no level", func(p *plan.Plan) { p.Workloads[0].SLAs[0].At = nil }, verdict.Error},
		{"no sla", func(p *plan.Plan) { p.Workloads[0].SLAs = nil }, verdict.Error},
		{"measure only", func(p *plan.Plan) { p.Workloads[0].SLAs, p.Gate.MeasureOnly = nil, true }, verdict.Pass},
		{"no workload", func(p *plan.Plan) { p.Workloads = nil }, verdict.Error},
		{"no server", func(p *plan.Plan) { p.Servers = nil }, verdict.Error},
	} {
		p, run := gate(short(), threshold("ttft", "p95 < 2s"))
		c.change(p)
		if v := Judge(p, run, Options{}); v.Outcome != c.want {
			t.Errorf("%s: %v, want %v: %v", c.name, v.Outcome, c.want, names(v))
		}
	}
	// If the user left a case out, the verdict is only marked as partial.
	p, run := gate(shape{rounds: 5, perRound: 12}.level(), threshold("ttft", "p95 < 2s"))
	p.Workloads[0].Loads[0].Levels = append(p.Workloads[0].Loads[0].Levels, plan.Level{Name: "9", N: 9, Requests: 9, Rounds: 1})
	p.Workloads[0].SLAs[0].At = append(p.Workloads[0].SLAs[0].At, "9")
	run.Levels = append(run.Levels, &metric.Level{Server: "sim", Workload: "chat", Name: "9", Skipped: metric.SkippedOnly})
	v := Judge(p, run, Options{})
	must.Hold(t, v.Outcome == verdict.Pass && v.Partial && verdictOf(t, v, "sla.ttft.p95 at 9").Outcome == verdict.Skipped, "partial: %v %v", v.Partial, names(v))
}

// allThresholds returns every possible threshold, so that the tests cover every rule.
func allThresholds() []*plan.Threshold {
	return []*plan.Threshold{
		threshold("ttft", "p95 < 2s"), threshold("ttft", "mean < 2s"), threshold("ttft", "max < 2s"), threshold("ttft", "min < 2s"), threshold("ttft", "every < 2s"),
		threshold("ttfa", "p95 < 2s"), threshold("e2e", "p95 < 2s"), threshold("e2e", "mean < 2s"), threshold("tpot", "p95 < 2s"), threshold("tpot", "mean < 2s"),
		threshold("speed", "p5 > 10 tok/s"), threshold("speed", "mean > 10 tok/s"), threshold("speed", "min > 10 tok/s"), threshold("e2e_speed", "mean > 10 tok/s"),
		threshold("itl", "p95 < 30ms"), threshold("itl", "mean < 30ms"), threshold("itl", "every < 2s"), threshold("tokens_per_chunk", "mean < 2s"), threshold("lag", "p95 < 2s"),
		threshold("success", "rate >= 98%"), threshold("success", "observed >= 98%"), threshold("success", "every"),
		threshold("goodput", "share >= 95%"), threshold("goodput", "observed >= 95%"), threshold("goodput", "> 1 req/s"),
		threshold("throughput", "> 10 tok/s"), threshold("input_throughput", "> 10 tok/s"), threshold("request_rate", "> 1 req/s"), threshold("scaling_efficiency", "> 50%"),
		threshold("prefill_speed", "> 10 tok/s"), threshold("cache_hit_rate", "< 50%"), threshold("synchrony", "< 50%"),
	}
}

func withGood(p *plan.Plan) {
	p.Workloads[0].Good = []*plan.Threshold{{Metric: metric.MustLookup("ttft"), Op: plan.Less, Limit: 2}, {Metric: metric.MustLookup("itl"), Op: plan.Less, Limit: 0.03}}
}

// The record of a killed run has verdicts on all complete levels, but the run does not pass.
func TestServerWithoutEnd(t *testing.T) {
	p, run := gate(shape{rounds: 5, perRound: 60}.level(), threshold("ttft", "p95 < 2s"))
	run.Servers[0].Unended = true
	v := Judge(p, run, Options{})
	if start := verdictOf(t, v, "start"); v.Outcome != verdict.Error || start.Outcome != verdict.Error || verdictOf(t, v, "sla.ttft.p95 at 4").Outcome != verdict.Pass {
		t.Errorf("%v\n%s", v.Outcome, strings.Join(names(v), "\n"))
	}
}

// If part of a record is missing or broken, the run does not pass.
func TestFailsClosed(t *testing.T) {
	for name, change := range map[string]func(*metric.Run){
		"no levels":     func(r *metric.Run) { r.Levels = nil },
		"a nil level":   func(r *metric.Run) { r.Levels = []*metric.Level{nil} },
		"no servers":    func(r *metric.Run) { r.Servers = []*metric.ServerRun{nil} },
		"empty level":   func(r *metric.Run) { r.Levels[0] = &metric.Level{Server: "sim", Workload: "chat", Name: "4"} },
		"no rounds":     func(r *metric.Run) { r.Levels[0].Rounds = nil },
		"nil rounds":    func(r *metric.Run) { r.Levels[0].Rounds = make([]*metric.Round, 5) },
		"empty rounds":  func(r *metric.Run) { r.Levels[0].Rounds = []*metric.Round{{}, {}, {}, {}, {}} },
		"no samples":    func(r *metric.Run) { each(r, func(x *metric.Round) { x.Samples = nil }) },
		"nil samples":   func(r *metric.Run) { each(r, func(x *metric.Round) { x.Samples = make([]*metric.Sample, 12) }) },
		"zero samples":  func(r *metric.Run) { samples(r, func(x *metric.Sample) { *x = metric.Sample{Phase: metric.Measured} }) },
		"none measured": func(r *metric.Run) { samples(r, func(x *metric.Sample) { x.Phase = metric.Filler }) },
		"no due":        func(r *metric.Run) { each(r, func(x *metric.Round) { x.Due = 0 }) },
		"huge due":      func(r *metric.Run) { each(r, func(x *metric.Round) { x.Due = math.MaxInt32 }) },
		"all failed":    func(r *metric.Run) { samples(r, fail) },
		"no usage":      func(r *metric.Run) { samples(r, func(x *metric.Sample) { x.Usage = nil }) },
		"clock at zero": func(r *metric.Run) {
			samples(r, func(x *metric.Sample) { x.First, x.Last, x.FirstAnswer = 0, 0, 0; x.Usage = nil })
		},
		"cut short":     func(r *metric.Run) { each(r, func(x *metric.Round) { x.Complete = false }) },
		"busy NaN":      func(r *metric.Run) { each(r, func(x *metric.Round) { x.Busy = math.NaN() }) },
		"CPU NaN":       func(r *metric.Run) { each(r, func(x *metric.Round) { x.Health.CPU = math.NaN() }) },
		"server died":   func(r *metric.Run) { r.Servers[0].Error = "gone" },
		"one per round": func(r *metric.Run) { each(r, func(x *metric.Round) { x.Samples = x.Samples[:1] }) },
	} {
		p, run := gate(shape{rounds: 5, perRound: 12}.level(), allThresholds()...)
		withGood(p)
		change(run)
		v := Judge(p, run, Options{})
		must.Hold(t, v.Outcome == verdict.Error && v.ExitCode(false) == verdict.ExitError, "%s: the run is %v", name, v.Outcome)
		for _, x := range v.List {
			must.Hold(t, x.Kind != verdict.KindSLA || x.Outcome != verdict.Pass, "%s: %s passes: %s", name, x.Name, x.Message)
		}
	}
	for name, v := range map[string]Verdicts{"no plan": Judge(nil, &metric.Run{}, Options{}), "no run": Judge(&plan.Plan{}, nil, Options{}), "empty": Judge(&plan.Plan{}, &metric.Run{}, Options{})} {
		must.Hold(t, v.Outcome == verdict.Error && v.Why != "", "%s: %v, because %q", name, v.Outcome, v.Why)
	}
	// These limits cannot come from a checked plan.
	for _, limit := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		th := threshold("ttft", "p95 < 2s")
		th.Limit = limit
		p, run := gate(shape{rounds: 5, perRound: 40}.level(), th)
		v := Judge(p, run, Options{})
		must.Hold(t, v.Outcome != verdict.Pass, "limit %v passes", limit)
	}
	for _, th := range []*plan.Threshold{{Metric: metric.MustLookup("ttft")}, {Metric: metric.MustLookup("ttft"), Op: plan.Less, Limit: 2}, {Metric: metric.MustLookup("ttft"), Stat: metric.Stat{Kind: metric.Percentile, P: 95}, Op: "!", Limit: 2}, {Metric: metric.Def{Name: "x", Scope: metric.PerLevel}, Op: plan.Less, Limit: 2}} {
		p, run := gate(shape{rounds: 5, perRound: 40}.level(), th)
		v := Judge(p, run, Options{})
		must.Hold(t, v.Outcome != verdict.Pass, "threshold %+v passes", th)
	}
}

func each(r *metric.Run, change func(*metric.Round)) {
	for _, x := range r.Levels[0].Rounds {
		change(x)
	}
}

func samples(r *metric.Run, change func(*metric.Sample)) {
	each(r, func(x *metric.Round) {
		for _, s := range x.Samples {
			change(s)
		}
	})
}

// A good level passes every threshold. Without this test, the tests above would also accept a judge
// that never passes.
func TestAllPass(t *testing.T) {
	p, run := gate(shape{n: 1, rounds: 149, perRound: 5}.level(), allThresholds()...)
	withGood(p)
	for _, s := range p.Workloads[0].SLAs {
		for _, th := range s.Thresholds {
			if th.Metric.Name == "request_rate" || th.Metric.Name == "goodput" && th.Stat.Kind == metric.NoStat || th.Metric.Name == "throughput" || th.Metric.Name == "e2e_speed" {
				// A rate gets a low limit, because one slot with requests of 1.2 s makes less than
				// one a second.
				th.Limit = 0.5
			}
		}
	}
	run.Levels[0].Name, p.Workloads[0].Loads[0].Levels[0].Name, p.Workloads[0].SLAs[0].At = "1", "1", []string{"1"}
	v := Judge(p, run, Options{})
	for _, x := range v.List {
		must.Hold(t, x.Outcome == verdict.Pass || x.Name == "sla.synchrony at 1", "%s: %v: %s %s", x.Name, x.Outcome, x.Message, x.Needs)
	}
}

// FuzzJudge judges damaged records.
func FuzzJudge(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint8(seed), uint8(3*seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, rounds, perRound uint8) {
		r := rand.New(rand.NewPCG(seed, 1))
		l := shape{n: 1 + r.IntN(5), rounds: int(rounds % 12), perRound: int(perRound % 40)}.level()
		wild := func() time.Duration {
			return []time.Duration{0, -1, 1, time.Second, math.MaxInt64, math.MinInt64, time.Duration(r.Int64())}[r.IntN(7)]
		}
		for _, round := range l.Rounds {
			for _, x := range round.Samples {
				switch r.IntN(12) {
				case 0:
					x.First = wild()
				case 1:
					x.Sent, x.Last = wild(), wild()
				case 2:
					x.End = wild()
				case 3:
					x.Gaps = nil
				case 4:
					x.Usage = &metric.Usage{Input: int(r.Int64()), Output: -int(r.Int32()), Cached: int(r.Int32())}
				case 5:
					x.Failure = &metric.Failure{}
				case 6:
					x.Chunks, x.Slot, x.FirstTokens = r.IntN(3)-1, r.IntN(9)-3, int(r.Int32())
				}
			}
			switch r.IntN(12) {
			case 0:
				round.WindowStart, round.WindowEnd = wild(), wild()
			case 1:
				round.Due = r.IntN(100) - 20
			case 2:
				round.Health = metric.Health{CPU: 2 * r.Float64(), Delay: wild(), GCPause: wild()}
			}
		}
		if r.IntN(8) == 0 {
			l.N = int(r.Int64()) - 5
		}
		p, run := gate(l, allThresholds()...)
		withGood(p)
		if r.IntN(3) == 0 {
			p.Workloads[0].Policy.Decide = plan.Estimate
		}
		v := Judge(p, run, Options{})
		must.Need(t, v.Outcome >= verdict.Pass && v.Outcome <= verdict.Error, "the run is %v", v.Outcome)
		completed := 0
		for _, x := range l.MeasuredSamples() {
			if x.Completed() {
				completed++
			}
		}
		for _, x := range v.List {
			must.Need(t, x.Outcome != verdict.Pass || x.Kind == verdict.KindServer || completed != 0, "%s passes though nothing completed: %s", x.Name, x.Message)
			must.Need(t, x.Outcome != verdict.Pending && x.Message != "" && !strings.ContainsAny(x.Message, "\n\r"), "%s: %v %q", x.Name, x.Outcome, x.Message)
			must.Need(t, x.Kind != verdict.KindSLA || !x.Low.OK || x.Low.V <= x.High.V, "%s: bounds [%v, %v]", x.Name, x.Low.V, x.High.V)
		}
		_, err := json.Marshal(run)
		must.Need(t, err == nil || strings.Contains(err.Error(), "unsupported value"), "%v", err)
	})
}

// One more failed request never turns a failed gate into a passed one. If all requests of a level
// fail, the level never passes.
func TestLongFailuresNeverHelp(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for range 60 {
		scale := 0.3 + 1.2*r.Float64()
		l := shape{rounds: 5, perRound: 20 + r.IntN(40), ttft: func(int, int) float64 { return scale * (0.5 + r.ExpFloat64()/2) }}.level()
		all := []*plan.Threshold{threshold("ttft", "p95 < 2s"), threshold("ttft", "p50 < 2s"), threshold("ttft", "mean < 2s"), threshold("ttft", "every < 2s"), threshold("success", "every")}
		p, run := gate(l, all...)
		before := Judge(p, run, Options{})
		samples := l.MeasuredSamples()
		fail(samples[r.IntN(len(samples))])
		after := Judge(p, run, Options{})
		if after.Outcome < before.Outcome && !(before.Outcome == verdict.Error) || after.Outcome == verdict.Pass {
			t.Fatalf("a failure turns\n%v into\n%v", names(before), names(after))
		}
		for i, a := range before.List {
			b := after.List[i]
			must.Need(t, a.Outcome != verdict.Fail || b.Outcome != verdict.Pass, "a failure turns %s from %q into %q", a.Name, a.Message, b.Message)
		}
	}
}
