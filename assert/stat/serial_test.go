package stat

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

func TestAutocorrelation(t *testing.T) {
	for _, c := range []struct {
		name   string
		series []float64
		want   float64
	}{
		{"nothing", nil, 0},
		{"one value", []float64{3}, 0},
		{"constant", []float64{2, 2, 2, 2}, 0},
		{"alternating", []float64{1, 3, 1, 3}, -0.75}, // mean 2, deviations ∓1: (−1−1−1)/4
		{"a step", []float64{1, 1, 3, 3}, 0.25},       // (1 −1 +1)/4
		{"a slope", []float64{1, 2, 3, 4, 5}, 0.4},    // deviations −2…2: (2+0+0+2)/10
		{"moved and stretched", []float64{10, 30, 10, 30}, -0.75},
	} {
		got := autocorrelation(c.series)
		must.Hold(t, math.Abs(got-c.want) <= 1e-12, "%s: %v, want %v", c.name, got, c.want)
	}
}

func TestInflation(t *testing.T) {
	for _, c := range []struct {
		name   string
		series []float64
		errors float64
		want   float64
	}{
		{"too few values", []float64{1, 2}, 1, 1},
		{"alternating", []float64{1, 3, 1, 3}, 0, 1},             // −0.75 + 0.25 < 0
		{"alternating, one error", []float64{1, 3, 1, 3}, 1, 1},  // −0.75 + 0.25 + 0.5 = 0
		{"a step", []float64{1, 1, 3, 3}, 0, 3},                  // r = 0.25 + 0.25
		{"a step, half an error", []float64{1, 1, 3, 3}, 0.5, 7}, // r = 0.75
		{"a step, two errors", []float64{1, 1, 3, 3}, 2, 19},     // r at most 0.9
		{"a slope", []float64{1, 2, 3, 4, 5}, 0, 4},              // r = 0.4 + 0.2
	} {
		got := Inflation(c.series, c.errors)
		must.Hold(t, math.Abs(got-c.want) <= 1e-9, "%s: %v, want %v", c.name, got, c.want)
	}
}

// An interval that is widened by the inflation covers the mean of a correlated series about as often
// as it promises. Without it, it errs three times as often.
func TestInflationCovers(t *testing.T) {
	const n, trials, rho = 20, 4000, 0.4
	r := rand.New(rand.NewPCG(7, 8))
	plain, wide := 0, 0
	for range trials {
		series, x := make([]float64, n), r.NormFloat64()
		for i := range series {
			series[i] = x
			x = rho*x + math.Sqrt(1-rho*rho)*r.NormFloat64()
		}
		mean, low, high, _ := MeanInterval(series, 0.05)
		if high < 0 {
			plain++
		}
		if mean+(mean-low)*math.Sqrt(Inflation(series, 0.5)) < 0 {
			wide++
		}
	}
	must.Hold(t, plain >= trials*10/100 && wide <= trials*6/100, "the upper bound is below the mean in %d of %d, corrected in %d", plain, trials, wide)
}
