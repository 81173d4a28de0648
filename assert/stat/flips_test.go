package stat

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tokgate/tokgate/internal/must"
)

func TestFlips(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name string
		in   [][]float64
		want []float64
	}{
		{"nothing", nil, []float64{}},
		// The p-value is 1/8: of the 2^3 patterns of signs, only the measured one has a sum of at
		// least 1 + 2 + 3 = 6.
		{"all above", [][]float64{{1, 2, 3}}, []float64{1. / 8}},
		// Two of the 2^3 patterns of signs have a sum of at least the measured 4: −1+2+3 and
		// +1+2+3.
		{"the smallest below", [][]float64{{-1, 2, 3}}, []float64{2. / 8}},
		// The values differ from their mean by +1, 0 and −1. With any signs, these differences
		// have a larger sum than the measured values, so the p-value is 1.
		{"all below", [][]float64{{-1, -2, -3}}, []float64{1}},
		// Two proportional quantities count as one test.
		{"twice", [][]float64{{1, 2, 3}, {2, 4, 6}}, []float64{1. / 8, 1. / 8}},
		// A quantity far below 0 does not weaken a quantity above 0.
		{"and its opposite", [][]float64{{1, 2, 3}, {-1, -2, -3}}, []float64{1. / 8, 1}},
		// The second quantity is larger in relation to its values (4/√6 > 6/√14), so it is tested
		// first. The first quantity is then tested alone. For both, one of eight patterns of signs
		// reaches the measured sum.
		{"step-down", [][]float64{{1, 2, 3}, {1, 1, 2}}, []float64{1. / 8, 1. / 8}},
		{"infinite", [][]float64{{1, 2, inf}, {1, 2, 3}}, []float64{1, 1. / 8}},
		{"no spread, at 0", [][]float64{{0, 0, 0}}, []float64{1}},
		{"no spread, above 0", [][]float64{{2, 2, 2}}, []float64{1. / 8}},
	} {
		must.Same(t, c.name, c.want, Flips(c.in), cmpopts.EquateApprox(0, 1e-12))
	}
}

// If no quantity is truly above 0, at most 5 % of the runs have a p-value of 0.05 or less, even if
// the quantities depend strongly on each other.
func TestLongFlipsKeepTheError(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for _, common := range []float64{0, 0.5, 0.95} {
		for _, units := range []int{8, 13} {
			n, claims := 600, 0
			if units == 13 {
				n = 60
			}
			for range n {
				q := make([][]float64, 3)
				for j := range q {
					q[j] = make([]float64, units)
				}
				for i := range units {
					shared := r.NormFloat64()
					for j := range q {
						q[j][i] = math.Sqrt(common)*shared + math.Sqrt(1-common)*r.NormFloat64()
					}
				}
				for _, p := range Flips(q) {
					if p <= 0.05 {
						claims++
						break
					}
				}
			}
			got, most := float64(claims)/float64(n), 0.05+3*math.Sqrt(0.05*0.95/float64(n))
			must.Hold(t, got <= most && got != 0, "%.2f in common, %d units: %.3f, at most %.3f", common, units, got, most)
		}
	}
}
