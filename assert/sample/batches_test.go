package sample

import (
	"math"
	"slices"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

func TestApart(t *testing.T) {
	step := []float64{1, 1, 3, 3}
	window, rounds := &metric.Level{Batches: true}, &metric.Level{}
	for _, c := range []struct {
		name  string
		level *metric.Level
		in    []float64
		want  []float64
	}{
		{"rounds stay as they are", rounds, step, step},
		// The autocorrelation 0.25, its bias 1/4 and a standard error 1/2 are above 0.9: √(1.9/0.1) times as far.
		{"batches", window, step, []float64{2 - math.Sqrt(19), 2 - math.Sqrt(19), 2 + math.Sqrt(19), 2 + math.Sqrt(19)}},
		{"an infinite value", window, []float64{1, math.Inf(1), 2}, []float64{1, math.Inf(1), 2}},
		{"nothing", window, nil, nil},
	} {
		got := Apart(c.level, c.in, false)
		if !slices.EqualFunc(got, c.want, func(a, b float64) bool { return a == b || math.Abs(a-b) < 1e-9 }) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	long := make([]float64, 20)
	for i := range long {
		long[i] = float64(i % 2)
	}
	long[0] = 1
	rate, mean := Resemblance(window, long, true), Resemblance(window, long, false)
	must.Hold(t, rate >= mean, "a rate of twenty batches keeps a whole standard error: %v, %v", rate, mean)
}
