package nights

import (
	"math"
	"slices"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/metric"
)

// leastDrift is the minimum number of nights of a drift.
const leastDrift = 20

// creep replaces the changes since the reference began by one drift, if a line through the nights
// fits better than a step.
func (l *judgedLane) creep(nights []metric.Night) {
	first, _ := slices.BinarySearch(l.at, l.last.Moved)
	at := l.at[first:]
	xs := make([]float64, len(at))
	for i, k := range at {
		xs[i] = l.values[k]
	}
	slope, ok := creeps(xs, l.floor)
	days := nights[at[len(at)-1]].Started.Sub(nights[at[0]].Started).Hours() / 24
	if !ok || slope*l.last.Shift <= 0 || days <= 0 {
		return
	}
	mean, _ := stat.Moments(xs)
	half := slope * float64(len(at)-1) / 2
	l.changes = slices.DeleteFunc(l.changes, func(c changePoint) bool { return c.Night >= at[0] })
	l.alarm = len(l.changes)
	over := cut{Night: at[0], Before: mean - half, After: mean + half, P: math.NaN()}
	l.changes = append(l.changes, changePoint{cut: over, weekly: 2 * half / days * 7})
}

// creeps reports whether a line describes the values better than a step, and returns its slope per
// night. It compares both by the Bayesian information criterion (Schwarz, Annals of Statistics 6,
// 1978). A step has one parameter more, its place.
func creeps(xs []float64, floor float64) (slope float64, ok bool) {
	n := float64(len(xs))
	if len(xs) < leastDrift {
		return 0, false
	}
	m := robust(xs, floor, 0)
	limited := prediction{Center: m.Mean, Sigma: m.Sigma}
	ys := make([]float64, len(xs))
	for i, x := range xs {
		ys[i] = limited.clipped([]float64{x}, false)
	}
	mean, variance := stat.Moments(ys)
	whole := variance * (n - 1)
	middle, products, squares := (n-1)/2, 0.0, 0.0
	for i, y := range ys {
		d := float64(i) - middle
		products, squares = products+d*(y-mean), squares+d*d
	}
	step, left := 0.0, 0.0 // the largest part of the sum of squares that a step explains
	for k := 1; k < len(ys); k++ {
		left += ys[k-1] - mean
		if k >= leastSegment && len(ys)-k >= leastSegment {
			step = max(step, left*left*(1/float64(k)+1/(n-float64(k))))
		}
	}
	line := products * products / squares
	return products / squares, whole-line < (whole-step)*math.Pow(n, 1/n)
}
