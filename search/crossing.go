package search

import (
	"math"
	"slices"
)

// Crossing is an estimate of the load at which the first threshold reaches its limit. It uses all
// probes; the certified bounds come from other code.
type Crossing struct {
	N         float64 // estimated load, within the certified bracket if there is one
	Low, High float64 // ends of N's interval; High is 0 if no probe has failed yet
	Threshold string  // name of the threshold that reaches its limit first
	OK        bool    // N holds an estimate
}

// point is the margin of a threshold at the level n, over all samples of the level.
type point struct {
	n                      int
	weight, log, low, high float64
}

// cross estimates the load at which the first threshold reaches its limit. For each threshold it
// fits the margins by least squares, so that they never decrease with N (isotonic regression: Ayer
// et al., Ann. Math. Statist. 26, 1955). The threshold reaches its limit where the fit is zero. The
// result is the lowest such load of all thresholds.
//
// Low and High are estimated in the same way, from the ends of the margins' intervals. They stay
// within the levels that are certified to pass and to fail.
func cross(visits []Visit, pass, fail int) Crossing {
	first := func(end func(point) float64) (float64, string) {
		least, name := math.Inf(1), ""
		for _, th := range thresholds(visits) {
			if n, ok := zero(points(visits, th), end); ok && n < least {
				least, name = n, th
			}
		}
		return least, name
	}
	n, name := first(func(p point) float64 { return p.log })
	c := Crossing{OK: n > 0 && name != "", Threshold: name}
	early, late := math.NaN(), math.NaN()
	if bounded(visits) {
		early, _ = first(func(p point) float64 { return p.high })
		late, _ = first(func(p point) float64 { return p.low })
	}
	lo, hi := float64(pass), math.Inf(1)
	if fail > 0 {
		hi = float64(fail)
	}
	c.Low, c.High = lo, hi
	// The capacity is certified to be between lo and hi. So use an estimated end only if it lies
	// between them.
	if early > lo && early < hi {
		c.Low = early
	}
	if late > lo && late < hi && late >= c.Low {
		c.High = late
	}
	if c.OK {
		c.N = max(c.Low, min(n, c.High))
	}
	if math.IsInf(c.High, 1) {
		c.High = 0
	}
	return c
}

func thresholds(visits []Visit) []string {
	var names []string
	for _, v := range visits {
		for _, m := range v.Result.Margins {
			if !slices.Contains(names, m.Threshold) {
				names = append(names, m.Threshold)
			}
		}
	}
	return names
}

// bounded reports whether every margin has a confidence interval. A margin without one has Low ==
// High, which would otherwise look like an exact value. A margin as far below its limit as can be,
// such as that of a share of failed requests if none failed, needs none.
func bounded(visits []Visit) bool {
	for _, v := range visits {
		for _, m := range v.Result.Margins {
			if m.Low == m.High && m.Log > -MaxLog {
				return false
			}
		}
	}
	return true
}

// points returns one point for each level, in ascending order, from the margins of a threshold. If
// a set of samples was judged several times, only the last result counts, because it covers the
// whole set.
func points(visits []Visit, threshold string) []point {
	var ps []point
	for i, v := range visits {
		again := slices.ContainsFunc(visits[i+1:], func(w Visit) bool {
			return w.Result.N == v.Result.N && w.Probe.Set == v.Probe.Set
		})
		if again {
			continue
		}
		for _, m := range v.Result.Margins {
			if m.Threshold != threshold {
				continue
			}
			w := float64(max(1, v.Result.Requests))
			at, found := slices.BinarySearchFunc(ps, v.Result.N, func(p point, n int) int { return p.n - n })
			if !found {
				ps = slices.Insert(ps, at, point{n: v.Result.N})
			}
			p := &ps[at]
			sum := p.weight + w
			p.log += (m.Log - p.log) * w / sum
			p.low += (m.Low - p.low) * w / sum
			p.high += (m.High - p.high) * w / sum
			p.weight = sum
		}
	}
	return ps
}

// zero returns the load at which the margins become positive. The function end takes the margin
// itself or one end of its interval, and zero makes an isotonic fit to these values. If the fit is
// already positive at the lowest level, the load is 0. If it is never positive, the second result
// is false.
func zero(ps []point, end func(point) float64) (float64, bool) {
	values, weights := make([]float64, len(ps)), make([]float64, len(ps))
	for i, p := range ps {
		values[i], weights[i] = end(p), p.weight
	}
	fit := isotonic(values, weights)
	for i, y := range fit {
		if y <= 0 {
			continue
		}
		if i == 0 {
			return 0, true
		}
		x0, x1 := math.Log(float64(ps[i-1].n)), math.Log(float64(ps[i].n))
		return math.Exp(x0 + (x1-x0)*(0-fit[i-1])/(y-fit[i-1])), true
	}
	return 0, false
}

// isotonic returns the non-decreasing sequence that fits the values best, by weighted least
// squares. Weights must be positive.
func isotonic(values, weights []float64) []float64 {
	type block struct {
		mean, weight float64
		size         int
	}
	var blocks []block
	fit := []float64{}
	for i, v := range values {
		b := block{v, weights[i], 1}
		for len(blocks) > 0 && blocks[len(blocks)-1].mean >= b.mean {
			a := blocks[len(blocks)-1]
			blocks = blocks[:len(blocks)-1]
			w := a.weight + b.weight
			b = block{(a.mean*a.weight + b.mean*b.weight) / w, w, a.size + b.size}
		}
		blocks = append(blocks, b)
	}
	for _, b := range blocks {
		for range b.size {
			fit = append(fit, b.mean)
		}
	}
	return fit
}
