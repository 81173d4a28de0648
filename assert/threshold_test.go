package assert

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// one returns the verdict on a single threshold at level l.
func one(t *testing.T, l *metric.Level, name, text string, change func(*plan.Workload)) verdict.Verdict {
	t.Helper()
	th := threshold(name, text)
	p, run := gate(l, th)
	if change != nil {
		change(p.Workloads[0])
	}
	v := Judge(p, run, Options{})
	full := "sla." + name
	if s := th.Stat.String(); s != "" {
		full += "." + s
	}
	if l.Name != "" {
		full += " at " + l.Name
	}
	return verdictOf(t, v, full)
}

func TestPercentile(t *testing.T) {
	alike := func(int, int) float64 { return 1 }
	for _, c := range []struct {
		name, text string
		shape      shape
		want       verdict.Outcome
		effective  float64 // 0: not compared
	}{
		// All requests are equal, so they show no dependence and all 60 are effective.
		{"ttft", "p95 < 2s", shape{rounds: 5, perRound: 12, ttft: alike}, verdict.Pass, 60},
		{"ttft", "p95 < 2s", shape{rounds: 1, perRound: 59, n: 1, ttft: alike}, verdict.Pass, 59},         // 0.95^59 = 0.0485
		{"ttft", "p95 < 2s", shape{rounds: 1, perRound: 58, n: 1, ttft: alike}, verdict.Inconclusive, 58}, // 0.95^58 = 0.0510
		{"ttft", "p99 < 2s", shape{rounds: 1, perRound: 299, n: 1, ttft: alike}, verdict.Pass, 299},
		{"ttft", "p99 < 2s", shape{rounds: 1, perRound: 298, n: 1, ttft: alike}, verdict.Inconclusive, 298},
		// All requests take exactly the limit of 2 s, so "<" fails and "<=" passes.
		{"ttft", "p95 < 2s", shape{rounds: 5, perRound: 20, ttft: func(int, int) float64 { return 2 }}, verdict.Fail, 100},
		{"ttft", "p95 <= 2s", shape{rounds: 5, perRound: 20, ttft: func(int, int) float64 { return 2 }}, verdict.Pass, 100},
		// 20% of the requests of each round are over the limit. A p95 allows 5%, and a p50 allows
		// half.
		{"ttft", "p95 < 2s", shape{rounds: 5, perRound: 60, ttft: func(_, i int) float64 { return map[bool]float64{true: 3, false: 1}[i%5 == 0] }}, verdict.Fail, 0},
		{"ttft", "p50 < 2s", shape{rounds: 5, perRound: 60, ttft: func(_, i int) float64 { return map[bool]float64{true: 3, false: 1}[i%5 == 0] }}, verdict.Pass, 0},
		// 20% of the requests fail, and a failed request counts as over the limit.
		{"ttft", "p95 < 2s", shape{rounds: 5, perRound: 60, ttft: alike, failed: func(_, i int) bool { return i%5 == 0 }}, verdict.Fail, 300},
		{"speed", "p5 > 10 tok/s", shape{rounds: 5, perRound: 60, ttft: alike, failed: func(_, i int) bool { return i%5 == 0 }}, verdict.Fail, 300},
		// Every request has a speed of 10 tokens / 0.2 s = 50 tok/s.
		{"speed", "p5 > 10 tok/s", shape{rounds: 5, perRound: 20, ttft: alike}, verdict.Pass, 100},
		// No request has a TTFA. A completed request without the metric's value counts as over the
		// limit.
		{"ttfa", "p95 < 2s", shape{rounds: 5, perRound: 20, change: func(x *metric.Sample) { x.FirstAnswer = 0 }}, verdict.Fail, 100},
		// All 24 bad requests are in one of the five rounds. If rounds differ that much, the
		// requests count as very few independent ones.
		{"ttft", "p95 < 2s", shape{rounds: 5, perRound: 40, ttft: func(r, i int) float64 { return map[bool]float64{true: 5, false: 1}[r == 0 && i < 24] }}, verdict.Inconclusive, 0},
		// 100 requests with 25 in flight are 4 waves, which are too few blocks for a pass.
		{"ttft", "p95 < 2s", shape{rounds: 1, perRound: 100, n: 25, ttft: alike}, verdict.Inconclusive, 4},
		// Four waves with all requests over the limit are enough to fail. The probability of that
		// by chance is only 0.05^4.
		{"ttft", "p95 < 1us", shape{rounds: 1, perRound: 100, n: 25, ttft: alike}, verdict.Fail, 4},
		// A request has many gaps, but together they count at most as one observation. So 60
		// requests suffice for a pass, and 55 do not.
		{"itl", "p95 < 30ms", shape{rounds: 5, perRound: 12, ttft: alike}, verdict.Pass, 60},
		{"itl", "p95 < 30ms", shape{rounds: 5, perRound: 11, ttft: alike}, verdict.Inconclusive, 55},
		// If one gap in ten is over the limit, 6 of the 60 effective gaps are. That may be chance,
		// so the p95 is undecided: P(Bin(60, 0.05) ≥ 6) = 0.079. With two gaps in ten it fails.
		{"itl", "p95 < 30ms", shape{rounds: 5, perRound: 12, ttft: alike, change: func(x *metric.Sample) { x.Gaps[3] = 40_000 }}, verdict.Inconclusive, 60},
		{"itl", "p95 < 30ms", shape{rounds: 5, perRound: 12, ttft: alike, change: func(x *metric.Sample) { x.Gaps[3], x.Gaps[4] = 40_000, 40_000 }}, verdict.Fail, 60},
	} {
		v := one(t, c.shape.level(), c.name, c.text, nil)
		must.Hold(t, v.Outcome == c.want, "%s %s: %v, want %v: %s %s %v", c.name, c.text, v.Outcome, c.want, v.Message, v.Needs, v.Notes)
		must.Hold(t, c.effective == 0 || math.Abs(v.Effective-c.effective) <= 1e-6, "%s %s: worth %v requests, want %v", c.name, c.text, v.Effective, c.effective)
		must.Hold(t, (v.Needs != "") == (v.Outcome == verdict.Inconclusive), "%s %s: %v, but needs %q", c.name, c.text, v.Outcome, v.Needs)
	}
}

// If a percentile passes or fails, both of its bounds are on the same side of the limit.
func TestLongBoundsAgreeWithOutcome(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	seen := map[verdict.Outcome]int{}
	for range 300 {
		scale := 0.2 + 1.6*r.Float64()
		l := shape{rounds: 1 + r.IntN(8), perRound: 1 + r.IntN(120), n: 1 + r.IntN(4), ttft: func(int, int) float64 { return scale * r.ExpFloat64() }}.level()
		for _, text := range []string{"p50 < 2s", "p95 < 2s", "p95 <= 2s"} {
			v := one(t, l, "ttft", text, nil)
			if v.Outcome == verdict.Skipped {
				continue // fewer requests than slots
			}
			seen[v.Outcome]++
			want := verdict.Inconclusive
			switch {
			case v.High.V < 2:
				want = verdict.Pass
			case v.Low.V >= 2:
				want = verdict.Fail
			}
			must.Need(t, v.Outcome == want, "%s: bounds [%v, %v] but %v", text, v.Low.V, v.High.V, v.Outcome)
			must.Need(t, v.Value.V >= v.Low.V && v.Value.V <= v.High.V, "%s: %v outside [%v, %v]", text, v.Value.V, v.Low.V, v.High.V)
		}
	}
	must.Hold(t, seen[verdict.Pass] >= 20 && seen[verdict.Fail] >= 20 && seen[verdict.Inconclusive] >= 20, "the cases do not cover every outcome: %v", seen)
}

func TestMean(t *testing.T) {
	for _, c := range []struct {
		text  string
		ttft  func(round, i int) float64
		want  verdict.Outcome
		shape shape
	}{
		// The interval of the mean is 1.08 ± 2.132·√(0.007/5) = [1.00, 1.16] s, below 2 s.
		{"mean < 2s", func(r, _ int) float64 { return []float64{1, 1.1, 1.2, 1.1, 1}[r] }, verdict.Pass, shape{rounds: 5, perRound: 8}},
		{"mean < 1s", func(r, _ int) float64 { return []float64{1, 1.1, 1.2, 1.1, 1}[r] }, verdict.Fail, shape{rounds: 5, perRound: 8}},
		// The interval of the mean is 1.95 ± 2.132·√(0.1275/5) = [1.61, 2.29] s, which includes the
		// limit of 2 s.
		{"mean < 2s", func(r, _ int) float64 { return []float64{1.5, 2.4, 1.9, 2.2, 1.75}[r] }, verdict.Inconclusive, shape{rounds: 5, perRound: 8}},
		// All values equal the limit. "<" then fails and "<=" passes.
		{"mean < 1s", func(int, int) float64 { return 1 }, verdict.Fail, shape{rounds: 5, perRound: 8}},
		{"mean <= 1s", func(int, int) float64 { return 1 }, verdict.Pass, shape{rounds: 5, perRound: 8}},
		// A single block of requests has no spread between blocks.
		{"mean < 2s", nil, verdict.Inconclusive, shape{rounds: 1, perRound: 7}},
		{"mean < 2s", nil, verdict.Pass, shape{rounds: 1, perRound: 8}},
	} {
		c.shape.ttft = c.ttft
		v := one(t, c.shape.level(), "ttft", c.text, nil)
		must.Hold(t, v.Outcome == c.want, "%s: %v, want %v: %s", c.text, v.Outcome, c.want, v.Message)
	}
}

func TestMeanNeedsSuccess(t *testing.T) {
	oneFails := shape{rounds: 5, perRound: 40, failed: func(r, i int) bool { return r == 0 && i == 3 }}
	// A threshold on a mean implies that every request must succeed, unless the plan has a
	// threshold on success.
	p, run := gate(oneFails.level(), threshold("ttft", "mean < 2s"))
	v := Judge(p, run, Options{})
	if mean, implied := verdictOf(t, v, "sla.ttft.mean at 4"), verdictOf(t, v, "sla.success.every at 4"); mean.Outcome != verdict.Fail || implied.Outcome != verdict.Fail || v.Outcome != verdict.Fail {
		t.Errorf("one failure of 200: %v", names(v))
	}
	// Five rounds are not enough to certify a success rate of 98%. A mean leaves failed requests
	// out, so it is undecided until the success rate is certified.
	p, run = gate(oneFails.level(), threshold("ttft", "mean < 2s"), threshold("success", "rate >= 98%"))
	v = Judge(p, run, Options{})
	if mean := verdictOf(t, v, "sla.ttft.mean at 4"); mean.Outcome != verdict.Inconclusive || len(v.List) != 4 {
		t.Errorf("1 of 200 against 98%%: %v", names(v))
	}
	// 1 of 200 requests fails, which is less than the allowed 2%.
	p, run = gate(oneFails.level(), threshold("ttft", "mean < 2s"), threshold("success", "observed >= 98%"))
	v = Judge(p, run, Options{})
	mean := verdictOf(t, v, "sla.ttft.mean at 4")
	must.Hold(t, mean.Outcome == verdict.Pass && v.Outcome == verdict.Pass && mean.N == 199, "1 of 200 observed against 98%%: %v", names(v))
	must.Hold(t, strings.Contains(strings.Join(mean.NotesOf(), "\n"), "leaves 1 failed request out"), "the mean does not say what it leaves out: %q", mean.Notes)
	// A failed request has few gaps, so it hardly changes a percentile of gaps. To make up for
	// this, a threshold on gaps also requires that every request succeeds.
	p, run = gate(oneFails.level(), threshold("itl", "p95 < 30ms"))
	if v = Judge(p, run, Options{}); v.Outcome != verdict.Fail {
		t.Errorf("gaps hide a failure: %v", names(v))
	}
}

func TestShares(t *testing.T) {
	fails := func(k int) func(int, int) bool { return func(_, i int) bool { return i < k } }
	for _, c := range []struct {
		name, text string
		shape      shape
		want       verdict.Outcome
	}{
		// Without a failure 149 rounds are needed to certify 98%, because 0.98¹⁴⁹ < 0.05. The
		// number of requests in a round does not matter.
		{"success", "rate >= 98%", shape{rounds: 149, perRound: 2, n: 1}, verdict.Pass},
		{"success", "rate >= 98%", shape{rounds: 148, perRound: 5, n: 1}, verdict.Inconclusive},
		{"success", "rate >= 98%", shape{rounds: 1, perRound: 1000, n: 1}, verdict.Inconclusive},
		// If 1 of the 10 requests of a round fails, the round counts as 0.1 failed rounds. In the
		// first case four rounds have one failure each: 0.4 failed rounds of 200 certify 98%
		// (p = 0.038 < 0.05). In the second case one whole round fails (p = 0.089 > 0.05).
		{"success", "rate >= 98%", shape{rounds: 200, perRound: 10, failed: func(r, i int) bool { return r < 4 && i == 0 }}, verdict.Pass},
		{"success", "rate >= 98%", shape{rounds: 200, perRound: 10, failed: func(r, i int) bool { return r == 0 }}, verdict.Inconclusive},
		// 20 of 200 requests fail, but the threshold allows only 4. That is certainly too many,
		// even if requests depend on each other.
		{"success", "rate >= 98%", shape{rounds: 5, perRound: 40, failed: fails(4)}, verdict.Fail},
		{"success", "rate >= 100%", shape{rounds: 5, perRound: 40}, verdict.Inconclusive},
		{"success", "rate >= 100%", shape{rounds: 5, perRound: 40, failed: fails(1)}, verdict.Fail},
		{"success", "observed >= 98%", shape{rounds: 1, perRound: 50, failed: func(_, i int) bool { return i == 3 }}, verdict.Pass},
		{"success", "observed > 98%", shape{rounds: 1, perRound: 50, failed: func(_, i int) bool { return i == 3 }}, verdict.Fail},
		{"success", "observed >= 98%", shape{rounds: 1, perRound: 49, failed: func(_, i int) bool { return i == 3 }}, verdict.Fail},
		{"success", "observed >= 100%", shape{rounds: 1, perRound: 20}, verdict.Pass},
		{"success", "every", shape{rounds: 5, perRound: 4}, verdict.Pass},
		{"success", "every", shape{rounds: 5, perRound: 40, failed: func(r, i int) bool { return r == 4 && i == 39 }}, verdict.Fail},
		// A request is good if its TTFT is at most 2 s.
		{"goodput", "share >= 95%", shape{rounds: 59, perRound: 4}, verdict.Pass},
		{"goodput", "share >= 95%", shape{rounds: 58, perRound: 60}, verdict.Inconclusive},
		{"goodput", "observed >= 95%", shape{rounds: 1, perRound: 20, ttft: slow(1)}, verdict.Pass},
		{"goodput", "observed >= 95%", shape{rounds: 1, perRound: 20, failed: fails(2)}, verdict.Fail},
		{"goodput", "share >= 95%", shape{rounds: 5, perRound: 60, ttft: slow(12)}, verdict.Fail},
		{"goodput", "share >= 95%", shape{rounds: 5, perRound: 60, failed: fails(12)}, verdict.Fail},
	} {
		v := one(t, c.shape.level(), c.name, c.text, func(w *plan.Workload) {
			w.Policy.Clusters = plan.ClustersRound
			w.Good = []*plan.Threshold{{Metric: metric.MustLookup("ttft"), Stat: metric.Stat{Kind: metric.Every}, Op: plan.LessEqual, Limit: 2}}
		})
		must.Hold(t, v.Outcome == c.want, "%s %s: %v, want %v: %s", c.name, c.text, v.Outcome, c.want, v.Message)
	}
	v := one(t, shape{rounds: 5, perRound: 12}.level(), "goodput", "share >= 95%", nil)
	must.Hold(t, v.Outcome == verdict.Error, "goodput without a good block: %v", v.Outcome)
}

// Only one of 180 rounds has failures: 15 of its 300 requests, while each other round has only two
// requests. The mean failure rate of the rounds is 0.03%, but 15 of all 658 requests fail, or 2.3%.
// So the run must not certify a failure rate of at most 2%.
func TestShareOfUnequalRounds(t *testing.T) {
	l := shape{lean: true, n: 1, rounds: 179, perRound: 2}.level()
	long := shape{lean: true, n: 1, rounds: 1, perRound: 300, failed: func(_, i int) bool { return i%20 == 0 }}.level().Rounds[0]
	long.Index = len(l.Rounds)
	for _, x := range long.Samples {
		x.Round = long.Index
	}
	l.Rounds = append(l.Rounds, long)
	v := one(t, l, "success", "rate >= 98%", nil)
	must.Hold(t, v.Outcome != verdict.Pass && (v.Low.V <= v.Value.V && v.Low.V < 0.98), "%v, from %v: %s", v.Outcome, v.Low.V, v.Message)
}

// If requests of one round may fail together, a share that passes still passes with fewer failures.
// If requests of one wave may fail together, this does not hold: isolated failures can show that
// failures are independent. In all cases the bounds agree with the outcome.
func TestLongSharesAreMonotone(t *testing.T) {
	r := rand.New(rand.NewPCG(71, 72))
	seen := map[verdict.Outcome]int{}
	for range 25 {
		rounds, perRound, rate := 59+r.IntN(60), 1+r.IntN(6), []float64{0.002, 0.02, 0.2}[r.IntN(3)]
		var fails [][2]int
		for round := range rounds {
			for i := range perRound {
				if r.Float64() < rate {
					fails = append(fails, [2]int{round, i})
				}
			}
		}
		r.Shuffle(len(fails), func(i, j int) { fails[i], fails[j] = fails[j], fails[i] })
		before, clusters := verdict.Pending, []plan.Clusters{plan.ClustersRound, plan.ClustersWave, plan.ClustersNone}[r.IntN(3)]
		for {
			l := shape{lean: true, n: 1, rounds: rounds, perRound: perRound, failed: func(round, i int) bool { return slices.Contains(fails, [2]int{round, i}) }}.level()
			v := one(t, l, "success", "rate >= 95%", func(w *plan.Workload) { w.Policy.Clusters = clusters })
			seen[v.Outcome]++
			if before == verdict.Pass && v.Outcome != verdict.Pass && (clusters == plan.ClustersRound || len(fails) == 0) {
				t.Errorf("%d rounds of %d: %v with %d failures, and passed with one more", rounds, perRound, v.Outcome, len(fails))
			}
			if !(v.Low.V <= v.Value.V && v.Value.V <= v.High.V) || (v.Outcome == verdict.Pass) != (v.Low.V >= 0.95-1e-9) {
				t.Errorf("%v: bounds %v to %v of %v", v.Outcome, v.Low.V, v.High.V, v.Value.V)
			}
			before = v.Outcome
			if len(fails) == 0 {
				break
			}
			fails = fails[1:]
		}
	}
	must.Hold(t, seen[verdict.Pass] != 0 && seen[verdict.Inconclusive] != 0 && seen[verdict.Fail] != 0, "outcomes %v", seen)
}

func TestThisRun(t *testing.T) {
	oneOff := func(r, i int) float64 { return map[bool]float64{true: 3, false: 1}[r == 2 && i == 5] }
	fails := func(r, i int) bool { return r == 2 && i == 5 }
	for _, c := range []struct {
		name, text string
		shape      shape
		want       verdict.Outcome
	}{
		{"ttft", "max < 2s", shape{rounds: 5, perRound: 8}, verdict.Pass},
		{"ttft", "max < 2s", shape{rounds: 5, perRound: 8, ttft: oneOff}, verdict.Fail},
		{"ttft", "max < 2s", shape{rounds: 5, perRound: 8, failed: fails}, verdict.Fail},
		{"ttft", "every < 2s", shape{rounds: 5, perRound: 8}, verdict.Pass},
		{"ttft", "every < 1s", shape{rounds: 5, perRound: 8}, verdict.Fail},
		{"ttft", "every <= 1s", shape{rounds: 5, perRound: 8}, verdict.Pass},
		{"ttft", "every < 2s", shape{rounds: 5, perRound: 8, failed: fails}, verdict.Fail},
		{"ttft", "min < 2s", shape{rounds: 5, perRound: 8, ttft: oneOff}, verdict.Pass},
		{"success", "observed >= 98%", shape{rounds: 5, perRound: 8}, verdict.Pass},
		{"success", "observed >= 98%", shape{rounds: 5, perRound: 8, failed: fails}, verdict.Fail}, // 1 of 40
		{"speed", "min > 10 tok/s", shape{rounds: 5, perRound: 8}, verdict.Pass},
		{"speed", "min > 10 tok/s", shape{rounds: 5, perRound: 8, failed: fails}, verdict.Fail},
	} {
		v := one(t, c.shape.level(), c.name, c.text, nil)
		must.Hold(t, v.Outcome == c.want, "%s %s: %v, want %v: %s", c.name, c.text, v.Outcome, c.want, v.Message)
		must.Hold(t, strings.Contains(strings.Join(v.NotesOf(), "\n"), "this run"), "%s %s is not labelled: %q", c.name, c.text, v.Notes)
	}
}

func TestLevelWide(t *testing.T) {
	five := shape{rounds: 5, perRound: 40}
	for _, c := range []struct {
		name, text string
		shape      shape
		want       verdict.Outcome
	}{
		// The throughput is 36.7 tok/s: each of four slots makes 11 tokens in 1.2 s.
		{"throughput", "> 10 tok/s", five, verdict.Pass},
		{"throughput", "> 10 tok/s", shape{rounds: 1, perRound: 40}, verdict.Pass}, // in blocks
		{"throughput", "> 1000000 tok/s", five, verdict.Fail},
		{"throughput", "> 10 tok/s", shape{rounds: 1, perRound: 7}, verdict.Inconclusive}, // one block
		{"request_rate", "> 1 req/s", five, verdict.Pass},
		{"cache_hit_rate", "< 50%", five, verdict.Pass},
		{"synchrony", "< 50%", shape{rounds: 5, perRound: 40, ttft: slow(0)}, verdict.Pass},
		{"scaling_efficiency", "> 50%", five, verdict.Error}, // it needs level 1, which was not run
		{"prefill_speed", "> 10 tok/s", five, verdict.Error}, // four in flight
		{"prefill_speed", "> 10 tok/s", shape{n: 1, rounds: 5, perRound: 8}, verdict.Pass},
		{"prefill_speed", "> 1000000 tok/s", shape{n: 1, rounds: 5, perRound: 8}, verdict.Fail},
		{"goodput", "> 1 req/s", five, verdict.Error}, // no good block
	} {
		v := one(t, c.shape.level(), c.name, c.text, nil)
		must.Hold(t, v.Outcome == c.want, "%s %s: %v, want %v: %s %v", c.name, c.text, v.Outcome, c.want, v.Message, v.Needs)
	}
}

// With window = "all", the time of a rate includes ramp and drain, as in published benchmark
// reports.
func TestWindowAll(t *testing.T) {
	// Each of four slots has ten answers of 11 tokens in 12 s. The last slot starts 0.9 s after the
	// first, so a round has 440 tokens in 12.9 s.
	level := shape{rounds: 5, perRound: 40}.level()
	v := one(t, level, "throughput", "> 10 tok/s", func(w *plan.Workload) { w.Policy.Window = metric.All })
	if want := 440 / 12.9; v.Outcome != verdict.Pass || math.Abs(v.Value.V-want) > 1e-6 || v.Low.V > want || v.High.V < want {
		t.Errorf("%v %v, want %v: %s", v.Outcome, v.Value, want, v.Message)
	}
	for window, want := range map[metric.Window]string{
		metric.All:    `rates cover the time from the start of the first measured request to the end of the last (window = "all")`,
		metric.Steady: `ramp: 20 of 200 requests were sent before every slot had started`, // of 4 slots in 5 rounds, the first request each
	} {
		p, run := gate(level)
		p.Gate.MeasureOnly, p.Workloads[0].Policy.Window = true, window
		if v := verdictOf(t, Judge(p, run, Options{}), "load at 4"); !strings.Contains(strings.Join(v.NotesOf(), "\n"), want) {
			t.Errorf("%s: notes %q", window, v.Notes)
		}
	}
}

func TestScalingEfficiency(t *testing.T) {
	four := shape{rounds: 5, perRound: 40}.level()
	single := shape{n: 1, rounds: 5, perRound: 10}.level()
	single.Name = "1"
	p, run := gate(four, threshold("scaling_efficiency", "> 50%"))
	p.Workloads[0].Loads[0].Levels = append(p.Workloads[0].Loads[0].Levels, plan.Level{Name: "1", N: 1, Requests: 50, Rounds: 5})
	run.Levels = append(run.Levels, single)
	v := verdictOf(t, Judge(p, run, Options{}), "sla.scaling_efficiency at 4")
	// With one slot and with four, a slot generates 11 tokens in 1.2 s. So the efficiency is close
	// to 1, and a little less because not all slots start at once.
	must.Hold(t, v.Outcome == verdict.Pass && v.Value.V >= 0.9 && v.Value.V <= 1.05, "%v: %s", v.Outcome, v.Message)
}

func TestEstimate(t *testing.T) {
	estimate := func(w *plan.Workload) { w.Policy.Decide = plan.Estimate }
	for _, c := range []struct {
		name, text string
		shape      shape
		want       verdict.Outcome
	}{
		// The p95 of 20 requests is the 19th smallest value (⌈0.95·20⌉ = 19). One request may be
		// over the limit, but not two.
		{"ttft", "p95 < 2s", shape{n: 1, rounds: 1, perRound: 20, ttft: slow(1)}, verdict.Pass},
		{"ttft", "p95 < 2s", shape{n: 1, rounds: 1, perRound: 20, ttft: slow(2)}, verdict.Fail},
		{"ttft", "p95 < 2s", shape{n: 1, rounds: 1, perRound: 20, failed: func(_, i int) bool { return i < 2 }}, verdict.Fail},
		// The p5 of 20 requests is the smallest value, so no request may be below the limit.
		{"speed", "p5 > 10 tok/s", shape{n: 1, rounds: 1, perRound: 20}, verdict.Pass},
		{"speed", "p5 > 10 tok/s", shape{n: 1, rounds: 1, perRound: 20, failed: func(_, i int) bool { return i == 4 }}, verdict.Fail},
		{"ttft", "mean < 2s", shape{n: 1, rounds: 1, perRound: 3}, verdict.Pass},
		{"ttft", "mean < 1s", shape{n: 1, rounds: 1, perRound: 3}, verdict.Fail},
		{"success", "rate >= 98%", shape{n: 1, rounds: 1, perRound: 50, failed: func(_, i int) bool { return i == 4 }}, verdict.Pass},
		{"success", "rate >= 98%", shape{n: 1, rounds: 1, perRound: 49, failed: func(_, i int) bool { return i == 4 }}, verdict.Fail},
		// A request makes 11 tokens in 1.2 s: 9.2 tok/s.
		{"throughput", "> 10 tok/s", shape{n: 1, rounds: 1, perRound: 3}, verdict.Fail},
	} {
		v := one(t, c.shape.level(), c.name, c.text, estimate)
		must.Hold(t, v.Outcome == c.want, "%s %s: %v, want %v: %s", c.name, c.text, v.Outcome, c.want, v.Message)
		must.Hold(t, strings.Contains(strings.Join(v.NotesOf(), "\n"), "point estimate"), "%s %s is not labelled as an estimate: %q", c.name, c.text, v.Notes)
	}
}

// With more requests over the limit, a verdict never gets better.
func TestMoreOverNeverHelps(t *testing.T) {
	for _, decide := range []plan.Decide{plan.Certified, plan.Estimate} {
		last := verdict.Pass
		for k := range 41 {
			// The failures are the same in every round, so the rounds do not differ.
			l := shape{rounds: 5, perRound: 40, failed: func(_, i int) bool { return i < k && k < 40 || k == 40 && i < 39 }}.level()
			v := one(t, l, "ttft", "p95 < 2s", func(w *plan.Workload) { w.Policy.Decide = decide })
			must.Need(t, v.Outcome >= last, "%s: %d failures a round turn %v into %v", decide, k, last, v.Outcome)
			last = v.Outcome
		}
		must.Hold(t, last == verdict.Fail, "%s: 39 of 40 failures are %v", decide, last)
	}
}

func TestOrderDoesNotMatter(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	l := shape{rounds: 6, perRound: 50, ttft: slow(2), failed: func(_, i int) bool { return i == 30 }}.level()
	all := []*plan.Threshold{threshold("ttft", "p95 < 2s"), threshold("ttft", "mean < 2s"), threshold("itl", "p95 < 30ms"),
		threshold("success", "rate >= 98%"), threshold("success", "observed >= 98%"), threshold("throughput", "> 10 tok/s"), threshold("ttft", "every < 2s")}
	p, run := gate(l, all...)
	want := Judge(p, run, Options{})
	for _, round := range l.Rounds {
		r.Shuffle(len(round.Samples), func(i, j int) {
			round.Samples[i], round.Samples[j] = round.Samples[j], round.Samples[i]
		})
	}
	got := Judge(p, run, Options{})
	for i := range want.List {
		a, b := want.List[i], got.List[i]
		must.Hold(t, a.Outcome == b.Outcome && a.Message == b.Message && a.Effective == b.Effective, "shuffled: %q became %q", a.Message, b.Message)
	}
}

func TestMessages(t *testing.T) {
	for _, c := range []struct {
		name, text string
		shape      shape
		message    string
		needs      string
	}{
		// The p95 of 800 values has rank 760. A pass needs at most 29 requests over the limit, and
		// a fail needs more than 50. So the bounds of the p95 have the ranks 800 − 29 = 771 and
		// 800 − 50 = 750.
		{"ttft", "p95 < 2s", shape{rounds: 8, perRound: 100, ttft: func(_, i int) float64 {
			if i*37%100 < 8 {
				return 9 + float64(i)/1000
			}
			return 1
		}}, "ttft p95 9.02 s > 2 s: 64 of 800 requests over (8%, allowed 5%), 95% bounds 9.01 s to 9.05 s", ""},
		{"ttft", "p95 < 2s", shape{rounds: 5, perRound: 40}, "ttft p95 1 s < 2 s: 0 of 200 requests over (0%, allowed 5%), 95% bounds 1 s to 1 s", ""},
		// All 40 requests are below the limit, but a p95 needs at least 59 requests to pass.
		{"ttft", "p95 < 2s", shape{rounds: 5, perRound: 8}, "ttft p95 1 s < 2 s: 0 of 40 requests over (0%, allowed 5%), 95% bounds 1 s to ∞", "needs about 19 more requests"},
		// The t interval ends at 0.896 + 2.132·√(0.72/5) = 1.7 s, below the limit, but the bound for skewed rounds is 3.84 s.
		// It is at the limit after 40·((3.84 − 0.896)/(2 − 0.896))² = 284 requests.
		{"ttft", "mean < 2s", shape{rounds: 5, perRound: 8, ttft: func(r, _ int) float64 { return []float64{0.4, 0.48, 0.56, 0.64, 2.4}[r] }},
			"ttft mean 896 ms < 2 s: 95% bounds 89.9 ms to 3.84 s over 5 rounds", "needs about 250 more requests, 2 min"},
		{"ttft", "mean < 2s", shape{rounds: 5, perRound: 8}, "ttft mean 1 s < 2 s: 95% bounds 1 s to 1 s over 5 rounds", ""},
		{"ttft", "every < 2s", shape{rounds: 5, perRound: 8, failed: func(r, i int) bool { return r == 0 && i == 0 }}, "ttft every ∞ > 2 s: 1 of 40 requests over", ""},
		{"speed", "p5 > 10 tok/s", shape{rounds: 5, perRound: 40, failed: func(_, i int) bool { return i < 10 }},
			"speed p5 0 tok/s < 10 tok/s: 50 of 200 requests below (25%, allowed 5%), 95% bounds 0 tok/s to 0 tok/s", ""},
		{"success", "rate >= 98%", shape{rounds: 5, perRound: 40}, "success rate 100% > 98%: 0 of 200 requests failed (0%, allowed 2%), 95% bounds 94.2% to 100%", "needs about 400 more requests, 3 min"},
		{"success", "observed >= 98%", shape{rounds: 5, perRound: 40}, "success observed 100% > 98%: 0 of 200 requests failed (0%, allowed 2%)", ""},
		{"ttft", "min < 2s", shape{rounds: 5, perRound: 8, failed: func(r, i int) bool { return r == 0 && i == 0 }}, "ttft min 1 s < 2 s", ""},
		{"success", "every", shape{rounds: 5, perRound: 40}, "success every 100%: 0 of 200 requests failed", ""},
	} {
		v := one(t, c.shape.level(), c.name, c.text, nil)
		if v.Message != c.message || v.Needs != c.needs {
			t.Errorf("%s %s:\n got %q needs %q\nwant %q needs %q", c.name, c.text, v.Message, v.Needs, c.message, c.needs)
		}
		must.Hold(t, !strings.ContainsAny(v.Message, "\n\r"), "%q is more than one line", v.Message)
	}
}

func TestNeedsSaysHowLong(t *testing.T) {
	l := shape{rounds: 5, perRound: 8}.level()
	for i, r := range l.Rounds { // a round takes 6 min, and the next one starts an hour after it
		r.Start = time.Duration(i) * time.Hour
		r.End = r.Start + 6*time.Minute
	}
	v := one(t, l, "ttft", "p95 < 2s", nil)
	// The rounds take 30 min for 40 requests, so 19 more requests take 14.25 min. The hours between
	// the rounds do not count.
	must.Hold(t, v.Needs == "needs about 19 more requests, 15 min", "needs %q", v.Needs)
}

// The number of requests that count towards a pass depends on which requests are assumed to fail
// together.
func TestClusters(t *testing.T) {
	none := func(int, int) bool { return false }
	// Every 50th of 1200 requests fails: 2 %, and never two in one wave.
	alone := func(r, i int) bool { return (120*r+i)%50 == 7 }
	// Three groups of 8 consecutive requests fail: 2 %. The last group lies across two waves of 8.
	waves := func(r, i int) bool { return i < 8 && r < 2 || r == 3 && i >= 20 && i < 28 }
	for _, c := range []struct {
		name     string
		clusters plan.Clusters
		failed   func(r, i int) bool
		n        int // number of requests in each of the ten rounds
		want     verdict.Outcome
		says     string
	}{
		// With 8 requests in flight, 1200 requests are 150 waves. A pass needs 59 waves without a
		// failure.
		{"none fails", "", none, 120, verdict.Pass, "for a pass, 1200 requests count as only 150, because all requests in flight (8) may fail together"},
		{"none fails, too few", "", none, 47, verdict.Inconclusive, "count as only 58"},
		// Isolated failures are evidence that requests fail alone. The mean cluster is then
		// estimated at 3.8 requests instead of 8, so 1200 requests count as 315.
		{"alone", "", alone, 120, verdict.Pass, "count as only 315"},
		// Failures in clusters of 8 confirm the assumed clusters, so 1200 requests count as 150.
		// The rounds differ too, so the requests count as only 140.
		{"waves", "", waves, 120, verdict.Inconclusive, "count as only 140"},
		{"alone, by rounds", plan.ClustersRound, alone, 120, verdict.Inconclusive, "each of 10 rounds counts as one request"},
		{"none fails, by rounds", plan.ClustersRound, none, 120, verdict.Inconclusive, "each of 10 rounds counts"},
		{"alone, by itself", plan.ClustersNone, alone, 120, verdict.Pass, ""},
		{"none fails, by itself", plan.ClustersNone, none, 6, verdict.Pass, ""},
		// All failures are in one round. Such a difference between rounds leaves fewer effective
		// requests, even if no clusters are assumed.
		{"one round fails, by itself", plan.ClustersNone, func(r, i int) bool { return r == 4 && i < 24 }, 120, verdict.Inconclusive, "the values of 10 rounds"},
		{"one round fails", "", func(r, i int) bool { return r == 4 && i < 24 }, 120, verdict.Inconclusive, ""},
	} {
		l := shape{n: 8, rounds: 10, perRound: c.n, failed: c.failed}.level()
		v := one(t, l, "success", "rate >= 95%", func(w *plan.Workload) { w.Policy.Clusters = c.clusters })
		if v.Outcome != c.want || !strings.Contains(strings.Join(v.NotesOf(), "; "), c.says) {
			t.Errorf("%s: %v %q %q, want %v %q", c.name, v.Outcome, v.Message, v.Notes, c.want, c.says)
		}
	}
}

// A level whose share is undecided does not pass with more failed requests.
func TestLongFewerFailuresPass(t *testing.T) {
	for _, n := range []int{1, 2, 8, 32} {
		for _, text := range []string{"rate >= 90%", "rate >= 95%", "rate >= 99%"} {
			for _, perRound := range []int{20, 32, 47, 48, 60, 120, 190, 400} {
				if perRound < n {
					continue
				}
				passed := true
				for k := range 5 {
					l := shape{lean: true, n: n, rounds: 10, perRound: perRound, failed: func(r, i int) bool { return r < 2*k && i == 0 }}.level()
					s := subject{evidence: gather(l), workload: &plan.Workload{}, alpha: 0.05}
					pass := s.judge(threshold("success", text)).Outcome == verdict.Pass
					must.Hold(t, !pass || passed, "%d in flight, %d a round, %s: passes with %d failures, not with fewer", n, perRound, text, 2*k)
					passed = pass
				}
			}
		}
	}
}

// With speculative decoding, results for synthetic prompts may not hold for real prompts. A note
// says so at each metric that depends on drafts.
func TestMadePrompts(t *testing.T) {
	drafting := func(l *metric.Level) {
		for _, r := range l.Rounds {
			r.Telemetry = &metric.Telemetry{Added: map[string]float64{metric.Drafts: 60}}
		}
	}
	for _, tt := range []struct {
		name         string
		metric, text string
		level        func(*metric.Level)
		server       plan.Server
		dataset      *traffic.Dataset
		noted        bool
	}{
		{"it tells of drafts", "speed", "mean > 10 tok/s", drafting, plan.Server{}, nil, true},
		{"it was told to draft", "tpot", "p95 < 30ms", nil, plan.Server{Engine: "vllm", Args: []string{"--speculative-config={}"}}, nil, true},
		{"another's flag", "tpot", "p95 < 30ms", nil, plan.Server{Engine: "sglang", Args: []string{"--speculative-config={}"}}, nil, false},
		{"no drafts", "speed", "mean > 10 tok/s", nil, plan.Server{Engine: "vllm"}, nil, false},
		{"another metric", "ttft", "p95 < 2s", drafting, plan.Server{}, nil, false},
		{"a data set", "speed", "mean > 10 tok/s", drafting, plan.Server{}, &traffic.Dataset{}, false},
	} {
		l := shape{rounds: 10, perRound: 12}.level()
		if tt.level != nil {
			tt.level(l)
		}
		p, run := gate(l, threshold(tt.metric, tt.text))
		p.Servers[0].Engine, p.Servers[0].Args = tt.server.Engine, tt.server.Args
		p.Workloads[0].Prompt.Dataset = tt.dataset
		noted := false
		for _, v := range Judge(p, run, Options{}).List {
			noted = noted || slices.ContainsFunc(v.NotesOf(), func(n string) bool { return strings.HasPrefix(n, "synthetic prompts: ") })
		}
		must.Hold(t, noted == tt.noted, "%s: noted %v", tt.name, noted)
	}
}
