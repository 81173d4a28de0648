package assert

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// searched returns a plan and a recorded capacity search. With n requests in flight the server's
// TTFT is n·50 ms, so TTFT stays below 2 s up to level 39.
func searched(require int, visits ...metric.CapacityProbe) (*plan.Plan, *metric.Run) {
	p, run := gate(&metric.Level{Name: "4", Kind: metric.ClosedLoop, N: 4}, threshold("ttft", "p95 < 2s"))
	w := p.Workloads[0]
	w.Loads = nil
	w.SLAs[0].At, w.SLAs[0].AtCapacity = nil, true
	w.Capacity = &plan.Capacity{Over: metric.ClosedLoop, From: 1, UpTo: 64, Resolution: 1, Require: require, Confirm: true}
	c := &metric.Capacity{Server: "sim", Workload: "chat", Over: metric.ClosedLoop, From: 1, UpTo: 64, Require: require,
		Bracket: metric.Bracket{Kind: metric.CapacityExact, Pass: 39, Fail: 40, Confirmed: true}, Reason: "the limit is found to within the resolution",
		Line: "39 requests in flight · limited by ttft: 1.95 s at 39, 2 s at 40", Probes: visits}
	run.Levels, run.Capacities = nil, []*metric.Capacity{c}
	for i := range c.Probes {
		v := &c.Probes[i]
		v.Level = fmt.Sprintf("probe %d set %d", v.N, v.Set)
		if slices.ContainsFunc(run.Levels, func(l *metric.Level) bool { return l.Name == v.Level }) {
			continue
		}
		l := shape{lean: true, n: v.N, rounds: 10, perRound: 2 * v.N, ttft: func(int, int) float64 { return 0.05 * float64(v.N) }}.level()
		l.Name, l.Probe = v.Level, &metric.Probe{Purpose: v.Purpose, Set: v.Set}
		l.Looks = []metric.Look{{Requests: 20 * v.N, Planned: 1, Outcome: v.Outcome}}
		run.Levels = append(run.Levels, l)
	}
	for i := range c.Probes {
		c.Probes[i].Requests = 20 * c.Probes[i].N
	}
	return p, run
}

func visit(n int, purpose string, set int, outcome string) metric.CapacityProbe {
	p := metric.CapacityProbe{N: n, Purpose: purpose, Set: set, Note: outcome}
	_ = p.Outcome.UnmarshalText([]byte(outcome)) // "slow" and "few" are what a case makes of the probe
	return p
}

var exactly39 = []metric.CapacityProbe{visit(8, "ladder", 0, "pass"), visit(32, "ladder", 0, "pass"), visit(64, "ladder", 0, "fail"), visit(48, "bisect", 0, "fail"),
	visit(40, "bisect", 0, "fail"), visit(36, "bisect", 0, "pass"), visit(39, "bisect", 0, "pass"), visit(39, "confirm", 1, "pass")}

func TestCapacity(t *testing.T) {
	for _, c := range []struct {
		name    string
		require int
		change  func(*plan.Plan, *metric.Run)
		want    verdict.Outcome
		kind    metric.CapacityKind
		pass    int
		fail    int
		says    string
		run     verdict.Outcome
	}{
		{"measured only", 0, nil, verdict.Pass, metric.CapacityExact, 39, 40, "39 requests in flight · limited by ttft: 1.95 s at 39", verdict.Pass},
		{"reached", 30, nil, verdict.Pass, metric.CapacityExact, 39, 40, "the plan requires 30", verdict.Pass},
		{"just reached", 39, nil, verdict.Pass, metric.CapacityExact, 39, 40, "the plan requires 39", verdict.Pass},
		{"missed", 40, nil, verdict.Fail, metric.CapacityExact, 39, 40, "the plan requires 40", verdict.Fail},
		// Level 36 passes, level 40 fails, and level 38 was not measured.
		{"between", 38, func(_ *plan.Plan, r *metric.Run) { r.Capacities[0].Probes = r.Capacities[0].Probes[:6] }, verdict.Inconclusive, metric.CapacityInterpolated, 36, 40, "~39 requests in flight (36 passes, 40 fails)", verdict.Inconclusive},
		// TTFT is 50 ms times the level, so it is below 1.7 s up to level 33. Of the levels that
		// were probed, 32 passes and 36 fails.
		{"a tighter threshold", 36, func(p *plan.Plan, _ *metric.Run) { p.Workloads[0].SLAs[0].Thresholds[0].Limit = 1.7 }, verdict.Fail, metric.CapacityInterpolated, 32, 36, "(32 passes, 36 fails)", verdict.Fail},
		{"a tighter threshold, below", 32, func(p *plan.Plan, _ *metric.Run) { p.Workloads[0].SLAs[0].Thresholds[0].Limit = 1.7 }, verdict.Pass, metric.CapacityInterpolated, 32, 36, "not confirmed", verdict.Pass},
		{"a wider threshold", 48, func(p *plan.Plan, _ *metric.Run) { p.Workloads[0].SLAs[0].Thresholds[0].Limit = 2.5 }, verdict.Pass, metric.CapacityInterpolated, 48, 64, "(48 passes, 64 fails)", verdict.Pass},
		{"all fail", 1, func(p *plan.Plan, _ *metric.Run) { p.Workloads[0].SLAs[0].Thresholds[0].Limit = 0.1 }, verdict.Inconclusive, metric.CapacityBelow, 0, 8, "does not hold at 8", verdict.Inconclusive},
		{"all fail, more than that required", 8, func(p *plan.Plan, _ *metric.Run) { p.Workloads[0].SLAs[0].Thresholds[0].Limit = 0.1 }, verdict.Fail, metric.CapacityBelow, 0, 8, "does not hold at 8", verdict.Fail},
		{"all fail, measured only", 0, func(p *plan.Plan, _ *metric.Run) { p.Workloads[0].SLAs[0].Thresholds[0].Limit = 0.1 }, verdict.Fail, metric.CapacityBelow, 0, 8, "does not hold at 8", verdict.Pass},
		{"all pass", 64, func(p *plan.Plan, _ *metric.Run) { p.Workloads[0].SLAs[0].Thresholds[0].Limit = 9 }, verdict.Pass, metric.CapacityAtLeast, 64, 0, "64+ requests in flight (the search goes up to 64)", verdict.Pass},
		// A passed level does not count if the record lacks its samples.
		{"no samples", 30, func(_ *plan.Plan, r *metric.Run) { r.Levels = r.Levels[:3] }, verdict.Error, "", 0, 0, "lacks the requests of probe 4", verdict.Error},
		{"no probes", 30, func(_ *plan.Plan, r *metric.Run) { r.Capacities[0].Probes = nil }, verdict.Error, metric.CapacityUnknown, 0, 0, "unknown", verdict.Error},
		{"fewer samples than judged", 30, func(_ *plan.Plan, r *metric.Run) { r.Levels[1].Rounds = r.Levels[1].Rounds[:2] }, verdict.Pass, metric.CapacityExact, 39, 40, "the plan requires 30", verdict.Pass},
		{"a claim beyond its samples", 60, func(_ *plan.Plan, r *metric.Run) {
			r.Capacities[0].Pass, r.Capacities[0].Fail, r.Capacities[0].Line = 63, 64, "63"
		}, verdict.Fail, metric.CapacityExact, 39, 40, "39 requests in flight", verdict.Fail},
		{"an invalid probe bounds nothing", 38, func(_ *plan.Plan, r *metric.Run) {
			for _, l := range r.Levels {
				if l.N == 39 || l.N == 40 {
					l.Rounds[3].Health.CPU = 0.99
				}
			}
		}, verdict.Inconclusive, metric.CapacityInterpolated, 36, 48, "(36 passes, 48 fails)", verdict.Inconclusive},
		// If a million looks at the results are planned, a pass needs 328 requests without a miss.
		// The first probe has only 160 requests, so it decides nothing.
		{"more looks", 30, func(_ *plan.Plan, r *metric.Run) {
			for i := range r.Capacities[0].Probes {
				r.Capacities[0].Probes[i].Planned = 1e6
			}
		}, verdict.Pass, metric.CapacityExact, 39, 40, "the plan requires 30", verdict.Pass},
		{"an answer that is too short", 36, func(_ *plan.Plan, r *metric.Run) { r.Levels[5].Rounds[0].Samples[0].Usage.Output = 3 }, verdict.Pass, metric.CapacityExact, 39, 40, "the plan requires 36", verdict.Pass},
		{"not searched", 30, func(_ *plan.Plan, r *metric.Run) { r.Capacities, r.Stopped = nil, "budget" }, verdict.Error, "", 0, 0, "no search: budget", verdict.Error},
		{"left out", 30, func(_ *plan.Plan, r *metric.Run) { r.Capacities[0].Reason = metric.SkippedOnly }, verdict.Skipped, "", 0, 0, "left out", verdict.Error},
		{"no server", 30, func(_ *plan.Plan, r *metric.Run) { r.Servers[0].Error = "it died" }, verdict.Skipped, "", 0, 0, "it died", verdict.Error},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, run := searched(c.require, slices.Clone(exactly39)...)
			p.Gate.MeasureOnly = c.require == 0
			if c.change != nil {
				c.change(p, run)
			}
			v := Judge(p, run, Options{})
			got := verdictOf(t, v, "capacity")
			if got.Outcome != c.want || !strings.Contains(got.Message, c.says) || v.Outcome != c.run {
				t.Fatalf("%v %q, the run %v (%s), want %v, %q, %v\n%s", got.Outcome, got.Message, v.Outcome, v.Why, c.want, c.says, c.run, strings.Join(names(v), "\n"))
			}
			must.Need(t, (got.Capacity != nil) == (c.kind != ""), "capacity %+v", got.Capacity)
			if c.kind != "" && (got.Capacity.Kind != c.kind || got.Capacity.Pass != c.pass || got.Capacity.Fail != c.fail) {
				t.Errorf("%s, pass %d, fail %d; want %s, %d, %d", got.Capacity.Kind, got.Capacity.Pass, got.Capacity.Fail, c.kind, c.pass, c.fail)
			}
			sla := verdictOf(t, v, "sla.ttft.p95 at capacity")
			want := map[bool]verdict.Outcome{true: verdict.Pass, false: verdict.Skipped}[c.pass > 0]
			must.Hold(t, sla.Outcome == want, "the threshold at capacity is %v, want %v: %s", sla.Outcome, want, sla.Message)
		})
	}
}

// If the search probed a level several times, the last probe counts.
func TestCapacityOfVisits(t *testing.T) {
	for _, c := range []struct {
		name       string
		probes     []metric.CapacityProbe
		pass, fail int
		confirmed  bool
		monotone   bool
		kind       metric.CapacityKind
	}{
		{"confirmed", []metric.CapacityProbe{visit(39, "ladder", 0, "pass"), visit(40, "ladder", 0, "fail"), visit(39, "confirm", 1, "pass")}, 39, 40, true, true, metric.CapacityExact},
		// When level 39 is probed again, it is slow. So the limit falls to level 38.
		{"overturned", []metric.CapacityProbe{visit(38, "ladder", 0, "pass"), visit(39, "ladder", 0, "pass"), visit(40, "ladder", 0, "fail"), visit(39, "confirm", 1, "slow")}, 38, 39, false, true, metric.CapacityExact},
		// In the search, a confirmation can only withdraw a pass. So it can do no more here, where the
		// first probe of level 39 is judged a failure.
		{"a failure that is confirmed", []metric.CapacityProbe{visit(38, "ladder", 0, "pass"), visit(39, "require", 0, "slow"), visit(40, "ladder", 0, "fail"), visit(39, "confirm", 1, "pass")}, 38, 39, false, true, metric.CapacityExact},
		{"an undecided probe that is confirmed", []metric.CapacityProbe{visit(38, "ladder", 0, "pass"), visit(39, "require", 0, "few"), visit(40, "ladder", 0, "fail"), visit(39, "confirm", 1, "pass")}, 38, 40, false, true, metric.CapacityInterpolated},
		{"a confirmation alone", []metric.CapacityProbe{visit(38, "ladder", 0, "pass"), visit(40, "ladder", 0, "fail"), visit(39, "confirm", 1, "pass")}, 38, 40, false, true, metric.CapacityInterpolated},
		{"retried", []metric.CapacityProbe{visit(38, "ladder", 0, "pass"), visit(39, "ladder", 0, "pass"), visit(40, "ladder", 0, "fail"), visit(39, "retry", 1, "slow")}, 38, 39, false, true, metric.CapacityExact},
		{"a retry that says nothing", []metric.CapacityProbe{visit(39, "ladder", 0, "pass"), visit(40, "ladder", 0, "fail"), visit(39, "retry", 1, "few")}, 39, 40, false, true, metric.CapacityExact},
		{"a confirmation that says nothing", []metric.CapacityProbe{visit(38, "ladder", 0, "pass"), visit(39, "ladder", 0, "pass"), visit(40, "ladder", 0, "fail"), visit(39, "confirm", 1, "few")}, 38, 40, false, true, metric.CapacityInterpolated},
		{"not monotone", []metric.CapacityProbe{visit(10, "ladder", 0, "pass"), visit(20, "ladder", 0, "slow"), visit(30, "ladder", 0, "pass"), visit(40, "ladder", 0, "fail")}, 10, 20, false, false, metric.CapacityInterpolated},
		// Of 30 requests in flight the server refuses 10, so it admits 20.
		{"capped", []metric.CapacityProbe{visit(20, "ladder", 0, "pass"), visit(30, "ladder", 0, "capped")}, 20, 0, false, true, metric.CapacityServerCap},
		{"capped above a stretch that was not measured", []metric.CapacityProbe{visit(10, "ladder", 0, "pass"), visit(30, "ladder", 0, "capped")}, 10, 0, false, true, metric.CapacityAtLeast},
		// If no request was refused, the probe is judged by its thresholds alone.
		{"not capped", []metric.CapacityProbe{visit(20, "ladder", 0, "pass"), visit(30, "ladder", 0, "saturated"), visit(30, "again", 1, "pass")}, 30, 0, false, true, metric.CapacityAtLeast},
		{"a failure, then undecided", []metric.CapacityProbe{visit(20, "ladder", 0, "pass"), visit(30, "ladder", 0, "slow"), visit(30, "deep", 1, "few")}, 20, 30, false, true, metric.CapacityInterpolated},
		{"a failure, then a deep pass", []metric.CapacityProbe{visit(20, "ladder", 0, "pass"), visit(30, "ladder", 0, "slow"), visit(30, "deep", 1, "pass")}, 20, 30, false, true, metric.CapacityInterpolated},
		{"a failure that a retry takes back", []metric.CapacityProbe{visit(20, "ladder", 0, "slow"), visit(30, "ladder", 0, "pass"), visit(20, "retry", 1, "pass")}, 30, 0, false, true, metric.CapacityAtLeast},
		{"undecided, then a confirmation that fails", []metric.CapacityProbe{visit(20, "ladder", 0, "pass"), visit(30, "ladder", 0, "few"), visit(30, "confirm", 1, "slow")}, 20, 30, false, true, metric.CapacityInterpolated},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, run := searched(5, c.probes...)
			for i, probe := range run.Capacities[0].Probes {
				for _, l := range run.Levels {
					if l.Name != probe.Level {
						continue
					}
					switch c.probes[i].Note {
					case "capped":
						l.Rounds = turnedAway(l.N, 20)
					case "slow":
						run.Capacities[0].Probes[i].Outcome = metric.Fail
						slowed := shape{n: l.N, rounds: 10, perRound: 2 * l.N, ttft: func(int, int) float64 { return 3 }}.level()
						l.Rounds = slowed.Rounds
					case "few":
						run.Capacities[0].Probes[i].Outcome, run.Capacities[0].Probes[i].Requests = metric.Inconclusive, 20
					}
				}
			}
			got := verdictOf(t, Judge(p, run, Options{}), "capacity").Capacity
			if got.Pass != c.pass || got.Fail != c.fail || got.Confirmed != c.confirmed || (len(got.NonMonotone) == 0) != c.monotone || got.Kind != c.kind {
				t.Errorf("%s, pass %d, fail %d, confirmed %v, not monotone %v", got.Kind, got.Pass, got.Fail, got.Confirmed, got.NonMonotone)
			}
		})
	}
}

// turnedAway returns rounds of n requests in flight, of which the server admits some. It refuses the
// others with status 429.
func turnedAway(n, admits int) []*metric.Round {
	l := shape{n: n, rounds: 10, perRound: 2 * n, ttft: func(int, int) float64 { return 1 }}.level()
	for _, r := range l.Rounds {
		for i, x := range r.Samples {
			if i%n >= admits {
				x.Status, x.Failure = 429, &metric.Failure{Kind: metric.FailStatus}
			}
		}
	}
	return l.Rounds
}

// A probe that was stopped before its first judgement decides nothing, unless no request completed.
func TestCapacityCutShort(t *testing.T) {
	for _, c := range []struct {
		name   string
		sent   int // number of requests sent at level 20, all in the warm-up
		fail   metric.FailureKind
		kind   metric.CapacityKind
		failed int
	}{
		{"it was cut short", 3, "", metric.CapacityAtLeast, 0},
		{"too few to tell", 39, metric.FailStatus, metric.CapacityAtLeast, 0},
		// Two failures in each of the 20 slots are enough to fail.
		{"nothing completes", 40, metric.FailStatus, metric.CapacityInterpolated, 20},
		{"cancelled", 100, metric.FailCanceled, metric.CapacityAtLeast, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, run := searched(5, visit(10, "ladder", 0, "pass"), visit(20, "ladder", 0, "fail"))
			last := &run.Capacities[0].Probes[1]
			last.Requests = 0
			round := &metric.Round{Due: 40, Stopped: "cut short"}
			for i := range c.sent {
				x := &metric.Sample{Level: "probe 20 set 0", Phase: metric.Warmup, Slot: i % 20, Order: i, Sent: 1, End: 2}
				if c.fail != "" {
					x.Failure = &metric.Failure{Kind: c.fail}
				}
				round.Samples = append(round.Samples, x)
			}
			run.Levels[1].Rounds, run.Levels[1].Looks = []*metric.Round{round}, nil
			got := verdictOf(t, Judge(p, run, Options{}), "capacity")
			if got.Capacity == nil || got.Capacity.Kind != c.kind || got.Capacity.Pass != 10 || got.Capacity.Fail != c.failed {
				t.Errorf("%v %q: %+v", got.Outcome, got.Message, got.Capacity)
			}
		})
	}
}

// A probe that adds requests to a fixed level of the plan is judged together with that level.
func TestCapacityWithAFixedLevel(t *testing.T) {
	p, run := searched(5, visit(10, "known", 0, "inconclusive"), visit(10, "extend", 0, "pass"))
	fixed, probe := run.Levels[0], *run.Levels[0]
	fixed.Name = "10"
	probe.Name = "probe 10"
	fixed.Rounds, probe.Rounds = fixed.Rounds[:2], fixed.Rounds[2:]
	run.Levels = append(run.Levels, &probe)
	known, more := &run.Capacities[0].Probes[0], &run.Capacities[0].Probes[1]
	known.Level, known.Requests, known.Planned = "10", 40, 3
	more.Level, more.With, more.Requests, more.Planned = "probe 10", "10", 200, 3
	got := verdictOf(t, Judge(p, run, Options{}), "capacity")
	if got.Outcome != verdict.Pass || got.Capacity.Pass != 10 || len(got.Capacity.Probes) != 2 || got.Capacity.Probes[0].Outcome != metric.Inconclusive || got.Capacity.Probes[1].Outcome != metric.Pass {
		t.Errorf("%v %q: %+v", got.Outcome, got.Message, got.Capacity)
	}
	more.Requests++
	if got := verdictOf(t, Judge(p, run, Options{}), "capacity"); got.Outcome != verdict.Error || got.Capacity.Probes[1].Outcome != metric.Inconclusive {
		t.Errorf("a request more than there are: %v %q", got.Outcome, got.Message)
	}
	more.With = "11"
	if got := verdictOf(t, Judge(p, run, Options{}), "capacity"); got.Outcome != verdict.Error {
		t.Errorf("without the level that it adds to: %v %q", got.Outcome, got.Message)
	}
}

// The notes of a search are about the limit that the search found. If judging again gives another
// limit, the notes say that they are from the run.
func TestCapacityNotesOfAnotherAnswer(t *testing.T) {
	const note = "from 40 to 64 ttft stays within 1 % of its limit"
	for limit, want := range map[float64][]string{
		2:   {note},
		2.5: {"when it ran: " + note, "this capacity was judged again from the samples; the run itself had found another capacity: exact, pass 39, fail 40"},
	} {
		p, run := searched(0, exactly39...)
		run.Capacities[0].Notes = []string{note}
		p.Workloads[0].SLAs[0].Thresholds[0].Limit = limit
		must.Same(t, fmt.Sprintf("under %v s (-want +got)", limit), want, verdictOf(t, Judge(p, run, Options{}), "capacity").Capacity.Notes)
	}
}

// TestReasonOfAnotherLimit: if judging the probes gives another limit than the search found, the
// capacity says why.
func TestReasonOfAnotherLimit(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*plan.Plan, *metric.Run)
		says   string
	}{
		"a probe of the very run": {func(_ *plan.Plan, run *metric.Run) {
			for _, l := range run.Levels {
				if l.Name == "probe 39 set 1" {
					l.Rounds[0].Samples[0].Usage = nil
				}
			}
		}, "the probe at load 39 cannot be judged: 1 of 780 answers came without usage"},
		"other thresholds": {func(p *plan.Plan, _ *metric.Run) {
			p.Workloads[0].SLAs[0].Thresholds[0].Limit = 1.7
		}, "the search chose its probes by verdicts of the run that have changed since"},
	} {
		p, run := searched(0, exactly39...)
		c.change(p, run)
		l := newJudge(p, run).limit(p.Workloads[0], run.Capacities[0])
		must.Hold(t, l.why != "" && strings.Contains(l.Reason, c.says), "%s: %q, %q, want %q", name, l.why, l.Reason, c.says)
	}
}
