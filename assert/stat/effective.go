package stat

import "math"

// Group counts one round or block: k bad observations of n.
type Group struct {
	K, N float64
}

// KornGraubard is the effective number of observations behind a share that was
// seen in groups (rounds, blocks) which may differ by more than chance: with p̂
// the pooled share and v the variance of p̂ by the spread of the groups' own
// shares, n* = p̂(1−p̂)/v, times (z_{1−alpha}/t_{B−1,1−alpha})² because v is an
// estimate from B groups (Korn and Graubard, Survey Methodology 24, 1998). At
// most n; n itself when no spread was seen or nothing was bad, since then the
// groups say nothing: see BlockVariance. 0 for an empty input.
func KornGraubard(groups []Group, alpha float64) float64 {
	var k, n float64
	b := 0
	for _, g := range groups {
		if g.N > 0 {
			k, n, b = k+g.K, n+g.N, b+1
		}
	}
	if n <= 0 || b < 2 {
		return n
	}
	p := k / n
	// The ratio estimator's variance: groups weigh by their size. With equal
	// sizes this is Σ(p̂_g − p̂)²/(B(B−1)).
	v := 0.0
	for _, g := range groups {
		if g.N > 0 {
			d := (g.K - p*g.N) / n
			v += d * d
		}
	}
	v *= float64(b) / float64(b-1)
	if v <= 0 {
		return n
	}
	return min(n, p*(1-p)/v*shrink(b, alpha))
}

// BlockVariance is the effective number of observations by the variance of
// block means of the measured quantity itself, s²/(v_b/B) · (z/t)²: how many
// independent observations of variance s² would have a mean as uncertain as B
// blocks show it to be (batch means: Law and Kelton, Simulation Modeling and
// Analysis, chapter 9; the factor as in KornGraubard). Unlike a share it also
// speaks when nothing was bad. At most the number of values; empty blocks
// count for nothing.
func BlockVariance(blocks [][]float64, alpha float64) float64 {
	var all, means, sizes []float64
	for _, block := range blocks {
		if len(block) == 0 {
			continue
		}
		all = append(all, block...)
		m, _ := Moments(block)
		means, sizes = append(means, m), append(sizes, float64(len(block)))
	}
	n, b := float64(len(all)), len(means)
	if b < 2 {
		return n
	}
	mean, s2 := Moments(all)
	// As in KornGraubard: blocks weigh by their size, so that a short one does
	// not pass for a noisy one. With equal sizes this is v_b/B.
	v := 0.0
	for i, m := range means {
		d := sizes[i] / n * (m - mean)
		v += d * d
	}
	v *= float64(b) / float64(b-1)
	if math.IsNaN(s2 + v) {
		return 0
	}
	// Values that are all alike leave rounding noise in both.
	if noise := 1e-12 * math.Abs(mean); v <= noise*noise || s2 <= noise*noise {
		return n
	}
	return min(n, s2/v*shrink(b, alpha))
}

// Effective is the least of the n requests themselves, KornGraubard of the
// groups and BlockVariance of every quantity: the number of independent
// requests that the n are worth. Where a quantity has fewer values than there
// are requests, since some failed, its number is scaled up to all of them; one
// without values says nothing.
func Effective(n float64, groups []Group, quantities [][][]float64, alpha float64) float64 {
	effective := min(n, KornGraubard(groups, alpha))
	for _, blocks := range quantities {
		values := 0.0
		for _, block := range blocks {
			values += float64(len(block))
		}
		if values > 0 {
			effective = min(effective, BlockVariance(blocks, alpha)*max(n/values, 1))
		}
	}
	return effective
}

// shrink is (z_{1−alpha}/t_{b−1,1−alpha})².
func shrink(b int, alpha float64) float64 {
	r := NormalQuantile(1-alpha) / StudentQuantile(1-alpha, float64(b-1))
	return r * r
}
