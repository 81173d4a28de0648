package stat

import (
	"fmt"
	"math"
	"sync"
)

// Spend returns the error probability that each of several looks at growing data may use. Look i
// sees the first at[i] requests. The probability of an error at any look up to look i is at most
// alpha·share[i] (Lan and DeMets, Biometrika 70, 1983).
//
// The looks share data, so an error at one is likely to repeat at the next. The returned
// probabilities therefore add up to more than alpha (Armitage, McPherson and Rowe, JRSS A 132,
// 1969).
//
// The slices at and share must ascend, and share must not exceed 1. The result is nil if they do
// not, or if there are no looks.
func Spend(at []int, share []float64, alpha float64) []float64 {
	if len(at) == 0 || len(share) != len(at) {
		return nil
	}
	n, part := 0, 0.0
	for i := range at {
		if at[i] <= n || !(share[i] > part) || share[i] > 1 {
			return nil
		}
		n, part = at[i], share[i]
	}
	// Keep the result: it takes a few milliseconds to compute, and a gate needs it many times.
	key := fmt.Sprint(at, share, alpha)
	if found, ok := spent.Load(key); ok {
		return found.([]float64)
	}
	out := spend(at, share, alpha)
	spent.Store(key, out)
	return out
}

var spent sync.Map // → []float64

// spend computes the result of Spend. It models the evidence as a random motion. For each look it
// computes how likely each value of the motion is, if no boundary was crossed before.
func spend(at []int, share []float64, alpha float64) []float64 {
	const cells = 400
	tail := func(z float64) float64 { return 0.5 * math.Erfc(z/math.Sqrt2) }
	whole := float64(at[len(at)-1])
	// mass[i] is the probability that the random motion is at place[i] and has crossed no boundary
	// so far.
	place, mass := []float64{0}, []float64{1}
	out := make([]float64, len(at))
	before, gone := 0.0, 0.0
	for k, n := range at {
		t := float64(n) / whole
		step := math.Sqrt(t - before)
		crossing := func(boundary float64) float64 {
			sum := 0.0
			for i, m := range mass {
				sum += m * tail((boundary-place[i])/step)
			}
			return sum
		}
		boundary := Bisect(-10, 10, func(x float64) bool { return crossing(x) <= alpha*(share[k]-gone) })
		out[k] = min(alpha, tail(boundary/math.Sqrt(t)))
		from := -8 * math.Sqrt(t)
		width := (boundary - from) / cells
		places, masses := make([]float64, cells), make([]float64, cells)
		for j := range cells {
			x := from + (float64(j)+0.5)*width
			places[j] = x
			for i, m := range mass {
				masses[j] += m * (tail((x-width/2-place[i])/step) - tail((x+width/2-place[i])/step))
			}
		}
		place, mass, before, gone = places, masses, t, share[k]
	}
	return out
}
