package metric

import (
	"math"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

func TestDistance(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, tt := range []struct {
		name string
		a, b [][]float32
		want float64
		ok   bool
	}{
		{"the same way, at any length", [][]float32{{3, 4}}, [][]float32{{6, 8}}, 0, true},
		{"at a right angle", [][]float32{{1, 0}}, [][]float32{{0, 2}}, 1, true},
		{"the other way", [][]float32{{1, 0}}, [][]float32{{-1, 0}}, 2, true},
		{"the mean of 0 and 1 − 3/5", [][]float32{{1, 0}, {1, 0}}, [][]float32{{1, 0}, {3, 4}}, 0.2, true},
		{"one is missing: the mean of 0 and 1", [][]float32{{1, 0}, {1, 0}}, [][]float32{{1, 0}}, 0.5, true},
		{"of another length", [][]float32{{1, 0}}, [][]float32{{1, 0, 0}}, 1, true},
		{"nothing came", [][]float32{{1, 0}}, nil, 1, true},
		{"without direction", [][]float32{{1, 0}}, [][]float32{{0, 0}}, 1, true},
		{"no number", [][]float32{{1, 0}}, [][]float32{{nan, 0}}, 1, true},
		{"the first without direction", [][]float32{{1, 0}, {0, 0}}, [][]float32{{1, 0}, {0, 0}}, 0, false},
		{"the first no number", [][]float32{{nan, 1}}, [][]float32{{nan, 1}}, 0, false},
		{"the first infinite", [][]float32{{inf, 1}}, [][]float32{{inf, 1}}, 0, false},
		{"no first", nil, [][]float32{{1, 0}}, 0, false},
	} {
		got, ok := Distance(tt.a, tt.b)
		must.Hold(t, ok == tt.ok && math.Abs(got-tt.want) < 1e-12, "%s: %v %v, want %v %v", tt.name, got, ok, tt.want, tt.ok)
	}
}
