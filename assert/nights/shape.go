package nights

import "math"

const (
	// symmetric is how many imagined nights without skewness are added when it is estimated.
	symmetric = 20
	// ofSkewness is the share of the estimated skewness that is corrected. With all of it a large
	// change in skewed series would be found late.
	ofSkewness = 0.5
	// mostSkewness is the largest skewness that is corrected.
	mostSkewness = 2
)

// shape is what the reference nights of all series of a plan say of their distribution.
type shape struct {
	worst    float64 // the largest deviation for the worse of a night that did not last, in standard deviations
	cubes    float64 // sum of nights times skewness
	nights   float64
	outliers float64 // number of nights that are outliers
}

// shapeOf returns the shape of the series before tonight. It updates the worst night of each.
func shapeOf(series []*watched) shape {
	var out shape
	for _, s := range series {
		if len(s.numbers) >= leastReference && s.typical() {
			skewness, n := s.skewness()
			out.cubes, out.nights = out.cubes+n*skewness, out.nights+n
			out.outliers += float64(len(s.numbers)) - n
		}
		out.worst = max(out.worst, s.worst)
	}
	return out
}

// skewness returns the skewness of the reference nights in the direction of worse, and the number
// of nights behind it. Outliers do not count, and the other nights are clipped.
func (s *watched) skewness() (skewness, n float64) {
	m := s.known(len(s.reference))
	if !(m.Sigma > 0) {
		return 0, float64(len(s.numbers))
	}
	settled := len(s.reference)
	for settled > 0 && s.nights[s.reference[settled-1]].Suspect {
		settled-- // tonight says whether it lasts
	}
	var one, two, three float64
	for i, x := range s.numbers {
		z := float64(s.worse) * (x - m.Mean) / m.Sigma
		if i < settled {
			s.worst = max(s.worst, z)
		}
		if math.Abs(x-m.Mean)/m.Sigma > outlying*(1+3/float64(len(s.numbers))) {
			continue
		}
		z = min(max(z, -mostNight), mostNight)
		n, one, two, three = n+1, one+z, two+z*z, three+z*z*z
	}
	one, two, three = one/n, two/n, three/n
	variance := two - one*one
	if variance <= 0 {
		return 0, n
	}
	return (three - 3*one*two + 2*one*one*one) / math.Pow(variance, 1.5), n
}

// estimated returns the skewness that is estimated for all series, drawn towards zero.
func (f shape) estimated() float64 { return f.cubes / (f.nights + symmetric) }

// corrected returns the skewness that the tests correct.
func (f shape) corrected() float64 {
	return min(max(f.estimated()*ofSkewness, -mostSkewness), mostSkewness)
}

const (
	// manySeries is the number of series from which false alarms of one are rare: all series
	// together share what is allowed.
	manySeries = 12
	// The noise of fewer series is ordinary if its skewness and its share of outliers are at most
	// these.
	ordinarySkewness, ordinaryOutliers = 0.25, 0.01
	// Noise with more outliers or a larger correlation from night to night was not tried, or turns
	// red more often.
	triedOutliers, triedCorrelation = 0.04, 0.4
)

// byChance returns the largest number of red mornings in 50 nights that is expected if nothing
// changes. It is 0 if the noise of the series is unlike any noise for which that is known. `make
// characteristics` measures it.
func byChance(series []*watched, judged int) int {
	f := shapeOf(series)
	outliers := f.outliers / max(f.outliers+f.nights, 1)
	switch {
	case judged == 0 || outliers > triedOutliers || sharedCorrelation(series).allowed() > triedCorrelation:
		return 0
	case judged >= manySeries || math.Abs(f.estimated()) <= ordinarySkewness && outliers <= ordinaryOutliers:
		return 2
	}
	return 4
}

// straight returns the value that a mean of symmetric nights would have with the same probability as
// t, the standardized mean of k nights with the given skewness. It solves the first term of an
// Edgeworth expansion (Hall, The Bootstrap and Edgeworth Expansion, 1992, section 2.4). A negative
// skewness does not change t.
func straight(t, skewness float64, k int) float64 {
	a := skewness / (6 * math.Sqrt(float64(k)))
	if a < 1e-6 {
		return t
	}
	return (math.Sqrt(1+4*a*(a+t)) - 1) / (2 * a)
}
