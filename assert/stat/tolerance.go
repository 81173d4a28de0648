package stat

import (
	"math"
	"sync"
)

// ToleranceFactor is k such that, of n observations from a normal
// distribution, mean + k·s is an upper bound of its content-quantile with
// probability confidence: a one-sided normal tolerance bound (Hahn and Meeker,
// Statistical Intervals, chapter 4; table values there as tests). It is the
// confidence-quantile of a noncentral t distribution with n−1 degrees of
// freedom and noncentrality √n·z_content, over √n. NaN below four observations, of
// which the quantile lies too far out for the integral here (of two it came out 9 %
// too small).
func ToleranceFactor(n int, content, confidence float64) float64 {
	if n < 4 || !(content > 0 && content < 1 && confidence > 0 && confidence < 1) {
		return math.NaN()
	}
	// A few milliseconds each, and a gate asks for the same few again and again.
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
	for range 60 {
		mid := (low + high) / 2
		if noncentralT(mid*root, float64(n-1), delta) < confidence {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// noncentralT is the distribution function of (Z+δ)/√(χ²_ν/ν): the mean of
// Φ(t·x − δ) over x = √(χ²_ν/ν).
func noncentralT(t, nu, delta float64) float64 {
	return overChi(nu, 600, func(x float64) float64 { return 0.5 * math.Erfc(-(t*x-delta)/math.Sqrt2) })
}

// overChi is the mean of f over x = √(χ²_ν/ν), by Simpson's rule over all of x
// that matters. f is bounded, and not asked at 0.
func overChi(nu float64, steps int, f func(x float64) float64) float64 {
	lg, _ := math.Lgamma(nu / 2)
	scale := math.Ln2 + nu/2*math.Log(nu/2) - lg
	weighted := func(x float64) float64 {
		if x <= 0 {
			if nu == 1 { // the only density that does not vanish there
				return math.Exp(scale) * f(1e-9)
			}
			return 0
		}
		return math.Exp(scale+(nu-1)*math.Log(x)-nu*x*x/2) * f(x)
	}
	// x has mean about 1 and standard deviation about 1/√(2ν).
	width := 12 / math.Sqrt(2*nu)
	from, to := math.Max(0, 1-width), 1+width
	h := (to - from) / float64(steps)
	sum := weighted(from) + weighted(to)
	for i := 1; i < steps; i++ {
		sum += weighted(from+float64(i)*h) * float64(2+2*(i%2))
	}
	return sum * h / 3
}

// ToleranceBound is the upper bound of the extremes of groups that the
// factor k (ToleranceFactor) gives, taken on their logarithms: with the
// factor's confidence, at least its content of all groups have their extreme
// below. A request is over a limit only if the largest of its group is, so that
// a bound under the limit bounds the share of requests over it however much
// those of one group depend on each other. It assumes that groups are
// independent, and the logarithms of their extremes about normal.
//
// The extremes must be positive and finite, and two at least; else the bound is
// +Inf.
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
