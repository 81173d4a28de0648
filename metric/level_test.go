package metric

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
)

const s = time.Second

// stream returns a completed request with out tokens. It was sent at the given time, and its chunks
// came at the given times. All times count from the run's start.
func stream(slot int, phase Phase, sent time.Duration, out int, chunks ...time.Duration) *Sample {
	x := &Sample{Slot: slot, Phase: phase, Scheduled: sent, Sent: sent, First: chunks[0], Last: chunks[len(chunks)-1], End: chunks[len(chunks)-1],
		Chunks: len(chunks), Usage: &Usage{Input: 100, Output: out, Cached: -1}}
	for i := range chunks[1:] {
		x.Gaps.Add(chunks[i+1] - chunks[i])
	}
	return x
}

func closeTo(t *testing.T, what string, got Value, want float64) {
	t.Helper()
	must.Hold(t, got.OK && math.Abs(got.V-want) <= 1e-9, "%s = %+v, want %v", what, got, want)
}

func checkNone(t *testing.T, what string, got Value) {
	t.Helper()
	must.Hold(t, !got.OK && got.Why != "", "%s = %+v, want no value and a reason", what, got)
}

func TestRates(t *testing.T) {
	failed := stream(0, Measured, 5*s, 50, 6*s, 7*s)
	failed.Failure = &Failure{Kind: FailStream}
	cut := stream(1, Filler, 14*s, 0, 16*s, 18*s)
	cut.Usage, cut.Failure = nil, &Failure{Kind: FailCanceled}
	r := &Round{Due: 3, Complete: true, WindowStart: 10 * s, WindowEnd: 20 * s, Samples: []*Sample{
		// Of the 10 tokens of a warm-up request, 6 are in the window: 3 at 11 s and 3 at 12 s.
		stream(0, Warmup, 7*s, 10, 8*s, 9*s, 11*s, 12*s),
		// This request lies wholly inside the window: 21 tokens.
		stream(0, Measured, 12*s, 21, 13*s, 14*s, 15*s),
		// The window is (10, 20] s, so it includes a chunk at 20 s but not one at 10 s.
		stream(1, Measured, 9*s, 3, 10*s, 20*s, 21*s), // 3 tokens: at 10 s, 20 s and 21 s
		failed, // counts for nothing
		cut,    // 2 of its 10 chunks count, with 3.4 tokens each
	}}
	l := &Level{Kind: ClosedLoop, N: 2, Rounds: []*Round{r}}
	// 6 + 21 + 1 + 6.8 tokens in 10 s: 3.48 tok/s
	closeTo(t, "throughput", l.Value("throughput", Steady, nil, nil), 3.48)
	// Only one measured request with known usage has its first token in (10, 20] s. It has 100
	// input tokens: 10 tok/s.
	closeTo(t, "input_throughput", l.Value("input_throughput", Steady, nil, nil), 10)
	// Two requests ended in (10, 20] s: at 12 and at 15 s.
	closeTo(t, "request_rate", l.Value("request_rate", Steady, nil, nil), 0.2)
	closeTo(t, "goodput", l.Value("goodput", Steady, func(x *Sample) bool { return x.Usage.Output > 20 }, nil), 0.1)
	closeTo(t, "goodput of none", l.Value("goodput", Steady, func(*Sample) bool { return false }, nil), 0)
	checkNone(t, "goodput without bounds", l.Value("goodput", Steady, nil, nil))
	// Of 3 due requests, 2 completed and 1 is good.
	closeTo(t, "success", l.Value("success", Steady, nil, nil), 2.0/3)
	closeTo(t, "goodput share", l.GoodputShare(func(x *Sample) bool { return x.Usage.Output > 20 }), 1.0/3)

	// 6 + 21 tokens arrive in (10, 15] s, and 1 + 6.8 tokens in (15, 20] s.
	halves := r.stretches(Steady, 2)
	closeTo(t, "first half", RateOver("throughput", halves[:1], nil), 27.0/5)
	closeTo(t, "second half", RateOver("throughput", halves[1:], nil), 7.8/5)

	// The window "all" is from r.Start to r.End: 16 s. Only completed measured requests count;
	// there are two, with 21 and 3 tokens.
	r.Start, r.End = 8*s, 24*s
	closeTo(t, "throughput of all", l.Value("throughput", All, nil, nil), 24.0/16)
	closeTo(t, "input_throughput of all", l.Value("input_throughput", All, nil, nil), 200.0/16)
	closeTo(t, "request_rate of all", l.Value("request_rate", All, nil, nil), 2.0/16)
	closeTo(t, "last quarter of all", RateOver("throughput", r.stretches(All, 4)[3:], nil), 1.0/4) // at 21 s
	if n := l.OnRamp(); n != 2 {                                                                   // sent at 5 and 9 s
		t.Errorf("%d on the ramp", n)
	}

	// Without recorded gaps, the tokens after the first one count as evenly spread: here two tokens
	// from 10 s to 21 s.
	r.Samples = []*Sample{stream(0, Measured, 9*s, 3, 10*s, 20*s, 21*s)}
	r.Samples[0].Gaps = nil
	closeTo(t, "throughput without gaps", l.Value("throughput", Steady, nil, nil), 2.0*10/11/10)
	// A chunk of all 30 tokens counts as a whole.
	r.Samples = []*Sample{stream(0, Measured, 9*s, 30, 11*s)}
	closeTo(t, "throughput of one chunk", l.Value("throughput", Steady, nil, nil), 3)
}

func TestNoLevelValue(t *testing.T) {
	names := Names(func(d Def) bool { return d.Scope == PerLevel })
	yes := func(*Sample) bool { return true }
	for what, l := range map[string]*Level{
		"empty":      {},
		"skipped":    {Skipped: "why", Kind: ClosedLoop, N: 1},
		"no samples": {Kind: ClosedLoop, N: 1, Rounds: []*Round{{WindowStart: s, WindowEnd: s}}},
	} {
		for _, name := range names {
			checkNone(t, name+" of "+what, l.Value(name, Steady, yes, l))
		}
	}
	checkNone(t, "ttft", (&Level{}).Value("ttft", Steady, nil, nil))
	l := &Level{Kind: ClosedLoop, N: 1, Rounds: []*Round{{Due: 1, WindowStart: s, WindowEnd: 2 * s, Complete: true}}}
	checkNone(t, "throughput", l.Value("throughput", Steady, nil, nil))
	closeTo(t, "success", l.Value("success", Steady, nil, nil), 0)
}

// A request that the run cancelled is neither a success nor a failure.
func TestInterrupted(t *testing.T) {
	failed, cut := stream(0, Measured, 3*s, 5, 4*s), stream(1, Measured, 5*s, 5, 6*s)
	failed.Failure, cut.Failure = &Failure{Kind: FailTimeout}, &Failure{Kind: FailCanceled}
	l := &Level{Kind: ClosedLoop, N: 2, Rounds: []*Round{
		{Due: 2, Complete: true, Samples: []*Sample{stream(0, Measured, 1*s, 5, 2*s), stream(1, Measured, 1*s, 5, 2*s)}},
		{Due: 20, Stopped: "interrupted", Samples: []*Sample{stream(0, Measured, 3*s, 5, 4*s), failed, cut}},
	}}
	// Of 22 planned requests, three completed and one failed. The run cancelled the other 18, so
	// they are not answerable.
	must.Hold(t, l.Due() == 22 && l.answerable() == 4, "due %d, answerable %d", l.Due(), l.answerable())
	closeTo(t, "success", l.Value("success", Steady, nil, nil), 3.0/4)
	closeTo(t, "goodput share", l.GoodputShare(func(*Sample) bool { return true }), 3.0/4)
	ttft, _ := Lookup("ttft")
	d := Of(ttft, l.MeasuredSamples())
	must.Hold(t, d.N() == 4 && d.Worst == 1, "%d observations, %d worst", d.N(), d.Worst)
}

func TestScalingAndPrefill(t *testing.T) {
	level := func(n, tokens int) *Level {
		return &Level{Kind: ClosedLoop, N: n, Rounds: []*Round{{Due: 1, WindowStart: 1 * s, WindowEnd: 11 * s,
			Samples: []*Sample{stream(0, Measured, 1*s, tokens, 3*s, 5*s)}}}}
	}
	one, four := level(1, 100), level(4, 240)
	// The efficiency is 24 tok/s at concurrency 4, divided by 4 · 10 tok/s.
	closeTo(t, "scaling_efficiency", four.Value("scaling_efficiency", Steady, nil, one), 0.6)
	closeTo(t, "scaling_efficiency of 1", one.Value("scaling_efficiency", Steady, nil, one), 1)
	checkNone(t, "scaling_efficiency without 1", four.Value("scaling_efficiency", Steady, nil, nil))
	checkNone(t, "scaling_efficiency against 4", one.Value("scaling_efficiency", Steady, nil, four))
	// 100 input tokens in a mean TTFT of 2 s are 50 tok/s.
	closeTo(t, "prefill_speed", one.Value("prefill_speed", Steady, nil, nil), 50)
	checkNone(t, "prefill_speed of 4", four.Value("prefill_speed", Steady, nil, nil))
	// The hit rate ignores requests without a number of cached tokens, such as the third. Of the
	// first two it is (30 + 0) / (100 + 100) = 0.15.
	checkNone(t, "cache_hit_rate", one.Value("cache_hit_rate", Steady, nil, nil))
	tells := func(cached int) *Sample {
		x := stream(0, Measured, 1*s, 1, 3*s)
		x.Usage.Cached = cached
		return x
	}
	closeTo(t, "cache_hit_rate", CacheHitRate([]*Sample{tells(30), tells(0), tells(-1)}), 0.15)
}

func TestSynchrony(t *testing.T) {
	round := func(slots, cycles int, start func(slot, k int) float64) *Round {
		r := &Round{}
		for slot := range slots {
			for k := range cycles {
				at := time.Duration(start(slot, k)*1e9) + s
				r.Samples = append(r.Samples, stream(slot, Measured, at, 1, at+1))
			}
		}
		return r
	}
	lock := round(8, 5, func(_, k int) float64 { return 10 * float64(k) })
	closeTo(t, "lock-step", lock.synchrony(8), 1)
	spread := round(8, 5, func(slot, k int) float64 { return 10*float64(k) + 10.0/8*float64(slot) })
	closeTo(t, "even spread", spread.synchrony(8), 0)
	// Two slots that start half a cycle apart are not synchronous.
	closeTo(t, "opposite", round(2, 3, func(slot, k int) float64 { return 10*float64(k) + 5*float64(slot) }).synchrony(2), 0)
	// Two slots start an eighth of a cycle apart, so R² = (1 + cos 45°)/2. The synchrony is ρ, and
	// ρ² = 2R² − 1 = cos 45°.
	closeTo(t, "an eighth", round(2, 3, func(slot, k int) float64 { return 10*float64(k) + 1.25*float64(slot) }).synchrony(2), math.Sqrt(math.Cos(math.Pi/4)))
	// A slot that starts a whole cycle after the other is in phase with it.
	closeTo(t, "a cycle late", round(2, 3, func(slot, k int) float64 { return 10 * float64(k+slot) }).synchrony(2), 1)

	// Slots with random starts have a synchrony near 0, however many they are.
	rng := rand.New(rand.NewPCG(1, 1))
	for _, slots := range []int{2, 5, 30} {
		sum := 0.0
		for range 50 {
			sum += round(slots, 20, func(_, k int) float64 { return 10*float64(k) + 10*rng.Float64() }).synchrony(slots).V
		}
		mean := sum / 50
		must.Hold(t, mean <= 0.35, "synchrony of random starts of %d slots is %.2f on average", slots, mean)
	}
	checkNone(t, "one slot", lock.synchrony(1))
	checkNone(t, "too many slots", lock.synchrony(1<<40))
	checkNone(t, "one start each", round(3, 1, func(slot, _ int) float64 { return float64(slot) }).synchrony(3))
	checkNone(t, "burst", (&Level{Kind: Burst, N: 8, Rounds: []*Round{lock}}).Synchrony())
	closeTo(t, "mean of rounds", (&Level{Kind: ClosedLoop, N: 8, Rounds: []*Round{lock, spread}}).Synchrony(), 0.5)
}
