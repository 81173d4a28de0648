package stat

import (
	"math"
	"slices"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// The mean of equal numbers is exactly that number, and their variance is 0, although 1/n is
// rounded. So a share of 1 in every round has the mean 1. Large numbers do not overflow, and an
// infinite mean stays infinite.
func TestMomentsAreExact(t *testing.T) {
	for n := 2; n <= 200; n++ {
		for _, x := range []float64{1, 0.9, 0.1, 1.0 / 3, 40, 1e300} {
			mean, variance := Moments(slices.Repeat([]float64{x}, n))
			must.Hold(t, mean == x && variance == 0, "%d times %v: mean %v, variance %v", n, x, mean, variance)
		}
	}
	mean, _ := Moments([]float64{1, math.Inf(1), 2})
	must.Hold(t, math.IsInf(mean, 1), "with an infinite one: %v", mean)
}
