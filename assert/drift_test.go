package assert

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
)

func TestSlope(t *testing.T) {
	// The values 10, 12, 12, 12 and 14 have the mean 12. Their slope is (−2·−2 + −1·0 + 0 + 1·0 +
	// 2·2)/10 = 0.8 per step.
	//
	// The residuals −0.4, 0.8, 0, −0.8 and 0.4 have the variance s² = 1.6/3. The slope's t
	// statistic is 0.8/√(0.5333/10) = 3.464, so p = 0.0405 with 3 degrees of freedom.
	change, p, ok := slope([]float64{1, 2, 3, 4, 5}, []float64{10, 12, 12, 12, 14})
	must.Hold(t, ok && math.Abs(change-0.8*4) <= 1e-12 && math.Abs(p-0.0405) <= 1e-4, "slope = %v, p = %v, %v", change, p, ok)
	if _, p, ok := slope([]float64{1, 2, 3, 4, 5}, []float64{1, 1, 1, 1, 1}); !ok || p != 1 {
		t.Errorf("no slope: p = %v", p)
	}
	for _, x := range [][]float64{nil, {1, 2, 3, 4}, {1, 1, 1, 1, 1}} {
		if _, _, ok := slope(x, x); ok {
			t.Errorf("%v has a slope", x)
		}
	}
}

func TestDrift(t *testing.T) {
	r := rand.New(rand.NewPCG(71, 72))
	noise := func() float64 { return 1 + 0.02*r.NormFloat64() }
	for _, c := range []struct {
		name  string
		shape shape
		says  []string
	}{
		{"steady", shape{rounds: 10, perRound: 20, ttft: func(int, int) float64 { return noise() }}, nil},
		// TTFT grows from 1 to 1.9 s, and the rest of an answer takes 0.2 s. So e2e grows from 1.2
		// to 2.1 s, by 75%. The test finds about 75%, because it fits a line to the logarithms.
		{"from round to round", shape{rounds: 10, perRound: 20, ttft: func(r, _ int) float64 { return noise() + 0.1*float64(r) }}, []string{"grows by 7", "from the first of 10 rounds to the last"}},
		{"falls", shape{rounds: 10, perRound: 20, ttft: func(r, _ int) float64 { return noise() - 0.05*float64(r) }}, []string{"falls by", "10 rounds"}},
		// During the warm-up a request takes 4.2 s instead of 1.2 s: 3.5 times as long. The note
		// must not state a higher ratio.
		{"a server that warms up", shape{rounds: 10, perRound: 20, ttft: func(r, _ int) float64 {
			if r < 3 {
				return 4 * noise()
			}
			return noise()
		}}, []string{"warm-up: the first 60 requests took 3.5 times as long as the rest. To leave them out, set warmup = 60"}},
		{"within rounds", shape{rounds: 10, perRound: 20, ttft: func(_, i int) float64 { return noise() + 0.1*float64(i) }}, []string{"grows by", "from the first half of a round to the second"}},
		{"in one round", shape{rounds: 1, perRound: 100, ttft: func(_, i int) float64 { return noise() + 0.01*float64(i) }}, []string{"from the first of 10 blocks to the last"}},
		{"by less than counts", shape{rounds: 10, perRound: 20, ttft: func(r, _ int) float64 { return 1 + 0.004*float64(r) }}, nil},
		{"four rounds", shape{rounds: 4, perRound: 8, ttft: func(r, _ int) float64 { return 1 + float64(r) }}, nil},
	} {
		l := c.shape.level()
		p, run := gate(l, threshold("ttft", "p95 < 2s"))
		load := verdictOf(t, Judge(p, run, Options{}), "load at 4")
		var said []string
		for _, n := range load.NotesOf() {
			if strings.HasPrefix(n, "drift: ") || strings.HasPrefix(n, "warm-up: ") {
				said = append(said, n)
			}
		}
		text := strings.Join(said, "\n")
		must.Hold(t, (len(said) == 0) == (len(c.says) == 0), "%s: says %q", c.name, text)
		for _, want := range c.says {
			must.Hold(t, strings.Contains(text, want), "%s: says %q, want %q", c.name, text, want)
		}
		must.Hold(t, !strings.Contains(text, "falls by 1") && load.Outcome == verdict.Pass, "%s: %v %s", c.name, load.Outcome, load.Message)
	}
	// Of levels without drift, at most 1% may get a note on a rise, and at most 1% one on a fall.
	// So 300 levels get about 6 notes or fewer.
	said := 0
	for range 300 {
		e := gather(shape{rounds: 10, perRound: 20, ttft: func(int, int) float64 { return 0.1 + 2*r.ExpFloat64() }}.level())
		said += len(e.drift())
	}
	must.Hold(t, said <= 15, "300 steady levels have %d notes", said)
}

// If a server was slow only while it warmed up, more requests would not help to decide.
func TestWarmingNeeds(t *testing.T) {
	warms := shape{rounds: 10, perRound: 20, ttft: func(r, _ int) float64 {
		if r < 2 {
			return 4
		}
		return 1
	}}
	p, run := gate(warms.level(), threshold("ttft", "p95 < 2s"))
	v := verdictOf(t, Judge(p, run, Options{}), "sla.ttft.p95 at 4")
	must.Hold(t, v.Outcome == verdict.Inconclusive && v.More == -1 && strings.Contains(v.Needs, "needs a longer warmup"), "%v: needs %q (%d)", v.Outcome, v.Needs, v.More)
}
