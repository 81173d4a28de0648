package stat

import "math"

// Group counts observations of one round or block: K of the N observations are bad.
type Group struct {
	K, N float64
}

// shareEffect is the design effect of a share of bad observations that come in groups (rounds or
// blocks). It is the variance of the share, divided by its variance for independent observations
// (Korn and Graubard, Survey Methodology 24, 1998).
//
// It is 1 for fewer than two groups, or if no observation or every observation is bad (see
// meanEffect).
func shareEffect(groups []Group) float64 {
	var k, n float64
	b := 0
	for _, g := range groups {
		if g.N > 0 {
			k, n, b = k+g.K, n+g.N, b+1
		}
	}
	p := k / n
	if b < 2 || !(p > 0 && p < 1) {
		return 1
	}
	// v is the variance of the estimated share p̂, weighted by the sizes of groups. For B groups of
	// equal size it is Σ(p̂_g − p̂)²/(B(B−1)).
	v := 0.0
	for _, g := range groups {
		if g.N > 0 {
			d := (g.K - p*g.N) / n
			v += d * d
		}
	}
	return v * float64(b) / float64(b-1) / (p * (1 - p) / n)
}

// ClusterEffect is the design effect of bad observations that come in clusters. It is the mean size
// of a bad observation's cluster, Σk²/Σk (Kish, Survey Sampling, 1965, for clusters in which every
// observation is bad).
//
// Two imagined clusters of the largest possible size, the parameter whole, are added to the
// observed clusters. So the effect is that size if no observation is bad. The more observations are
// bad, the nearer it is to the effect of the observed clusters. It is 1 if that size is at most 1.
func ClusterEffect(clusters Clusters, whole float64) float64 {
	if !(whole > 1) {
		return 1
	}
	return (2*whole*whole + clusters.Squares) / (2*whole + clusters.Sum)
}

// Clusters describes a set of clusters by two sums: of their sizes, and of the squares of their
// sizes.
type Clusters struct {
	Sum, Squares float64
}

// Add adds n clusters of size k.
func (c *Clusters) Add(k, n float64) { c.Sum, c.Squares = c.Sum+n*k, c.Squares+n*k*k }

// Mean is the mean size of an observation's cluster; 1 if there is no cluster.
func (c Clusters) Mean() float64 {
	if !(c.Sum > 0) {
		return 1
	}
	return c.Squares / c.Sum
}

// Excess measures how much bad observations cluster in groups. It is the mean number of other bad
// observations in a bad observation's group, minus the number expected by chance; at least 0.
//
// With k bad observations of n in a group, it is Σk(k−1)/Σk − (Σk − 1)·Σ(n/Σn)².
func Excess(groups []Group) float64 {
	var k, n, mates, part float64
	for _, g := range groups {
		k, n = k+g.K, n+g.N
		mates, part = mates+g.K*(g.K-1), part+g.N*g.N
	}
	if !(k > 0 && n > 0) {
		return 0
	}
	return max(0, mates/k-(k-1)*part/(n*n))
}

// PerLifetime is the number of independent observations in the mean duration of a request (a
// lifetime). It concerns the share e of the time in which a server is in its worst states. For e =
// 5 % the result is 1.87. It is NaN unless e is in (0, 1).
//
// The model is a server without a queue (M/G/∞), whose number of requests in flight is about
// normally distributed. Its autocorrelation r falls linearly from 1 to 0 over one lifetime.
//
// Formula: π·e(1−e) / ∫√((1−r)/(1+r))·exp(−u²/(1+r))dr for r from 0 to 1, where u is the normal
// quantile of 1 − e. It follows from the bivariate normal density (Plackett, Biometrika 41, 1954).
func PerLifetime(e float64) float64 {
	u := NormalQuantile(1 - e)
	const steps = 400
	sum := 0.0
	for i := range steps { // substitute r = 1 − x², so that the integrand is smooth at both ends
		x := (float64(i) + 0.5) / steps
		sum += 2 * x * x / math.Sqrt(2-x*x) * math.Exp(-u*u/(2-x*x)) / steps
	}
	return math.Pi * e * (1 - e) / sum
}

// Persistence is a correction factor for an interval computed from the means of equal parts of a
// window. A request may run in several parts, so these means differ less than independent ones. The
// argument lifetimes is the length of the window, in mean durations of a request.
//
// The factor is 1 if a part has at least three lifetimes. The interval is then at most 3 % too
// short.
//
// Formula: without a queue, the mean over L lifetimes has the variance V(L) = 2∫(L−τ)(1−τ)dτ/L² for
// τ from 0 to min(1, L). The spread of m parts suggests only (V(L/m) − V(L))/(m − 1). The factor is
// the root of the quotient.
func Persistence(lifetimes float64, parts int) float64 {
	m := float64(parts)
	if parts < 2 || !(lifetimes > 0) || lifetimes >= 3*m {
		return 1
	}
	variance := func(l float64) float64 {
		if l < 1 {
			return 1 - l/3
		}
		return (l - 1.0/3) / (l * l)
	}
	return math.Sqrt((m - 1) * variance(lifetimes) / (variance(lifetimes/m) - variance(lifetimes)))
}

// meanEffect is the design effect of the mean of a measured quantity. It is estimated from the
// variance of block means (batch means: Law and Kelton, Simulation Modeling and Analysis, chapter
// 9). Unlike shareEffect, it shows dependence even if no observation is bad.
//
// Empty blocks do not count. The result is 1 for fewer than two blocks, and +Inf if a value is NaN.
func meanEffect(blocks []Ascending) float64 {
	var means, sizes []float64
	n := 0.0
	for _, block := range blocks {
		size := block.count()
		if size == 0 {
			continue
		}
		n += size
		m, _ := moments(block)
		means, sizes = append(means, m), append(sizes, size)
	}
	b := len(means)
	if b < 2 {
		return 1
	}
	mean, s2 := moments(blocks...)
	// v is the variance of the mean over blocks, weighted by their sizes: a short block must not
	// look noisy (see shareEffect). For B blocks of equal size it is the variance between block
	// means, divided by B.
	v := 0.0
	for i, m := range means {
		d := sizes[i] / n * (m - mean)
		v += d * d
	}
	v *= float64(b) / float64(b-1)
	if math.IsNaN(s2 + v) {
		return math.Inf(1)
	}
	// If all values are equal, the variances v and s2 are only rounding errors.
	if noise := 1e-12 * math.Abs(mean); v <= noise*noise || s2 <= noise*noise {
		return 1
	}
	return v / (s2 / n)
}

// BlockMeans returns the mean of each block that has a value, in order.
func BlockMeans(blocks []Ascending) []float64 {
	var out []float64
	for _, block := range blocks {
		if block.count() > 0 {
			m, _ := moments(block)
			out = append(out, m)
		}
	}
	return out
}

// Effective is the number of independent requests that n requests are worth; at most n. The
// argument alpha is the error of the plan.
//
// It divides the number of observations by each of several design effects: one for groups and one
// for each quantity, corrected by the function discounted. The smallest quotient is the result.
//
// If some requests failed, a quantity has fewer values than n. Its quotient is then scaled to n.
func Effective(n float64, groups []Group, quantities [][]Ascending, alpha float64) float64 {
	seen, b := 0.0, 0
	for _, g := range groups {
		if g.N > 0 {
			seen, b = seen+g.N, b+1
		}
	}
	effective := n
	if b > 0 {
		effective = min(n, seen/discounted(shareEffect(groups), b, alpha))
	}
	for _, blocks := range quantities {
		values, b := 0.0, 0
		for _, block := range blocks {
			if size := block.count(); size > 0 {
				values, b = values+size, b+1
			}
		}
		if b > 0 {
			effective = min(effective, max(n, values)/discounted(meanEffect(blocks), b, alpha))
		}
	}
	return effective
}

// discounted corrects a design effect that was estimated from b groups. The result is at least 1.
//
// Even for independent observations, the estimate has a standard deviation of about √(2/(b−1)).
// This is subtracted first. What then remains above 1 is multiplied by (t/z)⁴, where t and z are
// quantiles of Student's t and of the normal distribution. Korn and Graubard use (t/z)², but skewed
// rounds hide more of their spread than normal rounds. `make characteristics` confirms both steps.
func discounted(effect float64, b int, alpha float64) float64 {
	if b < 2 {
		return 1
	}
	allowed := math.Sqrt(2 / float64(b-1))
	if !(effect-1 > allowed) {
		return 1
	}
	r := StudentQuantile(1-alpha, float64(b-1)) / NormalQuantile(1-alpha)
	return 1 + r*r*r*r*(effect-1-allowed)
}
