package assert

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// A short delay of the generator does not disturb a round. But a threshold is invalid if the delay
// could have changed its verdict. A limit that was met stands if the recording shows that the
// generator hardly stood still and sent on time.
//
// Each of the 4 slots sends 5 requests of 2.198 s in a round, and the last slot starts 0.9 s after
// the first. So a round takes 11.89 s, and the five rounds 59.45 s. At most 5 % of it is 2.97 s.
func TestGeneratorNearTheLimit(t *testing.T) {
	const ms = time.Millisecond
	none := []metric.Standstill{}
	held := func(d time.Duration) []metric.Standstill {
		return []metric.Standstill{{From: 20 * time.Second, To: 20*time.Second + d}}
	}
	for _, c := range []struct {
		name        string
		ttft        float64
		delay       time.Duration
		standstills []metric.Standstill // nil: not recorded
		reads       time.Duration       // in shorter delays
		late        int                 // requests that were sent 300 ms late; the limit is 200 ms, a tenth of the TTFT
		want        verdict.Outcome
	}{
		{"a TTFT of 1.998 s might really be 2.001 s", 1.998, 3 * ms, nil, 0, 0, verdict.Error},
		{"not above leastDelay", 1.998, ms, nil, 0, 0, verdict.Pass},
		{"far enough from the limit", 1.990, 3 * ms, nil, 0, 0, verdict.Pass},
		{"lateness only adds", 1.998, 3 * ms, none, 0, 0, verdict.Pass},
		{"held for 2.9 of 59.45 s", 1.998, 3 * ms, held(2900 * ms), 0, 0, verdict.Pass},
		{"held for 3 of 59.45 s", 1.998, 3 * ms, held(3000 * ms), 0, 0, verdict.Error},
		{"2 s of standstills and 0.9 s of late reads", 1.998, 3 * ms, held(2000 * ms), 900 * ms, 0, verdict.Pass},
		{"2 s of standstills and 1 s of late reads", 1.998, 3 * ms, held(2000 * ms), 1000 * ms, 0, verdict.Error},
		{"late reads alone", 1.998, 3 * ms, none, 3000 * ms, 0, verdict.Error},
		{"95 of 100 sent on time", 1.998, 3 * ms, none, 0, 5, verdict.Pass},
		{"94 of 100 sent on time", 1.998, 3 * ms, none, 0, 6, verdict.Error},
		{"out of both, but far enough from the limit", 1.990, 3 * ms, held(6000 * ms), 0, 6, verdict.Pass},
		{"a TTFT of 2.002 s may really be 1.999 s", 2.002, 3 * ms, nil, 0, 0, verdict.Error},
		{"likewise, recorded", 2.002, 3 * ms, none, 0, 0, verdict.Error},
		{"a failure far from the limit", 2.010, 3 * ms, none, 0, 0, verdict.Fail},
	} {
		p, run := gate(shape{rounds: 5, perRound: 20, ttft: func(int, int) float64 { return c.ttft }}.level(), threshold("ttft", "p95 < 2s"))
		l := run.Levels[0]
		for _, r := range l.Rounds {
			if c.standstills != nil {
				r.Health.Standstills = none
			}
		}
		l.Rounds[2].Health = metric.Health{Delay: c.delay, Standstills: c.standstills, Late: c.reads}
		for _, x := range l.MeasuredSamples()[:c.late] {
			x.Scheduled -= 300 * ms
		}
		l.Rounds[0].Start = l.Rounds[0].Samples[0].Scheduled
		got := verdictOf(t, Judge(p, run, Options{}), "sla.ttft.p95 at 4")
		if got.Outcome != c.want || c.want == verdict.Error && got.Cause != verdict.CauseGenerator {
			t.Errorf("%s: %v, want %v: %s", c.name, got.Outcome, c.want, got.Message)
		}
	}
}

// The generator disturbed the first rounds of a level, so that some of their requests are over the
// limit. The level has ten rounds of 20 requests. For a p95, at most 4 of 200 requests may be over
// the limit at an error of 5 %: 0.026. Without one over the limit it takes 72 requests at half that
// error: 0.95^72 = 0.0249.
func TestUndecidedByDisturbedRounds(t *testing.T) {
	for _, c := range []struct {
		name      string
		disturbed int    // rounds
		each      int    // in these rounds, every request of this number is over the limit
		over      int    // other rounds with a request over the limit
		success   string // a threshold on success; one request of the last round fails
		metric    string
		text      string
		want      verdict.Outcome
	}{
		{"8 of 200 over, and 0 of 160 in eight rounds", 2, 5, 0, "", "ttft", "p95 < 2s", verdict.Pass},
		{"10 of 200 over, and 0 of 100 in five rounds", 5, 10, 0, "", "ttft", "p95 < 2s", verdict.Pass},
		{"four rounds remain", 6, 10, 0, "", "ttft", "p95 < 2s", verdict.Inconclusive},
		// At half the error at most 2 of 160 may be over it.
		{"14 of 200 over, and 6 of 160 in eight rounds", 2, 5, 6, "", "ttft", "p95 < 2s", verdict.Inconclusive},
		{"nothing was disturbed", 0, 0, 7, "", "ttft", "p95 < 2s", verdict.Inconclusive},
		{"success is undecided", 2, 5, 0, "rate >= 98%", "ttft", "mean < 2s", verdict.Inconclusive},
	} {
		ttft := func(round, i int) float64 {
			if round < c.disturbed && i%c.each == 0 || round >= c.disturbed && round < c.disturbed+c.over && i == 0 {
				return 2.1
			}
			return 1
		}
		shape, thresholds := shape{rounds: 10, perRound: 20, ttft: ttft}, []*plan.Threshold{threshold(c.metric, c.text)}
		if c.success != "" {
			thresholds = append(thresholds, threshold("success", c.success))
			shape.failed = func(round, i int) bool { return round == 9 && i == 0 }
		}
		p, run := gate(shape.level(), thresholds...)
		for _, r := range run.Levels[0].Rounds[:c.disturbed] {
			r.Health.Stall = time.Second
		}
		list := Judge(p, run, Options{}).List
		got := list[slices.IndexFunc(list, func(v verdict.Verdict) bool { return strings.HasPrefix(v.Name, "sla."+c.metric) })]
		again := strings.Contains(strings.Join(got.NotesOf(), "\n"), "that the generator did not disturb, with half the allowed error")
		if got.Outcome != c.want || again != (c.want == verdict.Pass) || again && got.Confidence != 0.975 {
			t.Errorf("%s: %v, want %v: %s %q", c.name, got.Outcome, c.want, got.Message, got.Notes)
		}
	}
}

// A stall of the generator distorts latencies and the lengths of streams. A threshold is invalid
// only if the stall could have changed its verdict.
func TestGeneratorStalled(t *testing.T) {
	const ms = time.Millisecond
	// In each case an answer streams 10 tokens in 0.2 s after its first token: a speed of 50 tok/s,
	// and a TPOT of 20 ms.
	for _, c := range []struct {
		name         string
		ttft         float64
		stall        time.Duration
		metric, text string
		want         verdict.Outcome
	}{
		{"a pass is no stall's work", 1.9, 900 * ms, "ttft", "p95 < 2s", verdict.Pass},
		{"a clear failure", 2.6, 500 * ms, "ttft", "p95 < 2s", verdict.Pass},
		{"a failure by less than the stall", 2.4, 500 * ms, "ttft", "p95 < 2s", verdict.Error},
		{"a mean likewise", 2.4, 500 * ms, "ttft", "mean < 2s", verdict.Error},
		{"shorter than a tenth of the TTFT", 2.1, 200 * ms, "ttft", "p95 < 2s", verdict.Pass}, // 210 ms
		{"shorter than 50 ms", 0.1, 50 * ms, "speed", "p5 > 10 tok/s", verdict.Pass},
		// The stall may have shortened the stream by 100 ms, from 300 ms to 200 ms. Even then the
		// true speed of 33 tok/s passes.
		{"a speed that passes anyway", 0.1, 100 * ms, "speed", "p5 > 10 tok/s", verdict.Pass},
		// The first token may have waited, but at most its whole TTFT of 100 ms. So the stream took
		// at most 300 ms instead of 200 ms: at least 33 tok/s.
		{"a speed that passes at the most that can have waited", 0.1, 180 * ms, "speed", "mean > 30 tok/s", verdict.Pass},
		{"a speed that need not have passed", 0.1, 180 * ms, "speed", "mean > 40 tok/s", verdict.Error},
		{"a speed that need not have failed", 0.1, 100 * ms, "speed", "mean > 60 tok/s", verdict.Error},
		{"a speed that fails anyway", 0.1, 100 * ms, "speed", "mean > 200 tok/s", verdict.Pass},
		// The answer of 11 tokens takes 0.3 s: 37 tok/s. A stall only makes times longer, so the
		// true E2E speed is at least as high.
		{"an end-to-end speed that passes", 0.1, 100 * ms, "e2e_speed", "mean > 30 tok/s", verdict.Pass},
		{"an end-to-end speed that need not have failed", 0.1, 100 * ms, "e2e_speed", "mean > 40 tok/s", verdict.Error},
		{"gaps that pass", 0.1, 100 * ms, "itl", "p95 < 30ms", verdict.Pass},
		// A stall of 100 ms hardly changes a rate over a window of many seconds.
		{"a rate that passes anyway", 0.1, 100 * ms, "throughput", "> 10 tok/s", verdict.Pass},
		{"goodput that passes", 1.9, 900 * ms, "goodput", "observed >= 95%", verdict.Pass},
		{"goodput that need not have failed", 2.4, 500 * ms, "goodput", "observed >= 95%", verdict.Error},
		{"goodput that fails anyway", 2.6, 500 * ms, "goodput", "observed >= 95%", verdict.Pass},
	} {
		p, run := gate(shape{rounds: 5, perRound: 40, ttft: func(int, int) float64 { return c.ttft }}.level(), threshold(c.metric, c.text))
		good := threshold("ttft", "every < 2s")
		p.Workloads[0].Good = []*plan.Threshold{good}
		sla := func() verdict.Verdict {
			list := Judge(p, run, Options{}).List
			return list[slices.IndexFunc(list, func(v verdict.Verdict) bool { return strings.HasPrefix(v.Name, "sla.") })]
		}
		for _, r := range run.Levels[0].Rounds {
			r.Health.Stall = c.stall
		}
		if got := sla(); (got.Outcome == verdict.Error) != (c.want == verdict.Error) || c.want == verdict.Error && (got.Cause != verdict.CauseGenerator || !strings.HasPrefix(got.Message, "generator: the generator stood still for ")) {
			t.Errorf("%s: %v: %s", c.name, got.Outcome, got.Message)
		}
		// If a stall disturbed only the first round, the other rounds decide.
		for _, r := range run.Levels[0].Rounds[1:] {
			r.Health.Stall = 0
		}
		got := sla()
		must.Hold(t, got.Outcome == verdict.Pass || got.Outcome == verdict.Fail, "%s, in one round: %v: %s", c.name, got.Outcome, got.Message)
	}
}

// Requests that time out during a stall of the generator do not count against the server. If such a
// request leaves a threshold undecided, the verdict says so.
func TestGeneratorStalledRequests(t *testing.T) {
	for _, c := range []struct {
		name, metric, text string
		stalled            int // rounds
		want               verdict.Outcome
		says               string
	}{
		{"a success that need not have failed", "success", "observed >= 100%", 1, verdict.Error, "the generator stood still for 4.9 s in round 1"},
		{"one that would have failed anyway", "success", "observed >= 100%", 0, verdict.Fail, ""},
		{"a share left open", "success", "rate >= 95%", 1, verdict.Inconclusive, "the generator stood still for 4.9 s in round 1: the generator, and not the server, may be why"},
	} {
		p, run := gate(shape{rounds: 5, perRound: 40}.level(), threshold(c.metric, c.text))
		for _, x := range run.Levels[0].Rounds[0].Samples[:3] {
			x.Failure = &metric.Failure{Kind: metric.FailTimeout, Message: "no end within 5s"}
		}
		for _, r := range run.Levels[0].Rounds[:c.stalled] {
			r.Health.Stall = 4900 * time.Millisecond
		}
		list := Judge(p, run, Options{}).List
		got := list[slices.IndexFunc(list, func(v verdict.Verdict) bool { return strings.HasPrefix(v.Name, "sla.") })]
		said := got.Message + strings.Join(got.NotesOf(), "\n")
		must.Hold(t, got.Outcome == c.want && strings.Contains(said, c.says), "%s: %v: %s, want %v: %s", c.name, got.Outcome, said, c.want, c.says)
	}
}
