package stat

import (
	"cmp"
	"math"
	"slices"
)

// Welch returns the difference of two means, that of b minus that of a, with its bounds (Welch,
// Biometrika 34, 1947; degrees of freedom by Satterthwaite, Biometrics Bulletin 2, 1946). Each
// bound errs with the probability alpha. The values of a sample must be independent.
//
// ok is false if a or b has fewer than two values, or if a result is not finite.
func Welch(a, b []float64, alpha float64) (diff, low, high float64, ok bool) {
	if len(a) < 2 || len(b) < 2 {
		return 0, math.Inf(-1), math.Inf(1), false
	}
	ma, va := Moments(a)
	mb, vb := Moments(b)
	diff = mb - ma
	wa, wb := va/float64(len(a)), vb/float64(len(b))
	se := math.Sqrt(wa + wb)
	if math.IsNaN(diff) || math.IsInf(diff, 0) || math.IsNaN(se) || math.IsInf(se, 0) {
		return 0, math.Inf(-1), math.Inf(1), false
	}
	if se == 0 {
		return diff, diff, diff, true
	}
	df := (wa + wb) * (wa + wb) / (wa*wa/float64(len(a)-1) + wb*wb/float64(len(b)-1))
	half := StudentQuantile(1-alpha, df) * se
	return diff, diff - half, diff + half, true
}

// ShareDifference returns bounds for the difference of two shares, kb/nb − ka/na. Each bound errs
// with the probability alpha. The method is the hybrid score method (Newcombe, Statistics in
// Medicine 17, 1998, method 10).
//
// The numbers need not be whole. ok is false if one of the shares has no observations.
func ShareDifference(ka, na, kb, nb, alpha float64) (low, high float64, ok bool) {
	if !(na > 0) || !(nb > 0) || !(alpha > 0 && alpha < 1) {
		return -1, 1, false
	}
	pa, pb := ka/na, kb/nb
	la, ua := wilson(pa, na, alpha)
	lb, ub := wilson(pb, nb, alpha)
	d := pb - pa
	return d - math.Hypot(pb-lb, ua-pa), d + math.Hypot(ub-pb, pa-la), true
}

// wilson returns the score interval of a share (Wilson, JASA 22, 1927). The share p was observed in
// n observations. Each bound errs with the probability alpha.
func wilson(p, n, alpha float64) (low, high float64) {
	z := NormalQuantile(1 - alpha)
	mid := p + z*z/(2*n)
	half := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max(0, (mid-half)/(1+z*z/n)), min(1, (mid+half)/(1+z*z/n))
}

// Holm reports which of several p-values are significant (Holm, Scandinavian Journal of Statistics
// 6, 1979). The probability of even one false claim is at most alpha. NaN is never significant.
func Holm(p []float64, alpha float64) []bool {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	key := func(i int) float64 {
		if math.IsNaN(p[i]) {
			return math.Inf(1)
		}
		return p[i]
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(key(i), key(j)) })
	out := make([]bool, len(p))
	for k, i := range order {
		if !(key(i) <= alpha/float64(len(p)-k)) {
			break
		}
		out[i] = true
	}
	return out
}
