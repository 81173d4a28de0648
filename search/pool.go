package search

import (
	"math"
	"slices"
)

// trend describes how the margin of a threshold changes with the load, by an isotonic fit of the
// margins of all probes.
type trend struct {
	threshold string
	ns        []int
	fit       []float64 // fitted margins ln(estimate / limit), one for each level in ns
	requests  []float64 // number of requests behind each value of fit and its equal neighbours
	// above and below give the width of the margin's interval: with n requests, the upper bound is
	// √(above/n) above the estimate, and the lower bound √(below/n) below it. They are NaN if no
	// probe shows the width, because all requests are good or the margin is exact.
	above, below float64
}

func trends(visits []Visit) []trend {
	var out []trend
	for _, th := range thresholds(visits) {
		t := trend{threshold: th}
		var values, weights []float64
		for _, p := range points(visits, th) {
			t.ns = append(t.ns, p.n)
			values, weights = append(values, p.log), append(weights, p.weight)
		}
		t.fit, t.requests = pooled(values, weights)
		t.above, t.below = unit(visits, th)
		out = append(out, t)
	}
	return out
}

// unit estimates the squared half width that a confidence interval would have with a single
// request. With n requests it is 1/n of that. The estimate is an average over all probes: above for
// upper bounds, and below for lower bounds.
func unit(visits []Visit, threshold string) (above, below float64) {
	var up, down, ups, downs float64
	for _, v := range visits {
		for _, m := range v.Result.Margins {
			if m.Threshold != threshold || m.Low == m.High || math.Abs(m.Log) >= MaxLog {
				continue
			}
			n := float64(v.Result.Requests)
			if d := m.High - m.Log; m.High < MaxLog && d > 0 {
				up, ups = up+n*n*d*d, ups+n
			}
			if d := m.Log - m.Low; m.Low > -MaxLog && d > 0 {
				down, downs = down+n*n*d*d, downs+n
			}
		}
	}
	return up / ups, down / downs
}

// at returns the margin at level n and the number of requests behind it. It interpolates linearly
// in ln n. Outside the measured levels the margin is constant.
func (t trend) at(n int) (margin, requests float64) {
	i, found := slices.BinarySearch(t.ns, n)
	switch {
	case found:
		return t.fit[i], t.requests[i]
	case i == 0:
		return t.fit[0], t.requests[0]
	case i == len(t.ns):
		return t.fit[i-1], t.requests[i-1]
	}
	w := math.Log(float64(n)/float64(t.ns[i-1])) / math.Log(float64(t.ns[i])/float64(t.ns[i-1]))
	return (1-w)*t.fit[i-1] + w*t.fit[i], min(t.requests[i-1], t.requests[i])
}

// hope is how far a margin may still improve by chance, as a multiple of its interval's half width.
// 0.75 is about one and a half standard errors.
const hope = 0.75

// mayPass reports whether the given number of requests at level n may show that every threshold
// holds. The parameter hope is explained at the function may.
func mayPass(ts []trend, n, most int, hope float64) bool {
	for _, t := range ts {
		if m, have := t.at(n); !may(t.above, -m, have, float64(most), hope) {
			return false
		}
	}
	return len(ts) > 0
}

// mayFail reports whether the given number of requests at level n may show that a threshold does
// not hold. The parameter hope is explained at the function may.
func mayFail(ts []trend, n, most int, hope float64) bool {
	for _, t := range ts {
		if m, have := t.at(n); may(t.below, m, have, float64(most), hope) {
			return true
		}
	}
	return false
}

// toPass estimates how many requests at level n would show that every threshold holds. toFail
// estimates how many would show that one does not hold. Both ask for so many requests that the
// interval's half width is only two thirds of the margin, because the estimate may still move
// towards the limit. They return +Inf if the data point the other way.
func toPass(ts []trend, n int) float64 {
	most := 0.0
	for _, t := range ts {
		m, _ := t.at(n)
		most = max(most, number(t.above, -m))
	}
	return most
}

func toFail(ts []trend, n int) float64 {
	least := math.Inf(1)
	for _, t := range ts {
		m, _ := t.at(n)
		least = min(least, number(t.below, m))
	}
	return least
}

func number(unit, margin float64) float64 {
	switch {
	case margin <= 0:
		return math.Inf(1)
	case math.IsNaN(unit):
		return 0
	}
	return unit / math.Pow(margin*2/3, 2)
}

// nearest returns the threshold that stays nearest to its limit at the levels low and high. off is
// the larger of its distances from the limit at the two levels.
func nearest(ts []trend, low, high int) (threshold string, off float64) {
	least := math.Inf(1)
	for _, t := range ts {
		a, _ := t.at(low)
		b, _ := t.at(high)
		if far := max(math.Abs(a), math.Abs(b)); far < least {
			least, threshold = far, t.threshold
		}
	}
	return threshold, least
}

// may reports whether a probe could be decided once its number of requests has grown from have to
// most. Its margin, the distance from the limit, must then be at least the half width of its
// confidence interval. Until then chance may increase the margin; hope says by how much at most
// (stochastic curtailment: Lan, Simon and Halperin, Sequential Analysis 1, 1982).
func may(unit, margin, have, most, hope float64) bool {
	switch {
	case most <= 0:
		return false
	case math.IsNaN(unit):
		return margin > 0
	}
	change := math.Sqrt(unit * max(0, 1/have-1/most))
	return margin+hope*change >= math.Sqrt(unit/most)
}
