package nights

import (
	"math"
	"slices"

	"github.com/tokgate/tokgate/assert/stat"
)

// mostLocated is the largest number of nights that are searched for earlier changes: the last ones.
// The search takes time that grows with the square of their number.
const mostLocated = 1000

// ofLocated is the share of the allowed false alarms that the search for changes on earlier nights
// may use.
const ofLocated = 0.03

// located returns the changes that the function divisive finds in a series. Alone, divisive would
// find a change in one of a hundred unchanged series, every night. So a second test is needed: the
// nights before and after a change must differ significantly. Its level of significance is divided
// among all series of the plan.
func located(c column, watched []night) []cut {
	var seen []int
	var xs []float64
	for i := range watched {
		if !math.IsNaN(c.values[i]) {
			seen, xs = append(seen, i), append(xs, c.values[i])
		}
	}
	if len(seen) == 0 {
		return nil
	}
	recent := max(len(seen)-mostLocated, 0)
	seen, xs = seen[recent:], xs[recent:]
	tonight := watched[seen[len(seen)-1]]
	level := tonight.Level * ofLocated / windows[0].share
	if tonight.Reference < leastReference || !suspect(xs, level, tonight.Correlation) && !changed(watched) {
		return nil
	}
	var out []cut
	cuts := divisive(xs)
	for i, cut := range cuts {
		from, to := 0, len(xs)
		if i > 0 {
			from = cuts[i-1].Night
		}
		if i < len(cuts)-1 {
			to = cuts[i+1].Night
		}
		expected := robust(xs[from:cut.Night], c.floor).predict(to-cut.Night, tonight.Correlation)
		cut.Night = seen[cut.Night]
		if 2*min(expected.upperTail(cut.After), expected.lowerTail(cut.After)) <= level && math.Abs(cut.After-cut.Before) >= c.ignore {
			out = append(out, cut)
		}
	}
	return out
}

func changed(watched []night) bool {
	return slices.ContainsFunc(watched, func(n night) bool { return n.Changed })
}

// suspect reports whether the function divisive may find a change in xs. The means before and after
// some night must differ by nearly as much as a significant change. suspect takes linear time, and
// divisive takes quadratic time.
func suspect(xs []float64, level, r float64) bool {
	worth := 0.75 * stat.NormalQuantile(1-level/2) * math.Sqrt((1+r)/(1-r))
	mean, variance := stat.Moments(xs)
	total, left := float64(len(xs)), 0.0
	squares := variance * (total - 1)
	for k := 1; k < len(xs); k++ {
		left += xs[k-1] - mean
		n, m := float64(k), total-float64(k)
		// between is the part of the sum of squares that a change at night k would explain.
		between := left * left * (1/n + 1/m)
		if k >= leastSegment && len(xs)-k >= leastSegment && between*(total-2) > worth*worth*(squares-between) {
			return true
		}
	}
	return false
}

// confirm makes tonight fail if the last change in cuts was for the worse and has not ended. The
// function watch may have missed such a change. A night in cuts is an index into the plan's nights.
func (n *night) confirm(cuts []cut, c column, watched []night) {
	if len(cuts) == 0 || n.Changed || n.Reference < leastReference {
		return
	}
	last := cuts[len(cuts)-1]
	for _, w := range watched[last.Night:] {
		if w.Back {
			return // and has ended
		}
	}
	sign := float64(c.worse)
	if sign == 0 {
		sign = math.Copysign(1, last.After-last.Before)
	}
	if shift := last.After - n.Expected.Center; sign*(last.After-last.Before) > 0 && sign*shift > 0 && math.Abs(shift) >= c.ignore {
		n.Changed, n.Worse, n.From, n.Shift = true, true, last.Night, shift
	}
}
