package assert

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// looksOf judges a comparison at each of its looks, whether it stops or not, and returns what stopped
// or would have stopped it.
func looksOf(t *testing.T, d duel, change func(*plan.Plan, *metric.Run)) (p *plan.Plan, run *metric.Run, at func(rounds int) Verdicts) {
	t.Helper()
	p, run = d.make()
	p.Compares[0].LeastRounds = 3
	run.Comparisons[0].Planned = p.Compares[0].Looks()
	if change != nil {
		change(p, run)
	}
	whole := [2][]*metric.Round{run.Levels[0].Rounds, run.Levels[1].Rounds}
	return p, run, func(n int) Verdicts {
		run.Comparisons[0].Looks = []metric.ComparisonLook{{Rounds: n}}
		for side, l := range run.Levels {
			l.Rounds = whole[side][:n]
		}
		v := Judge(p, run, Options{})
		if _, stop := JudgeComparison(p, p.Compares[0], run); stop != v.Comparisons[0].Stage.Stop {
			t.Errorf("after %d rounds a run says stop %v, and judge says %v", n, stop, v.Comparisons[0].Stage.Stop)
		}
		return v
	}
}

// A comparison stops when all that the plan requires is decided. The slowest member decides.
func TestStagedMembers(t *testing.T) {
	constant := func(x float64) func(int, int) float64 { return func(int, int) float64 { return x } }
	sla := func(texts ...string) func(*plan.Plan, *metric.Run) {
		return func(p *plan.Plan, _ *metric.Run) {
			s := &plan.SLA{At: []string{"4"}, Severity: plan.SeverityError}
			for _, text := range texts {
				name, limit, _ := strings.Cut(text, " ")
				s.Thresholds = append(s.Thresholds, threshold(name, limit))
			}
			p.Workloads[0].SLAs = []*plan.SLA{s}
		}
	}
	// starts gives each server a cold start of 600 s, or of cold, and warm ones of 60 s and of warm.
	starts := func(cold, warm time.Duration) func(*plan.Plan, *metric.Run) {
		return func(_ *plan.Plan, run *metric.Run) {
			run.Servers[0].Starts, run.Servers[1].Starts = startsOf(12, 600*time.Second, 60*time.Second), startsOf(12, cold, warm)
		}
	}
	for _, row := range []struct {
		name   string
		d      duel
		change func(*plan.Plan, *metric.Run)
		stops  int // rounds at the look that stops it
		want   verdict.Outcome
		open   string // members that are open at the first look
	}{
		{"nothing changed", duel{claims: []*plan.Claim{tolerate("ttft mean +5%")}}, nil, 3, verdict.Pass, ""},
		{"far too slow", duel{candidate: constant(1.2), claims: []*plan.Claim{tolerate("ttft mean +5%")}}, nil, 3, verdict.Fail, ""},
		// A percentile over all starts needs five of them.
		{"a threshold that waits", duel{claims: []*plan.Claim{tolerate("ttft mean +5%")}}, sla("ttft p95 < 2s"), 5, verdict.Pass, "sla.ttft.p95 at 4"},
		{"a mean of the candidate waits as well", duel{claims: []*plan.Claim{tolerate("ttft mean +5%")}}, sla("ttft mean < 2s"), 5, verdict.Pass, "sla.ttft.mean at 4"},
		{"an exact one need not", duel{claims: []*plan.Claim{tolerate("ttft mean +5%")}}, sla("ttft max < 2s"), 3, verdict.Pass, ""},
		{"an exact one that nothing mends", duel{control: constant(3), candidate: constant(3), claims: []*plan.Claim{tolerate("ttft mean +5%")}}, sla("ttft max < 2s"), 3, verdict.Fail, ""},
		// Of 3 · 40 requests with no failure, a success of 98 % is not certain; of 7 · 40 it is.
		{"counts wait for their number", duel{claims: []*plan.Claim{tolerate("ttft mean +5%", "success rate -2pp")}}, nil, 7, verdict.Pass, "success rate"},
		// The candidate refuses every fourth request: tokgate's own limit ends the comparison.
		{"certain harm by what tokgate requires", duel{candidateFails: every(4), claims: []*plan.Claim{tolerate("ttft p50 +5%")}}, nil, 3, verdict.Fail, ""},
		// The fourth start of a side is its third warm one. The cold one is not compared.
		{"warm starts", duel{claims: []*plan.Claim{tolerate("ttft mean +5%", "start_warm mean +10%")}}, starts(7000*time.Second, 63*time.Second), 4, verdict.Pass, "start_warm mean"},
		{"warm starts that take longer", duel{claims: []*plan.Claim{tolerate("ttft mean +5%", "start_warm mean +10%")}}, starts(600*time.Second, 72*time.Second), 4, verdict.Fail, "start_warm mean"},
		{"no start is recorded", duel{claims: []*plan.Claim{tolerate("start_warm mean +10%")}}, nil, 12, verdict.Inconclusive, "start_warm mean"},
		{"limits on starts", duel{claims: []*plan.Claim{tolerate("ttft mean +5%")}}, func(p *plan.Plan, run *metric.Run) {
			starts(600*time.Second, 60*time.Second)(p, run)
			sla("start_warm max < 61s", "start_cold max < 601s")(p, run)
		}, 3, verdict.Pass, ""},
		{"a warm start above its limit", duel{claims: []*plan.Claim{tolerate("ttft mean +5%")}}, func(p *plan.Plan, run *metric.Run) {
			starts(600*time.Second, 60*time.Second)(p, run)
			sla("start_warm max < 59s")(p, run)
		}, 3, verdict.Fail, ""},
		{"limits on starts that are not recorded", duel{claims: []*plan.Claim{tolerate("ttft mean +5%")}}, sla("start_warm max < 61s"), 3, verdict.Error, "sla.start_warm.max at 4"},
		{"one that only warns decides nothing", duel{candidate: constant(1.2), claims: []*plan.Claim{tolerate("ttft mean +50%"), {Severity: plan.SeverityWarn, Changes: tolerate("e2e mean +5%").Changes}}}, nil, 3, verdict.Pass, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.d.rounds, row.d.perRound = 12, 40
			_, _, at := looksOf(t, row.d, row.change)
			for n := 3; ; n++ {
				v := at(n)
				s := v.Comparisons[0].Stage
				if n == 3 && !strings.Contains(strings.Join(s.Open, ", "), row.open) || n == 3 && row.open == "" && len(s.Open) > 0 {
					t.Errorf("open after 3 rounds: %q, want %q", s.Open, row.open)
				}
				if !s.Stop {
					continue
				}
				if n != row.stops || v.Outcome != row.want {
					t.Errorf("stops after %d rounds with %v, want %d and %v\n%s", n, v.Outcome, row.stops, row.want, strings.Join(names(v), "\n"))
				}
				break
			}
		})
	}
}

// startsOf returns starts of a server, of which the first is cold.
func startsOf(n int, cold, warm time.Duration) []metric.Start {
	out := []metric.Start{{Ready: cold, Kind: metric.StartCold}}
	for range n - 1 {
		out = append(out, metric.Start{Ready: warm, Kind: metric.StartWarm})
	}
	return out
}

// An undecided comparison stops if even the last look would hardly decide it.
func TestStagedFutile(t *testing.T) {
	// The starts of both sides alternate by ± 3 %, and the candidate is exactly as much slower as is
	// tolerated: after four starts the last look, after 12, decides with a chance of 2 · 5 % at most.
	alternating := func(x float64) func(int, int) float64 {
		return func(round, _ int) float64 { return x * math.Exp([]float64{0.03, -0.03, -0.03, 0.03}[round%4]) }
	}
	_, _, at := looksOf(t, duel{rounds: 12, perRound: 4, control: alternating(1), candidate: alternating(1.05), claims: []*plan.Claim{tolerate("ttft mean +5%")}}, nil)
	v := at(4)
	c := v.Comparisons[0]
	if !c.Stage.Futile || v.Outcome != verdict.Inconclusive || !strings.Contains(c.Line, "Undecided after 4 starts of each, so it stopped: 8 more of each would decide with a chance of") || !strings.Contains(c.Line, "Starts differ by") {
		t.Errorf("%v: %+v: %s", v.Outcome, c.Stage, c.Line)
	}
}

// A leg that reached its limit of time can show a failure. It never passes, and ends the comparison at
// its next look.
func TestStagedTooSlow(t *testing.T) {
	for _, row := range []struct {
		claim string
		want  verdict.Outcome
		line  string
	}{
		// Two of four requests had waited for 9 s when the leg was ended, and two of them took 1 s, like
		// the control's: a mean of at least 5 s.
		{"ttft mean +50%", verdict.Fail, "ab: no for chat. 3 starts of each"},
		{"success rate -50pp", verdict.Inconclusive, "ab: no for chat. The candidate is too slow to measure: its legs reached their limit of time, and no requirement certainly fails by then"},
	} {
		_, _, at := looksOf(t, duel{rounds: 12, perRound: 4, claims: []*plan.Claim{tolerate(row.claim)}}, func(_ *plan.Plan, run *metric.Run) {
			for _, r := range run.Levels[1].Rounds {
				r.Limit, r.Complete, r.Stopped = 9*time.Second, false, "its leg reached its limit of 9 s"
				r.Due += 40 // that were never sent
				for _, x := range r.MeasuredSamples()[2:] {
					x.End = x.Sent + 9*time.Second
					x.First, x.Last, x.Chunks, x.Gaps, x.Usage, x.FirstAnswer = 0, 0, 0, nil, nil, 0
					x.Failure = &metric.Failure{Kind: metric.FailCanceled}
					r.End = max(r.End, x.End)
				}
			}
		})
		v := at(3)
		c := v.Comparisons[0]
		if v.Outcome != row.want || !c.Stage.Stop || !strings.HasPrefix(c.Line, row.line) || !strings.Contains(strings.Join(c.Notes, " "), "3 legs reached the limit of time (up to 9 s") {
			t.Errorf("%s: %v, stop %v: %s\n%s", row.claim, v.Outcome, c.Stage.Stop, c.Line, strings.Join(names(v), "\n"))
		}
		for _, one := range v.List {
			must.Hold(t, one.Outcome != verdict.Pass || one.Kind == verdict.KindServer || one.Kind == verdict.KindLoad, "%s: %s passes", row.claim, one.Name)
		}
	}
}

// What holds at the error of one test may still fail to be certain among all members.
func TestStagedCorrects(t *testing.T) {
	// Differences of the logarithms of about 15.5 %, 21.4 %, 18.8 % … against a tolerance of 10 %.
	d := duel{rounds: 8, perRound: 40, candidate: func(r, _ int) float64 { return []float64{1.12, 1.2, 1.07, 1.16, 1.2, 1.09, 1.18, 1.15}[r] },
		claims: []*plan.Claim{tolerate("ttft mean +10%")}}
	_, _, at := looksOf(t, d, nil)
	if v := verdictOf(t, at(8), "compare.ab.tolerate.ttft.mean at 4"); v.Outcome != verdict.Fail {
		t.Errorf("alone: %v %s", v.Outcome, v.Message)
	}
	d.claims = []*plan.Claim{tolerate("ttft mean +10%", "ttft p50 +50%", "e2e mean +50%", "ttft p95 +50%", "throughput -50%")}
	_, _, at = looksOf(t, d, nil)
	if v := verdictOf(t, at(8), "compare.ab.tolerate.ttft.mean at 4"); v.Outcome != verdict.Inconclusive || !strings.Contains(strings.Join(v.NotesOf(), " "), "all that the plan requires is tested together") {
		t.Errorf("among five: %v %s %q", v.Outcome, v.Message, v.Notes)
	}
}

// The verdict says how many starts it rests on, and what so few may have missed.
func TestStagedSays(t *testing.T) {
	d := duel{rounds: 12, perRound: 40, claims: []*plan.Claim{tolerate("ttft mean +5%")}}
	_, _, at := looksOf(t, d, nil)
	want := "ab: no meaningful difference for chat. 3 starts of each; stopped early, and the bounds hold for all 10 planned looks. A slow state that fewer than 63 of 100 starts fall into may have been missed"
	if c := at(3).Comparisons[0]; c.Line != want {
		t.Errorf("%s, want %s", c.Line, want)
	}
	d.restart = plan.RestartNever
	p, run := d.make()
	if c := Judge(p, run, Options{}).Comparisons[0]; !strings.HasSuffix(c.Line, "This holds for these two starts; it says nothing about other starts of the servers") {
		t.Error(c.Line)
	}
}

// A record that does not say how its comparison was looked at is an error.
func TestStagedFailsClosed(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*metric.Run)
		says   string
	}{
		{"no look", func(r *metric.Run) { r.Comparisons[0].Looks = nil }, "does not say at which of its planned looks"},
		{"a look that was not planned", func(r *metric.Run) { r.Comparisons[0].Looks[0].Rounds = 2 }, "does not say at which of its planned looks"},
		{"two rounds of one start", func(r *metric.Run) { r.Levels[0].Rounds[2].Leg.Start = 0 }, "rounds 1 and 3 had one start of the same server"},
		{"an order that is gone", func(r *metric.Run) { r.Comparisons[0].Restart = "order" }, `restart = "order", which was removed`},
		{"planned looks that go down", func(r *metric.Run) { slices.Reverse(r.Comparisons[0].Planned) }, "the planned looks of the record are not in order"},
	} {
		p, run, at := looksOf(t, duel{rounds: 12, perRound: 40, claims: []*plan.Claim{tolerate("ttft mean +5%")}}, nil)
		at(3)
		row.change(run)
		v := Judge(p, run, Options{})
		if text := strings.Join(names(v), "\n"); v.Outcome == verdict.Pass || !strings.Contains(text, row.says) {
			t.Errorf("%s: %v, want %q:\n%s", row.name, v.Outcome, row.says, text)
		}
	}
}
