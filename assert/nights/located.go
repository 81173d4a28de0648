package nights

import (
	"math"
	"slices"
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
	level := tonight.Level * ofLocated
	if !tonight.Judged || !suspect(xs, level, tonight.Correlation) && !changed(watched) {
		return nil
	}
	var out []cut
	cuts := divisive(xs)
	for i, cut := range cuts {
		from, to := sides(cuts, i, len(xs))
		before, after := robust(xs[from:cut.Night], c.floor, 0), robust(xs[cut.Night:to], c.floor, 0)
		expected := before.predict(to-cut.Night, tonight.Correlation)
		// A clipped mean, so that one bad night among five does not make a change.
		mean := before.predict(1, tonight.Correlation).clipped(xs[cut.Night:to], !c.common)
		p := 2 * min(expected.upperTail(mean, 0, 1), expected.lowerTail(mean, 0, 1))
		cut.Night, cut.Before, cut.After = seen[cut.Night], before.Mean, after.Mean
		if p <= level && math.Abs(after.Mean-before.Mean) >= c.ignore {
			out = append(out, cut)
		}
	}
	return out
}

func changed(watched []night) bool {
	return slices.ContainsFunc(watched, func(n night) bool { return n.Changed })
}

// confirm makes tonight fail if the last change in cuts was for the worse and has not ended. The
// function watch may have missed such a change. A night in cuts is an index into the plan's nights.
func (n *night) confirm(cuts []cut, c column, watched []night) {
	if len(cuts) == 0 || n.Changed || !n.Judged {
		return
	}
	last := cuts[len(cuts)-1]
	if n.Moved > 0 && last.Night < n.Moved+leastSegment || ended(watched[last.Night:]) {
		return
	}
	sign := float64(c.worse)
	if sign == 0 {
		sign = math.Copysign(1, last.After-last.Before)
	}
	if shift := last.After - n.Expected.Center; sign*(last.After-last.Before) > 0 && sign*shift > 0 && math.Abs(shift) >= c.ignore {
		n.Changed, n.Worse, n.From, n.Shift = true, true, last.Night, shift
	}
}

func ended(watched []night) bool {
	return slices.ContainsFunc(watched, func(n night) bool { return n.Back })
}

// began returns the located change that is tonight's alarm. The night that raised the alarm may be
// a few nights from the change. ok is false if no located change is this alarm: it is too recent.
func (n night) began(cuts []cut, c column) (began cut, ok bool) {
	for _, cut := range slices.Backward(cuts) {
		if (cut.After-cut.Before)*n.Shift <= 0 {
			continue
		}
		if n.From <= cut.Night+leastSegment {
			return cut, true // two changes are further apart
		}
		between, nights := 0.0, 0.0
		for i := cut.Night; i < n.From; i++ {
			if x := c.values[i]; !math.IsNaN(x) {
				between, nights = between+x, nights+1
			}
		}
		// If the change were over before the alarm, the nights between would be like those before.
		middle := (cut.Before + cut.After) / 2
		return cut, (between/nights-middle)*n.Shift > 0
	}
	return began, false
}
