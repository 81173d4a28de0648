package nights

import (
	"math"
	"slices"
)

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
	cubes    float64 // sum of nights times skewness for the worse
	counted  float64 // nights
	outliers float64 // nights that are outliers
}

// noise is what the nights of all series of a plan say of it.
type noise struct {
	correlation
	shape
}

// surroundings are the series of a plan on one night. They remember what is known of the noise.
type surroundings struct {
	series []*watched
	known  map[int]noise
}

// before returns what the reference nights before the given one say of the noise.
func (p surroundings) before(night int) noise {
	out, ok := p.known[night]
	if ok {
		return out
	}
	out.nights = uncorrelated
	for _, s := range p.series {
		n, _ := slices.BinarySearch(s.reference, night)
		if n < leastReference || !s.typical() {
			continue
		}
		m := s.known(n)
		out.correlation = out.add(m, +1)
		out.cubes += float64(m.N*s.worse) * m.Skewness
		out.counted += float64(m.N)
		out.outliers += float64(m.Outliers)
	}
	p.known[night] = out
	return out
}

// worstSettled updates the worst night of the series that did not last. Tonight says whether suspect
// nights before it last.
func (s *watched) worstSettled() {
	m := s.known(len(s.reference))
	settled := len(s.reference)
	for settled > 0 && s.nights[s.reference[settled-1]].Suspect {
		settled--
	}
	if len(s.reference) < leastReference || !(m.Sigma > 0) || !s.typical() {
		return
	}
	for _, x := range s.numbers[:settled] {
		s.worst = max(s.worst, float64(s.worse)*(x-m.Mean)/m.Sigma)
	}
}

// skewness returns the skewness of values, clipped at mostNight standard deviations.
func skewness(xs []float64, mean, sigma float64) float64 {
	var one, two, three float64
	for _, x := range xs {
		z := min(max((x-mean)/sigma, -mostNight), mostNight)
		one, two, three = one+z, two+z*z, three+z*z*z
	}
	n := float64(len(xs))
	one, two, three = one/n, two/n, three/n
	variance := two - one*one
	if variance <= 0 {
		return 0
	}
	return (three - 3*one*two + 2*one*one*one) / math.Pow(variance, 1.5)
}

// estimated returns the skewness that is estimated for all series, drawn towards zero.
func (f shape) estimated() float64 { return f.cubes / (f.counted + symmetric) }

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
	f := surroundings{series, map[int]noise{}}.before(math.MaxInt)
	outliers := f.outliers / max(f.outliers+f.counted, 1)
	switch {
	case judged == 0 || outliers > triedOutliers || f.allowed() > triedCorrelation:
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
