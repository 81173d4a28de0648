package nights

import (
	"math"
	"slices"

	"github.com/tokgate/tokgate/assert/stat"
)

const (
	// outlying says which nights are left out of the reference: those further from the median than
	// this many robust standard deviations. With few nights the limit is larger. Without this rule
	// one bad night would move the reference and widen its bounds.
	outlying = 4.5
	// believed is the share of the degrees of freedom of a standard deviation that are counted. It
	// is less than 1 because outliers were removed before.
	believed = 0.8
	// uncorrelated is how many imagined nights are added when the correlation is estimated. They
	// have no correlation, so the estimate is closer to 0 if there are few real nights.
	uncorrelated = 5
	// mostCorrelated is the largest correlation from night to night that predictions use.
	mostCorrelated = 0.9
)

// moments describes the nights of a reference, without the outliers.
type moments struct {
	N           int     // nights that count
	More        int     // degrees of freedom of Sigma from other nights
	Mean        float64 // mean of the nights; NaN if there are none
	Sigma       float64 // standard deviation; NaN for fewer than two nights
	Correlation float64 // lag-1 autocorrelation, corrected for few nights; NaN for fewer than 3
	Skewness    float64 // of the nights, clipped at mostNight; 0 for fewer than 3 or if all are equal
	Outliers    int     // nights that do not count
}

// robust returns the moments of n numbers without outliers. The distance of an outlier from the
// median is more than outlying·(1 + 3/n) robust standard deviations. These are estimated from the
// median of the absolute deviations (Hampel, Journal of the American Statistical Association 69,
// 1974). If more than half of the numbers are equal, this median is 0. So robust uses the 80th
// percentile of the deviations if that gives more. The parameter floor is the smallest possible
// standard deviation.
//
// The parameter known is the standard deviation if it is known from other nights, otherwise 0. Then
// an outlier is more than outlying·(1 + 1/n)·known from the median.
func robust(xs []float64, floor, known float64) moments {
	if len(xs) == 0 {
		return moments{Mean: math.NaN(), Sigma: math.NaN(), Correlation: math.NaN()}
	}
	sorted := slices.Clone(xs)
	slices.Sort(sorted)
	center := middle(sorted)
	deviations := make([]float64, len(xs))
	for i, x := range xs {
		deviations[i] = math.Abs(x - center)
	}
	slices.Sort(deviations)
	// In a normal distribution with standard deviation σ, the absolute deviations have the median
	// 0.6745 σ and the 80th percentile 1.2816 σ.
	spread := max(middle(deviations)/0.6745, deviations[len(xs)*4/5]/1.2816, floor)
	limit := outlying * (1 + 3/float64(len(xs))) * spread
	if known > 0 {
		limit = outlying * (1 + 1/float64(len(xs))) * max(known, floor)
	}
	var kept []float64
	for _, x := range xs {
		if math.Abs(x-center) <= limit {
			kept = append(kept, x)
		}
	}
	mean, variance := stat.Moments(kept)
	m := moments{N: len(kept), Mean: mean, Sigma: max(math.Sqrt(variance), floor), Correlation: math.NaN(), Outliers: len(xs) - len(kept)}
	if m.N < 3 || variance == 0 {
		return m
	}
	m.Skewness = skewness(kept, m.Mean, m.Sigma)
	sum, before := 0.0, math.NaN()
	for _, x := range xs {
		d := x - mean
		if math.Abs(x-center) > limit {
			d = math.NaN() // an outlier has no part in the correlation of neighbours
		}
		if product := d * before; !math.IsNaN(product) {
			sum += product
		}
		before = d
	}
	r, n := sum/(variance*float64(m.N-1)), float64(m.N)
	m.Correlation = r + (1+4*r)/n // corrected for bias: Marriott and Pope, Biometrika 41, 1954
	return m
}

func middle(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// inflation returns 1 + 2·Σ(1−k/n)·r^k, the factor by which correlation increases the variance of
// the mean of n nights. Each night has the correlation r with the night before (AR(1)).
func inflation(r float64, n int) float64 {
	sum, power := 1.0, 1.0
	for k := 1; k < n; k++ {
		power *= r
		sum += 2 * (1 - float64(k)/float64(n)) * power
	}
	return sum
}

// prediction is what to expect of the mean of one or several later nights.
type prediction struct {
	Center  float64
	Sigma   float64 // standard deviation from night to night
	Error   float64 // standard error of the later nights' mean, including the reference's error
	Freedom float64 // degrees of freedom of Sigma; if below 1, no prediction is possible
}

// predict returns the prediction for the mean of a number of further nights (Hahn and Meeker,
// Statistical Intervals, 1991, section 4.7). The parameter r is the correlation from one night to
// the next.
//
// Because nights are correlated, n nights count as fewer independent ones (Bayley and Hammersley,
// Supplement to the Journal of the Royal Statistical Society 8, 1946). They count as n/inflation
// nights for their mean, and as n·(1−r²)/(1+r²) nights for their standard deviation. The measured
// standard deviation of correlated nights is too small, so it is enlarged.
func (m moments) predict(further int, r float64) prediction {
	n, inflated := float64(m.N), inflation(r, m.N)
	p := prediction{Center: m.Mean, Sigma: m.Sigma}
	if n-inflated < 1 {
		return p
	}
	p.Freedom = believed*(n+float64(m.More))*(1-r*r)/(1+r*r) - 1
	p.Sigma *= math.Sqrt((n - 1) / (n - inflated))
	p.Error = p.Sigma * math.Sqrt(inflation(r, further)/float64(further)+inflated/n)
	return p
}

// pooled adds the nights of b to the standard deviation of m, not to its mean.
func (m moments) pooled(b moments) moments {
	if b.N < leastReference || m.N < 2 {
		return m
	}
	n, o := float64(m.N-1), float64(b.N-1)
	m.Sigma = math.Sqrt((n*m.Sigma*m.Sigma + o*b.Sigma*b.Sigma) / (n + o))
	m.More = b.N - 1
	return m
}

// clipped returns the mean of xs, in which no night counts as more than mostNight standard
// deviations from the center. If they are lasting nights or more of one machine, a night counts as the
// least of them if that is more, up to mostLasting. p is the prediction for one night.
func (p prediction) clipped(xs []float64, oneMachine bool) float64 {
	most := mostNight * p.Sigma
	if oneMachine && len(xs) >= lasting {
		least := max(slices.Min(xs)-p.Center, p.Center-slices.Max(xs))
		most = max(most, min(least, mostLasting*p.Sigma))
	}
	sum := 0.0
	for _, x := range xs {
		sum += min(max(x, p.Center-most), p.Center+most)
	}
	return sum / float64(len(xs))
}

// upperTail returns how likely an unchanged series has a mean at least this high, of a number of
// nights whose distribution has the given skewness. It returns 1 if there is no prediction. To save
// time it also returns 1 near the center, where the probability is too high for an alarm.
func (p prediction) upperTail(mean, skewness float64, nights int) float64 {
	const unremarkable = 2.3 // exceeded by normal values with probability 0.0107, more than perPlan
	t := (mean - p.Center) / p.Error
	if p.Freedom < 1 || !(t > unremarkable) {
		return 1
	}
	return stat.StudentCDF(-straight(t, skewness, nights), p.Freedom)
}

// lowerTail returns how likely an unchanged series has a mean at most this low. upperTail does
// the same for a high mean.
func (p prediction) lowerTail(mean, skewness float64, nights int) float64 {
	return p.upperTail(2*p.Center-mean, -skewness, nights)
}
