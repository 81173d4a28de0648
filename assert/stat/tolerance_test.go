package stat

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

func TestToleranceFactor(t *testing.T) {
	// These factors are from the standard tables (Natrella, Experimental Statistics, NBS Handbook
	// 91, table A-7). The tables have three decimals.
	tests := []struct {
		n                   int
		content, confidence float64
		want                float64
	}{
		{5, 0.95, 0.95, 4.203},
		{10, 0.95, 0.95, 2.911},
		{20, 0.95, 0.95, 2.396},
		{50, 0.95, 0.95, 2.065},
		{10, 0.99, 0.95, 3.981},
		{10, 0.90, 0.95, 2.355},
		{10, 0.95, 0.99, 3.738},
		{5, 0.99, 0.95, 5.741},
	}
	for _, tt := range tests {
		got := ToleranceFactor(tt.n, tt.content, tt.confidence)
		must.Hold(t, math.Abs(got-tt.want) <= 0.0025, "ToleranceFactor(%d, %g, %g) = %.4f, want %.3f", tt.n, tt.content, tt.confidence, got, tt.want)
	}
	for n := range 4 {
		got := ToleranceFactor(n, 0.95, 0.99)
		must.Hold(t, math.IsNaN(got), "of %d observations it is %g, want NaN", n, got)
	}
}

func TestToleranceBound(t *testing.T) {
	// The bound is exp(mean + k·standard deviation) of the logarithms 0 and 2: exp(1 + √2·√2) = e³.
	got := ToleranceBound([]float64{1, math.E * math.E}, math.Sqrt2)
	must.Hold(t, math.Abs(got-math.Exp(3)) <= 1e-9, "ToleranceBound = %g, want e³", got)
	for _, bad := range [][]float64{nil, {1}, {1, 0, 1}, {1, -1, 1}, {1, math.Inf(1)}, {1, math.NaN()}} {
		got := ToleranceBound(bad, 2)
		must.Hold(t, math.IsInf(got, 1), "ToleranceBound(%v) = %g, want +Inf", bad, got)
	}
}

// A server whose p95 is exactly at the limit almost never passes by the tolerance bound. This holds
// for independent requests, for slow drifts within a round, and for shifts between rounds.
func TestLongToleranceBoundHardlyPassesAtTheLimit(t *testing.T) {
	const runs, rounds, each, sigma = 2000, 10, 20, 0.4
	k := ToleranceFactor(rounds, 0.95, 0.95)
	limit := math.Exp(sigma * NormalQuantile(0.95))
	for _, tt := range []struct {
		name string
		// The field rho is the correlation of neighbouring requests, and shift is the share of the
		// variance that is between rounds.
		rho, shift float64
	}{{"independent", 0, 0}, {"AR(1) 0.9", 0.9, 0}, {"shifted rounds", 0, 0.8}, {"both", 0.9, 0.5}} {
		r := rand.New(rand.NewPCG(7, 11))
		passed := 0
		for range runs {
			extremes := make([]float64, rounds)
			for i := range extremes {
				shift, x := math.Sqrt(tt.shift)*r.NormFloat64(), r.NormFloat64()
				for range each {
					x = tt.rho*x + math.Sqrt(1-tt.rho*tt.rho)*r.NormFloat64()
					extremes[i] = max(extremes[i], math.Exp(sigma*(shift+math.Sqrt(1-tt.shift)*x)))
				}
			}
			if ToleranceBound(extremes, k) < limit {
				passed++
			}
		}
		share := float64(passed) / runs
		must.Hold(t, share <= 0.01, "%s: passes %.1f %% of the time at the limit, want at most 1 %%", tt.name, 100*share)
	}
}
