package stat

import "math"

// autocorrelation returns the lag-1 autocorrelation of a series, an estimate in [−1, 1] that is
// about 1/n too low for n values. It is 0 for a constant series, and for fewer than two values.
func autocorrelation(series []float64) float64 {
	mean, _ := Moments(series)
	products, squares := 0.0, 0.0
	for i, x := range series {
		squares += (x - mean) * (x - mean)
		if i > 0 {
			products += (x - mean) * (series[i-1] - mean)
		}
	}
	if !(squares > 0) {
		return 0
	}
	return products / squares
}

// Inflation returns by how much the variance of the mean of a long series exceeds that of
// independent values: (1+r)/(1−r) for a first-order autoregression with the lag-1 autocorrelation r
// (Bartlett, JRSS Supplement 8, 1946). The estimate r is corrected for its bias 1/n, and increased
// by the given number of its standard errors, 1/√n. Afterwards it is limited to [0, 0.9], so the
// result is between 1 and 19.
func Inflation(series []float64, errors float64) float64 {
	n := float64(len(series))
	if n < 3 {
		return 1
	}
	r := min(max(autocorrelation(series)+1/n+errors/math.Sqrt(n), 0), 0.9)
	return (1 + r) / (1 - r)
}

// Stretched returns the values, each moved k times as far from their mean.
func Stretched(values []float64, k float64) []float64 {
	if k == 1 {
		return values
	}
	middle, _ := Moments(values)
	out := make([]float64, len(values))
	for i, x := range values {
		out[i] = middle + k*(x-middle)
	}
	return out
}
