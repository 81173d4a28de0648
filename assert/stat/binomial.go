package stat

import "math"

// atMost returns P(Bin(n, p) ≤ k) = I_{1−p}(n−k, k+1) (DLMF 8.17.5). n ≥ 0 and k may be fractions;
// for whole numbers it is the exact binomial tail. It is 0 if k < 0, 1 if k ≥ n, and NaN if an
// argument is NaN.
func atMost(k, n, p float64) float64 {
	switch {
	case math.IsNaN(k + n + p):
		return math.NaN()
	case k < 0:
		return 0
	case k >= n || p <= 0:
		return 1
	case p >= 1:
		return 0
	}
	lower, _ := beta(1-p, p, n-k, k+1)
	return lower
}

// AtLeast returns P(Bin(n, p) ≥ k) = I_p(k, n−k+1) (DLMF 8.17.5). n and k may be fractions, as in
// atMost. It is 1 if k ≤ 0 and 0 if k > n.
func AtLeast(k, n, p float64) float64 {
	switch {
	case math.IsNaN(k + n + p):
		return math.NaN()
	case k <= 0:
		return 1
	case k > n || p <= 0:
		return 0
	case p >= 1:
		return 1
	}
	lower, _ := beta(p, 1-p, k, n-k+1)
	return lower
}

// Side is on which side of the allowed share the true share is proven to lie. The zero value is
// Open.
type Side int

const (
	// Open means that neither Below nor Above is proven.
	Open Side = iota
	// Below means that the true share is proven to be at most the allowed share.
	Below
	// Above means that the true share is proven to be larger than allowed.
	Above
)

// Share tests whether the true share of bad observations is at most the parameter allowed. Of n
// observations k are bad; both may be fractions. The result is Below if P(Bin(n, allowed) ≤ k) ≤
// alpha, Above if P(Bin(n, allowed) ≥ k) ≤ alpha, and otherwise Open.
//
// ClopperPearson returns the bounds that match both tests. MLPerf's early stopping has the same
// test for Below (LoadGen, early_stopping.cc).
func Share(k, n, allowed, alpha float64) Side {
	if k > n && k <= n*(1+1e-12) {
		k = n // because of a rounding error, k may be slightly larger than n
	}
	switch {
	case !(n > 0) || !(k >= 0) || k > n || !(alpha > 0):
		return Open
	case atMost(k, n, allowed) <= alpha:
		return Below
	case AtLeast(k, n, allowed) <= alpha:
		return Above
	}
	return Open
}

// ClopperPearson returns one-sided bounds of a share, if k of n observations are bad. Each bound
// has the error alpha (Clopper and Pearson, Biometrika 26, 1934). k and n may be fractions. If n is
// not positive, ok is false.
func ClopperPearson(k, n, alpha float64) (low, high float64, ok bool) {
	if !(n > 0) || !(k >= 0) || k > n || !(alpha > 0 && alpha < 1) {
		return 0, 1, false
	}
	low, high = 0, 1
	if k > 0 {
		low = Bisect(0, 1, func(p float64) bool { return AtLeast(k, n, p) > alpha })
	}
	if k < n {
		high = Bisect(0, 1, func(p float64) bool { return atMost(k, n, p) <= alpha })
	}
	return low, high, true
}

// Bisect finds the point between lo and hi from which on the condition above is true.
func Bisect(lo, hi float64, above func(float64) bool) float64 {
	for range 200 {
		mid := lo + (hi-lo)/2
		if mid == lo || mid == hi {
			break
		}
		if above(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}
