package assert

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// TestLongOperatingCharacteristics counts how often the gate passes and fails simulated servers. A
// server exactly at its limit passes at most 5% of the time, and fails at most 5% of the time. A
// server well below its limit mostly passes, and a server well above it mostly fails.
func TestLongOperatingCharacteristics(t *testing.T) {
	const gates = 400
	// Times are exponential. Their mean follows from the share of requests that take 2 s or longer:
	// share = e^(−2/mean).
	for _, c := range []struct {
		name             string
		rounds, perRound int
		share            float64 // share of requests that take 2 s or longer
		mostPass         float64
		mostFail         float64
		leastPass        float64
		leastFail        float64
	}{
		{"at the limit, 5 rounds", 5, 60, 0.05, 0.05, 0.05, 0, 0},
		{"at the limit, one round in blocks", 1, 200, 0.05, 0.05, 0.05, 0, 0},
		{"under the limit", 5, 100, 0.01, 1, 0, 0.9, 0},
		{"over the limit", 5, 100, 0.12, 0, 1, 0, 0.9},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(31, uint64(len(c.name))))
			mean := -2 / math.Log(c.share)
			var passed, failed float64
			for range gates {
				l := shape{n: 4, rounds: c.rounds, perRound: c.perRound, ttft: func(int, int) float64 { return mean * r.ExpFloat64() }}.level()
				e := subject{evidence: gather(l), alpha: 0.05}
				switch e.judge(threshold("ttft", "p95 < 2s")).Outcome {
				case verdict.Pass:
					passed++
				case verdict.Fail:
					failed++
				}
			}
			passed, failed = passed/gates, failed/gates
			t.Logf("pass %.1f%%, fail %.1f%%", 100*passed, 100*failed)
			// Allow three standard errors of a share of 5%.
			slack := 3 * math.Sqrt(0.05*0.95/gates)
			if passed > c.mostPass+slack || failed > c.mostFail+slack || passed < c.leastPass || failed < c.leastFail {
				t.Errorf("pass %.3f, fail %.3f", passed, failed)
			}
		})
	}
}

// A server whose p95 is half of its limit passes by its margin only. Its rounds differ by a tenth,
// so its 200 requests count as fewer than the 59 that a p95 needs.
func TestLongOperatingCharacteristicsOfMargin(t *testing.T) {
	const gates = 300
	p := process{round: 0.9}
	r := rand.New(rand.NewPCG(61, 62))
	passed, byCount := 0, 0
	for range gates {
		g := p.scores(r)
		l := shape{n: 4, rounds: 10, perRound: 20, ttft: func(round, i int) float64 { return math.Exp(0.1 * (g(round, i) - p.score(0.05))) }}.level()
		s := subject{evidence: gather(l), alpha: 0.05}
		if v := s.judge(threshold("ttft", "p95 < 2s")); v.Outcome == verdict.Pass {
			passed++
			if v.Effective >= 59 {
				byCount++
			}
		}
	}
	must.Hold(t, passed >= gates*8/10 && byCount <= gates/10, "%d of %d pass, %d of them by their count", passed, gates, byCount)
}

// TestLongOperatingCharacteristicsOfMeans checks gates whose limit is the true mean: at most 5% of
// them pass.
func TestLongOperatingCharacteristicsOfMeans(t *testing.T) {
	const gates = 1000
	r := rand.New(rand.NewPCG(41, 42))
	var passed, failed float64
	for range gates {
		l := shape{n: 1, rounds: 6, perRound: 30, ttft: func(int, int) float64 { return r.ExpFloat64() }}.level()
		e := subject{evidence: gather(l), alpha: 0.05}
		switch e.judge(threshold("ttft", "mean < 1s")).Outcome {
		case verdict.Pass:
			passed++
		case verdict.Fail:
			failed++
		}
	}
	// Means of 30 exponential values are slightly skewed. So the test allows 5 %, plus three
	// standard errors, plus 2 % for the skewness.
	most := 0.05 + 0.02 + 3*math.Sqrt(0.05*0.95/gates)
	must.Hold(t, passed/gates <= most && failed/gates <= most && passed+failed != 0, "pass %.3f, fail %.3f, at most %.3f", passed/gates, failed/gates, most)
}

func TestGather(t *testing.T) {
	for _, c := range []struct {
		shape  shape
		kind   metric.LoadKind
		blocks int
		sound  bool
		waves  int
	}{
		{shape{n: 4, rounds: 5, perRound: 12}, metric.ClosedLoop, 5, true, 15},
		{shape{n: 4, rounds: 4, perRound: 12}, metric.ClosedLoop, 12, true, 12}, // 3 blocks a round
		{shape{n: 4, rounds: 4, perRound: 11}, metric.ClosedLoop, 8, false, 8},  // 2 waves a round
		{shape{n: 4, rounds: 1, perRound: 40}, metric.ClosedLoop, 10, true, 10},
		{shape{n: 4, rounds: 1, perRound: 39}, metric.ClosedLoop, 9, false, 9},
		{shape{n: 4, rounds: 1, perRound: 400}, metric.ClosedLoop, 10, true, 100},
		{shape{n: 4, rounds: 1, perRound: 3}, metric.ClosedLoop, 1, false, 1},
		{shape{n: 8, rounds: 4, perRound: 8}, metric.Burst, 4, false, 4},
		{shape{n: 8, rounds: 5, perRound: 8}, metric.Burst, 5, true, 5},
		{shape{n: 8}, metric.ClosedLoop, 0, false, 0},
	} {
		l := c.shape.level()
		l.Kind = c.kind
		e := gather(l)
		if len(e.blocks) != c.blocks || e.sound != c.sound || e.waves != c.waves || e.n != l.Due() {
			t.Errorf("%+v: %d blocks, sound %v, %d waves, %d requests; want %d, %v, %d", c.shape, len(e.blocks), e.sound, e.waves, e.n, c.blocks, c.sound, c.waves)
		}
		n := 0
		for _, b := range e.blocks {
			n += len(b.samples) + b.lost
			must.Hold(t, len(b.samples) >= min(l.N, c.shape.perRound), "%+v: a block of %d, less than a wave", c.shape, len(b.samples))
		}
		must.Hold(t, n == e.n, "%+v: the blocks hold %d of %d requests", c.shape, n, e.n)
	}
}
