package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tokgate/tokgate/internal/must"
)

func TestSpend(t *testing.T) {
	for _, c := range []struct {
		at    []int
		share []float64
		want  []float64
	}{
		{[]int{200}, []float64{1}, []float64{0.05}}, // a single look may use the whole error
		{[]int{200}, []float64{0.1}, []float64{0.005}},
		// The first look may use the error 0.01, and both looks together 0.05. The second boundary
		// is crossed with 0.0464, not 0.04, because 0.0064 of the runs cross both.
		{[]int{100, 200}, []float64{0.2, 1}, []float64{0.01, 0.0464}},
		{[]int{5, 7, 10}, []float64{0.25, 0.49, 1}, []float64{0.0125, 0.0191, 0.0399}},
		{nil, nil, nil},
		{[]int{2, 1}, []float64{0.5, 1}, nil},
		{[]int{1, 2}, []float64{0.5, 0.5}, nil},
		{[]int{1, 2}, []float64{0.5, 1.5}, nil},
	} {
		must.Same(t, fmt.Sprintf("%v %v", c.at, c.share), c.want, Spend(c.at, c.share, 0.05), cmpopts.EquateApprox(0, 5e-4))
	}
}

func TestLongSpendKeepsTheError(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, at := range [][]int{{5, 7, 10}, {1, 2, 4, 8}} {
		share := make([]float64, len(at))
		for i, n := range at {
			share[i] = math.Pow(float64(n)/float64(at[len(at)-1]), 2)
		}
		levels := Spend(at, share, 0.05)
		const n = 1_000_000
		crossed := 0
		for range n {
			s, before := 0.0, 0
			for k, m := range at {
				s += math.Sqrt(float64(m-before)) * r.NormFloat64()
				before = m
				if s/math.Sqrt(float64(m)) > NormalQuantile(1-levels[k]) {
					crossed++
					break
				}
			}
		}
		// In a million random runs, 5 % should cross a boundary. Three standard errors of that
		// share are 0.07 %.
		p := float64(crossed) / n
		must.Hold(t, math.Abs(p-0.05) <= 0.0007, "%v: %.4f", at, p)
	}
}
