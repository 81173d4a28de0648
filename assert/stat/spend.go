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
	times, whole := make([]float64, len(at)), float64(at[len(at)-1])
	for i := range at {
		if at[i] <= n || !(share[i] > part) || share[i] > 1 {
			return nil
		}
		n, part = at[i], share[i]
		times[i] = float64(n) / whole
	}
	// Keep the result: it takes some milliseconds to compute, and a gate needs it many times, at looks of
	// other sizes too.
	key := fmt.Sprint(times, share, alpha)
	if found, ok := spent.Load(key); ok {
		return found.([]float64)
	}
	out := spend(times, share, alpha)
	spent.Store(key, out)
	return out
}

var spent sync.Map // → []float64

// spend computes the result of Spend for looks at parts of the data: the last of the times is 1. It models
// the evidence as a random motion. For each look it computes how likely each value of the motion is, if
// no boundary was crossed before.
func spend(times, share []float64, alpha float64) []float64 {
	const cells = 400
	tail := func(z float64) float64 { return 0.5 * math.Erfc(z/math.Sqrt2) }
	// mass[i] is the probability that the random motion is at place[i] and has crossed no boundary
	// so far.
	place, mass := []float64{0}, []float64{1}
	out := make([]float64, len(times))
	before, gone := 0.0, 0.0
	for k, t := range times {
		step := math.Sqrt(t - before)
		crossing := func(boundary float64) float64 {
			sum := 0.0
			for i, m := range mass {
				sum += m * tail((boundary-place[i])/step)
			}
			return sum
		}
		boundary := Bisect(-10, 10, func(x float64) bool { return crossing(x) <= alpha*(share[k]-gone) })
		if out[k] = min(alpha, tail(boundary/math.Sqrt(t))); k == len(times)-1 {
			break // nothing comes after it
		}
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
