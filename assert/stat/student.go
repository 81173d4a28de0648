package stat

import (
	"math"
	"sort"
	"sync"
	"sync/atomic"
)

// NormalQuantile returns the p-quantile of the standard normal distribution: −√2·erfc⁻¹(2p) (DLMF
// 7.17). It is ±Inf at 0 and 1, and NaN if p is outside [0, 1].
func NormalQuantile(p float64) float64 { return -math.Sqrt2 * math.Erfcinv(2*p) }

// StudentCDF returns P(T ≤ t) for Student's t distribution with df > 0 degrees of freedom. For t ≥
// 0 it is 1 − ½·I_{df/(df+t²)}(df/2, ½) (Abramowitz and Stegun 26.7.1).
func StudentCDF(t, df float64) float64 {
	switch {
	case math.IsNaN(t) || !(df > 0):
		return math.NaN()
	case math.IsInf(t, 0):
		if t > 0 {
			return 1
		}
		return 0
	}
	tail := studentTail(math.Abs(t), df)
	if t < 0 {
		return tail
	}
	return 1 - tail
}

// studentTail returns P(T > t) for t ≥ 0.
func studentTail(t, df float64) float64 {
	// x + y = 1, but compute both from t², because 1−x would lose digits.
	s := t * t
	x, y := df/(df+s), s/(df+s)
	if math.IsInf(s, 1) {
		x, y = 0, 1
	}
	lower, _ := beta(x, y, df/2, 0.5)
	return lower / 2
}

// StudentQuantile returns the p-quantile of Student's t distribution with df > 0 degrees of
// freedom. It is ±Inf at 0 and 1, and NaN if p is outside [0, 1]. It inverts StudentCDF by
// bisection.
func StudentQuantile(p, df float64) float64 {
	switch {
	case math.IsNaN(p) || p < 0 || p > 1 || !(df > 0):
		return math.NaN()
	case p == 0:
		return math.Inf(-1)
	case p == 1:
		return math.Inf(1)
	case p == 0.5:
		return 0
	case p < 0.5:
		return -studentUpper(p, df)
	}
	return studentUpper(1-p, df)
}

// studentUpper returns the t with P(T > t) = tail, for tail in (0, ½). It caches up to a thousand
// results and then begins anew, because a gate needs the same few results many times.
func studentUpper(tail, df float64) float64 {
	key := [2]float64{tail, df}
	if t, ok := uppers.Load(key); ok {
		return t.(float64)
	}
	hi := 1.0
	for studentTail(hi, df) > tail {
		if hi *= 2; math.IsInf(hi, 1) {
			return hi
		}
	}
	t := Bisect(0, hi, func(t float64) bool { return studentTail(t, df) <= tail })
	if kept.Add(1) > 1000 {
		kept.Store(0)
		uppers.Clear()
	}
	uppers.Store(key, t)
	return t
}

var (
	uppers sync.Map
	kept   atomic.Int64
)

// MeanInterval returns the mean of independent units, such as means of rounds, and its confidence
// bounds: m ± t_{B−1,1−alpha}·s/√B for B units (Student, Biometrika 6, 1908). Each bound errs with
// probability alpha. With one unit the bounds are infinite. ok is false without units, or if a unit
// is not finite.
func MeanInterval(units []float64, alpha float64) (mean, low, high float64, ok bool) {
	if len(units) == 0 {
		return 0, math.Inf(-1), math.Inf(1), false
	}
	mean, variance := Moments(units)
	if math.IsNaN(mean) || math.IsInf(mean, 0) || math.IsNaN(variance) && len(units) > 1 {
		return 0, math.Inf(-1), math.Inf(1), false
	}
	if len(units) < 2 {
		return mean, math.Inf(-1), math.Inf(1), true
	}
	b := float64(len(units))
	half := StudentQuantile(1-alpha, b-1) * math.Sqrt(variance/b)
	return mean, mean - half, mean + half, true
}

// MeanAbove returns the p-value of the test whether a mean lies above limit. It is the smallest
// alpha at which the lower bound of MeanInterval lies above limit: P(T ≥ (m − limit)/(s/√B)). It is
// 1 for fewer than two units, and if a unit is not finite.
func MeanAbove(units []float64, limit float64) float64 {
	mean, variance := Moments(units)
	distance := mean - limit
	switch {
	case len(units) < 2 || math.IsNaN(variance) || math.IsNaN(distance) || math.IsInf(distance, 0):
		return 1
	case variance == 0 && distance > 0:
		return 0
	case variance == 0:
		return 1
	}
	b := float64(len(units))
	return StudentCDF(-distance/math.Sqrt(variance/b), b-1)
}

// LogMeanBound returns an upper bound of a mean, at confidence 1−alpha, for units that are skewed
// to the right. The units' logarithms must be about normal. Before the computation they are moved
// away from their mean by the factor apart; 1 leaves them as they are.
//
// The method is the generalised pivotal quantity of Krishnamoorthy and Mathew (Journal of
// Statistical Planning and Inference 115, 2003). The bound is e to the power of the 1−alpha
// quantile of
//
//	m + s·√((B−1)/χ²)·Z/√B + s²·(B−1)/(2χ²)
//
// B is the number of units, and m and s² are the mean and the variance of their logarithms. Z is
// standard normal, and χ² has B−1 degrees of freedom. The bound is −Inf for fewer than two units,
// and if a unit is not positive.
func LogMeanBound(units []float64, apart, alpha float64) float64 {
	logs := make([]float64, len(units))
	for i, x := range units {
		if !(x > 0) {
			return math.Inf(-1)
		}
		logs[i] = math.Log(x)
	}
	if len(units) < 2 || !(alpha > 0 && alpha < 1) {
		return math.Inf(-1)
	}
	m, v := Moments(logs)
	v *= apart * apart
	if !(v > 0) || math.IsInf(v, 0) {
		return math.Exp(m)
	}
	root := math.Sqrt(float64(len(units)) / v)
	points := chi(float64(len(units) - 1))
	atMost := func(g float64) float64 {
		return points.mean(func(x float64) float64 { return 0.5 * math.Erfc(-(g-v/(2*x*x))*root*x/math.Sqrt2) })
	}
	low, high := 0.0, math.Sqrt(v)
	for atMost(high) < 1-alpha {
		if low, high = high, 2*high; high > 700 {
			return math.Inf(1)
		}
	}
	for range 26 {
		if mid := (low + high) / 2; atMost(mid) < 1-alpha {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Exp(m + high)
}

// MeanNeeded returns how many units are needed to tell their mean from the limit. MeanInterval
// would then exclude the limit, if mean and spread stay the same. ok is false if a million units
// would not suffice.
func MeanNeeded(units []float64, limit, alpha float64) (n int, ok bool) {
	if len(units) < 2 {
		return 0, false
	}
	mean, variance := Moments(units)
	distance := math.Abs(mean - limit)
	if !(distance > 0) || math.IsInf(distance, 0) || math.IsNaN(variance) {
		return 0, false
	}
	half := func(n int) float64 {
		return StudentQuantile(1-alpha, float64(n-1)) * math.Sqrt(variance/float64(n))
	}
	const most = 1_000_000
	n = 2 + sort.Search(most-1, func(i int) bool { return half(2+i) < distance })
	return n, n <= most
}

// Moments returns the mean of all values in the lists, and their sample variance with the divisor
// n−1. Both are NaN if there are too few values. A second pass corrects the rounding error of the
// mean (Chan, Golub and LeVeque, The American Statistician 37, 1983). So the mean of equal values
// is exactly their value.
func Moments(lists ...[]float64) (mean, variance float64) {
	all := make([]Ascending, len(lists))
	for i, values := range lists {
		all[i] = Ascending{Values: values}
	}
	return moments(all...)
}

func moments(lists ...Ascending) (mean, variance float64) {
	n := 0.0
	for _, xs := range lists {
		n += xs.count()
	}
	if n == 0 {
		return math.NaN(), math.NaN()
	}
	mean = sum(lists, func(x float64) float64 { return x / n })
	if off := sum(lists, func(x float64) float64 { return (x - mean) / n }); !math.IsNaN(off) && !math.IsInf(off, 0) {
		mean += off
	}
	if n < 2 {
		return mean, math.NaN()
	}
	return mean, sum(lists, func(x float64) float64 { return (x - mean) * (x - mean) }) / (n - 1)
}

func sum(lists []Ascending, term func(x float64) float64) (sum float64) {
	for _, xs := range lists {
		for i, x := range xs.Values {
			sum += term(x) * float64(xs.times(i))
		}
	}
	return sum
}

// Ascending holds observations in ascending order. Equal observations may share an entry: then
// Until[i] is the number of observations up to Values[i]. If Until is nil, each value is one
// observation.
type Ascending struct {
	Values []float64
	Until  []int
}

func (a Ascending) times(i int) int {
	switch {
	case a.Until == nil:
		return 1
	case i == 0:
		return a.Until[0]
	}
	return a.Until[i] - a.Until[i-1]
}

func (a Ascending) count() float64 {
	if n := len(a.Until); n > 0 {
		return float64(a.Until[n-1])
	}
	return float64(len(a.Values))
}
