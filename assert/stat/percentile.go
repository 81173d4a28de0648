package stat

import (
	"math"
	"sort"
)

// mostBelow is the largest number of bad observations among n for which the function Share returns
// Below. The n observations count as effective independent observations, with 0 < effective ≤ n.
// The result is −1 if even 0 bad observations are too many.
func mostBelow(n int, effective, allowed, alpha float64) int {
	scale := effective / float64(n)
	return sort.Search(n+1, func(k int) bool {
		return Share(float64(k)*scale, effective, allowed, alpha) != Below
	}) - 1
}

// leastAbove is the smallest number of bad observations among n for which the function Share
// returns Above. The result is n+1 if even n bad observations are not enough.
func leastAbove(n int, effective, allowed, alpha float64) int {
	scale := effective / float64(n)
	return sort.Search(n+1, func(k int) bool {
		return Share(float64(k)*scale, effective, allowed, alpha) == Above
	})
}

// PercentileRanks returns the ranks of the observations that bound the q-quantile of a
// distribution. Ranks count from 1 in ascending order. The parameter n is the number of
// observations, and effective is the number of independent observations that they count as. Each
// bound holds with confidence 1−alpha for any distribution (Wilks, Ann. Math. Stat. 12, 1941; Hahn,
// Meeker and Escobar, Statistical Intervals, 2nd ed., chapter 5). If n is too small for a bound,
// low is 0 (−Inf) or high is n+1 (+Inf).
//
// The bounds agree with the function Share at allowed = 1−q. Count each observation ≥ a limit T as
// bad. Then the observation of rank high is < T exactly if Share returns Below. The observation of
// rank low is ≥ T exactly if Share returns Above.
func PercentileRanks(n int, effective, q, alpha float64) (low, high int) {
	if n < 1 || !(effective > 0) {
		return 0, n + 1
	}
	high = n - mostBelow(n, effective, 1-q, alpha)
	low = n - leastAbove(n, effective, 1-q, alpha) + 1
	return low, high
}

// PercentileBounds returns the observations at the ranks that PercentileRanks returns. The list
// sorted holds the known observations in ascending order, and worst is the number of observations
// above all of these. A bound that does not exist is −Inf or +Inf. A bound among the worst is +Inf.
func PercentileBounds(sorted []float64, worst int, effective, q, alpha float64) (low, high float64) {
	n := len(sorted) + worst
	l, h := PercentileRanks(n, effective, q, alpha)
	at := func(rank int) float64 {
		switch {
		case rank < 1:
			return math.Inf(-1)
		case rank > len(sorted):
			return math.Inf(1)
		}
		return sorted[rank-1]
	}
	return at(l), at(h)
}

// MinimumN is the smallest effective number of observations that, if all of them are good, proves
// that at most the share allowed is bad. It is ⌈ln alpha / ln(1 − allowed)⌉ (Wilks 1941): at alpha
// 0.05 it is 59 for 5% and 299 for 1%. ok is false if no number suffices, as for a share of 0.
func MinimumN(allowed, alpha float64) (n int, ok bool) {
	switch {
	case !(allowed > 0) || !(alpha > 0 && alpha < 1):
		return 0, false
	case allowed >= 1:
		return 1, true
	}
	// Rounding can put the quotient just above a whole number. The subtraction removes that error.
	v := math.Ceil(math.Log(alpha)/math.Log1p(-allowed) - 1e-9)
	if v > 1e15 {
		return 0, false
	}
	return max(int(v), 1), true
}

// SplitAlpha divides the allowed error alpha equally among several planned looks, or judgements
// (Bonferroni). Then the chance of an error at any look is at most alpha. A number of looks below 1
// counts as 1.
func SplitAlpha(alpha float64, looks int) float64 { return alpha / float64(max(looks, 1)) }

// Needed is the smallest effective number of observations at which the function Share would decide,
// if the share of bad observations stayed the same. It is an estimate, because the share will
// change. ok is false if even a hundred million observations would not decide, because share is
// nearly equal to allowed.
func Needed(share, allowed, alpha float64) (n int, ok bool) {
	if math.IsNaN(share) || share < 0 || share > 1 || !(alpha > 0 && alpha < 1) {
		return 0, false
	}
	const most = 100_000_000
	decided := func(n int) bool { return Share(share*float64(n), float64(n), allowed, alpha) != Open }
	hi := 1
	for !decided(hi) {
		if hi *= 2; hi > most {
			return 0, false
		}
	}
	return hi/2 + 1 + sort.Search(hi-hi/2-1, func(i int) bool { return decided(hi/2 + 1 + i) }), true
}
