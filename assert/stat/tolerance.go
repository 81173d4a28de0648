package stat

import (
	"math"
	"sync"
)

// ToleranceFactor returns the factor k of a one-sided normal tolerance bound. For n observations
// from a normal distribution with mean and standard deviation s, mean + k·s is an upper bound of
// the content-quantile with the given confidence (Hahn and Meeker, Statistical Intervals, chapter
// 4; the tests use its tables).
//
// k is the confidence-quantile of a noncentral t distribution, divided by √n. The distribution has
// n−1 degrees of freedom and noncentrality √n·z_content. The result is NaN for fewer than four
// observations, because the integral used here is then inexact. For two observations k would be 9 %
// too small.
func ToleranceFactor(n int, content, confidence float64) float64 {
	if n < 4 || !(content > 0 && content < 1 && confidence > 0 && confidence < 1) {
		return math.NaN()
	}
	// Store each factor. It takes milliseconds to compute, and a gate needs the same few factors
	// often.
	key := factorKey{n, content, confidence}
	if k, ok := factors.Load(key); ok {
		return k.(float64)
	}
	k := toleranceFactor(n, content, confidence)
	factors.Store(key, k)
	return k
}

type factorKey struct {
	n                   int
	content, confidence float64
}

var factors sync.Map // factorKey → float64

func toleranceFactor(n int, content, confidence float64) float64 {
	root := math.Sqrt(float64(n))
	delta := root * NormalQuantile(content)
	low, high := -1.0, 1.0
	for noncentralT(high*root, float64(n-1), delta) < confidence {
		if high *= 2; high > 1e9 {
			return math.Inf(1)
		}
	}
	for noncentralT(low*root, float64(n-1), delta) > confidence {
		low *= 2
	}
	return Bisect(low, high, func(k float64) bool { return noncentralT(k*root, float64(n-1), delta) >= confidence })
}

// noncentralT returns P(T ≤ t) for a T of the noncentral t distribution with nu degrees of freedom.
// It is the mean of Φ(t·x − δ) over x = √(χ²_ν/ν).
func noncentralT(t, nu, delta float64) float64 {
	return chi(nu).mean(func(x float64) float64 { return 0.5 * math.Erfc(-(t*x-delta)/math.Sqrt2) })
}

// points holds values of a variable, each with its weight.
type points []struct{ x, weight float64 }

// mean returns the weighted mean of f over the points.
func (p points) mean(f func(x float64) float64) (sum float64) {
	for i := range p {
		sum += p[i].weight * f(p[i].x)
	}
	return sum
}

// chi returns values of x = √(χ²_ν/ν) with weights, at equal steps of u = ln x. The density of u is
// 2·(ν/2)^{ν/2}/Γ(ν/2)·exp(νu − ν·e^{2u}/2). In u it is smooth and vanishes at both ends, so the
// sum converges exponentially (Trefethen and Weideman, SIAM Review 56, 2014).
func chi(nu float64) (out points) {
	lg, _ := math.Lgamma(nu / 2)
	scale := math.Ln2 + nu/2*math.Log(nu/2) - lg
	spread := 1 / math.Sqrt(2*nu) // of u, about 0
	step := min(0.02, spread/3)
	for u := -20/nu - 8*spread; u < math.Log1p(12*spread); u += step {
		x := math.Exp(u)
		out = append(out, struct{ x, weight float64 }{x, step * math.Exp(scale+nu*u-nu*x*x/2)})
	}
	return out
}

// ToleranceBound is an upper bound on the largest value of a group, such as a round. At least a
// certain share of all groups stay below it. The share and the confidence are those for which
// ToleranceFactor computed k. The argument extremes holds the largest values of several groups.
//
// The groups must be independent, and the logarithms of their largest values about normal. The
// values within a group may depend on each other.
//
// The bound is +Inf for fewer than two extremes, and for extremes that are not positive and finite.
func ToleranceBound(extremes []float64, k float64) float64 {
	logs := make([]float64, len(extremes))
	for i, x := range extremes {
		if !(x > 0) || math.IsInf(x, 0) {
			return math.Inf(1)
		}
		logs[i] = math.Log(x)
	}
	mean, variance := Moments(logs)
	bound := math.Exp(mean + k*math.Sqrt(variance))
	if len(logs) < 2 || math.IsNaN(bound) {
		return math.Inf(1)
	}
	return bound
}
