package compare

import (
	"math"
	"slices"

	"github.com/tokgate/tokgate/assert/stat"
)

// delta is the change of a metric from control to candidate, as it is tested. Values are logarithms
// of ratios, or differences if the change is in points. A positive value is worse.
type delta struct {
	units []float64 // change from control to candidate, for each independent unit
	// control and candidate hold the values of the sides, unless they are compared in pairs. unpaired
	// means that the control is a stored run: the sides may differ in their spread, and units is set
	// only if a value is infinite. It then holds the differences between the first rounds of both
	// sides, the second rounds, and so on.
	control, candidate []float64
	unpaired           bool
	// starts is set if each value is that of a fresh start: the places in time of the control's and of
	// the candidate's values. Both sides then share a linear drift.
	starts   *[2][]float64
	design   stat.Design // of starts
	sessions []int       // see stat.Design.Drifting
	// counts is set for metrics that count requests. For each side it holds the number of
	// independent requests: the good ones and all.
	counts *counts
	// paired holds the outcomes of the pairs, for metrics that compare answers to the same prompt.
	// It is nil for other metrics.
	paired *outcomes
}

type counts struct{ goodA, allA, goodB, allB float64 }

// infinite reports whether the change of a round is infinite or undefined. A failed request counts
// as infinitely slow, so a percentile can be infinite.
func (d delta) infinite() bool {
	return slices.ContainsFunc(d.units, func(x float64) bool { return math.IsInf(x, 0) || math.IsNaN(x) })
}

// bounds returns the estimate of the change, and a lower and an upper bound. Each bound may be
// wrong with probability alpha.
func (d delta) bounds(alpha float64) (mid, low, high float64, ok bool) {
	if o := d.paired; o != nil {
		low, high, ok = stat.PairedShare(o.lost, o.won, o.all, alpha)
		return (o.lost - o.won) / o.all, low, high, ok
	}
	switch {
	case d.starts != nil:
		var drift stat.Drift
		drift, ok = d.drift()
		low, high = drift.Bounds(alpha)
		mid = drift.Diff
	case d.unpaired:
		mid, low, high, ok = stat.Welch(d.control, d.candidate, alpha)
	default:
		mid, low, high, ok = stat.MeanInterval(d.units, alpha)
		ok = ok && len(d.units) >= 2
	}
	if c := d.counts; ok && c != nil {
		// Widen the interval to that of the request counts: if no request failed, all rounds are
		// equal, and a t interval has no width. More good requests are better, so swap the signs.
		l, h, found := stat.ShareDifference(c.goodA, c.allA, c.goodB, c.allB, alpha)
		if !found {
			return mid, math.Inf(-1), math.Inf(1), false
		}
		low, high = min(low, -h), max(high, -l)
	}
	return mid, low, high, ok
}

func (d delta) drift() (stat.Drift, bool) {
	if d.starts == nil || d.infinite() {
		return stat.Drift{}, false
	}
	return d.design.Drifting(stat.Timed{Values: d.control, At: d.starts[0]}, stat.Timed{Values: d.candidate, At: d.starts[1]},
		d.sessions...)
}

// pAbove is the p-value for a change above the limit: the smallest error at which the data show it.
// It is 1 if they never do.
func (d delta) pAbove(limit float64) float64 {
	if d.infinite() {
		return d.signs(func(x float64) bool { return x > limit })
	}
	_, _, _, ok := d.bounds(0.05)
	if !ok {
		return 1
	}
	lo, hi := 1e-9, 0.5
	if drift, ok := d.drift(); ok && d.paired == nil && d.counts == nil {
		return max(drift.Above(limit), lo)
	}
	if d.paired == nil && !d.unpaired && d.counts == nil {
		if p := stat.MeanAbove(d.units, limit); p <= hi {
			return max(p, lo)
		}
		return 1
	}
	above := func(alpha float64) bool { _, low, _, _ := d.bounds(alpha); return low > limit }
	if !above(hi) {
		return 1
	}
	if above(lo) {
		return lo
	}
	for range 30 {
		if mid := math.Sqrt(lo * hi); above(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// below reports whether the data show a change below the limit, at the error alpha.
func (d delta) below(limit, alpha float64) bool {
	if d.infinite() {
		return d.signs(func(x float64) bool { return x < limit }) <= alpha
	}
	_, _, high, ok := d.bounds(alpha)
	return ok && high < limit
}

// signs returns the one-sided p-value of a sign test on the units. It is the probability that at
// least as many units lie on the given side by chance. It is used if a unit is infinite.
func (d delta) signs(side func(float64) bool) float64 {
	k := 0
	for _, x := range d.units {
		if !math.IsNaN(x) && side(x) {
			k++
		}
	}
	return stat.AtLeast(float64(k), float64(len(d.units)), 0.5)
}

func (d delta) mirrored() delta {
	negate := func(xs []float64) []float64 {
		out := make([]float64, len(xs))
		for i, x := range xs {
			out[i] = -x
		}
		return out
	}
	out := delta{units: negate(d.units), control: negate(d.control), candidate: negate(d.candidate), unpaired: d.unpaired, starts: d.starts,
		design: d.design, sessions: d.sessions}
	if c := d.counts; c != nil {
		out.counts = &counts{c.goodB, c.allB, c.goodA, c.allA}
	}
	if o := d.paired; o != nil {
		out.paired = &outcomes{o.won, o.lost, o.all}
	}
	return out
}
