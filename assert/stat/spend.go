package stat

import (
	"fmt"
	"math"
	"sync"
)

// Spend returns the error allowed at each of several looks at growing data; look i covers the first
// at[i] requests. All looks up to look i together err with a chance of at most alpha·share[i] (Lan
// and DeMets, Biometrika 70, 1983). Looks at the same data mostly err together, which the joint
// normal distribution of their estimates takes into account (Armitage, McPherson and Rowe, JRSS A
// 132, 1969). So the returned errors add up to more than alpha, although each is at most alpha.
//
// at and share must ascend, share to at most 1. Otherwise, and without looks, the
// result is nil.
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
	// Computing takes a few milliseconds, and a gate needs the same few values many
	// times.
	key := fmt.Sprint(at, share, alpha)
	if found, ok := spent.Load(key); ok {
		return found.([]float64)
	}
	out := spend(at, share, alpha)
	spent.Store(key, out)
	return out
}

var spent sync.Map // → []float64

// spend follows a Brownian motion from look to look: how likely it is at each place without having
// crossed a boundary.
func spend(at []int, share []float64, alpha float64) []float64 {
	const cells = 400
	tail := func(z float64) float64 { return 0.5 * math.Erfc(z/math.Sqrt2) }
	whole := float64(at[len(at)-1])
	// mass[i] is the chance of being at place[i] without a crossing so far.
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
		boundary := bisect(-10, 10, func(x float64) bool { return crossing(x) <= alpha*(share[k]-gone) })
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
