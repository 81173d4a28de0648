package nights

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

func TestLongDivisive(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	noise := func(n int, level float64) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = level + 0.02*rng.NormFloat64()
		}
		return out
	}
	constant := make([]float64, 40)
	tests := []struct {
		name   string
		series []float64
		want   []int
	}{
		{"nothing", nil, nil},
		{"constant", constant, nil},
		{"noise", noise(60, 0), nil},
		{"too few", noise(9, 0), nil},
		{"one step", append(noise(30, 0), noise(20, 0.1)...), []int{30}},
		{"there and back", append(append(noise(25, 0), noise(15, -0.2)...), noise(25, 0)...), []int{25, 40}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var at []int
			changes := divisive(tt.series)
			for _, c := range changes {
				at = append(at, c.Night)
			}
			must.Same(t, "", tt.want, at)
			must.Same(t, "not the same again", changes, divisive(tt.series))
		})
	}
	c := divisive(append(noise(30, 1), noise(30, 1.1)...))[0]
	must.Same(t, "the sides of the step", "1.00 1.10", fmt.Sprintf("%.2f %.2f", c.Before, c.After))
}

// At a significance level of 1 %, about one of 100 series without a change is split by chance.
func TestLongDivisiveFalse(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	split := 0
	const trials = 200
	for range trials {
		series := make([]float64, 40)
		for i := range series {
			series[i] = rng.NormFloat64()
		}
		if len(divisive(series)) > 0 {
			split++
		}
	}
	if split > 8 { // with 1 % each, more than 8 of 200 are split with a probability below 0.001
		t.Errorf("%d of %d series without a change are split", split, trials)
	}
}
