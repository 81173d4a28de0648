package nights

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tokgate/tokgate/assert/stat"
)

const (
	// leastSegment is the minimum number of nights between two changes.
	leastSegment = 5
	// permutations and significance decide whether a split is more than chance. The smallest
	// possible p-value is 1/(permutations+1).
	permutations = 199
	significance = 0.01
)

// cut is a change at one point of a series.
type cut struct {
	Night  int     // index of the first night after the change
	Before float64 // mean of the stretch before
	After  float64 // mean of the stretch after
	P      float64 // p-value: share of shuffled series with such a large distance
}

// divisive finds the changes in a series, in order. It splits the series at the night where the two
// parts differ most by the energy distance. It keeps the split if shuffled nights seldom give such
// a large distance. It then splits both parts in the same way (E-divisive: Matteson and James, JASA
// 109, 2014).
//
// Each part needs several nights, so divisive cannot raise an alarm early. It confirms and dates
// the changes that the function watch found. The shuffles have a fixed seed, so the same series
// always gives the same result.
func divisive(series []float64) []cut {
	var cuts []cut
	split(series, 0, rand.New(rand.NewPCG(2014, 109)), &cuts)
	bounds := []int{0}
	for _, c := range cuts {
		bounds = append(bounds, c.Night)
	}
	bounds = append(bounds, len(series))
	for i := range cuts {
		cuts[i].Before, _ = stat.Moments(series[bounds[i]:bounds[i+1]])
		cuts[i].After, _ = stat.Moments(series[bounds[i+1]:bounds[i+2]])
	}
	return cuts
}

// split finds the changes in the slice xs and appends them to cuts, in order. The parameter from is
// the night of the series at which xs begins.
func split(xs []float64, from int, rng *rand.Rand, cuts *[]cut) {
	s := newOrder(xs)
	at, energy := s.best()
	if at == 0 {
		return
	}
	as := 1
	for range permutations {
		rng.Shuffle(len(xs), s.swap)
		if _, e := s.best(); e >= energy {
			as++
		}
		if float64(as)/(permutations+1) > significance {
			return // further shuffles cannot make the split significant
		}
	}
	p := float64(as) / (permutations + 1)
	split(xs[:at], from, rng, cuts)
	*cuts = append(*cuts, cut{Night: from + at, P: p})
	split(xs[at:], from+at, rng, cuts)
}

// order holds the values of a series in any order. For each value it has the sum of the distances
// to all other values. A new order of the values does not change these sums.
type order struct {
	xs, far []float64
	pairs   float64 // half the sum of far
}

func newOrder(xs []float64) *order {
	s := &order{xs: slices.Clone(xs), far: make([]float64, len(xs))}
	for i := range xs {
		for j := range i {
			d := math.Abs(xs[i] - xs[j])
			s.far[i], s.far[j], s.pairs = s.far[i]+d, s.far[j]+d, s.pairs+d
		}
	}
	return s
}

func (s *order) swap(i, j int) {
	s.xs[i], s.xs[j] = s.xs[j], s.xs[i]
	s.far[i], s.far[j] = s.far[j], s.far[i]
}

// best returns the split of the series with the largest energy: n·m/(n+m) times 2·E|X−Y| − E|X−X'|
// − E|Y−Y'|, where n and m are the lengths of the two parts. The result cut is the number of nights
// in the first part. It is 0 if the series is too short or constant. The sums are updated from
// split to split, so all splits together need only one pass over the pairs.
func (s *order) best() (cut int, energy float64) {
	total := len(s.xs)
	left, right, between := 0.0, s.pairs, 0.0 // sums over pairs
	for k := 1; k < total; k++ {
		// The k-th value moves from the right part to the left part.
		x, toLeft := s.xs[k-1], 0.0
		for _, y := range s.xs[:k-1] {
			toLeft += math.Abs(x - y)
		}
		toRight := s.far[k-1] - toLeft
		left += toLeft
		right -= toRight
		between += toRight - toLeft
		if k < leastSegment || total-k < leastSegment {
			continue
		}
		n, m := float64(k), float64(total-k)
		e := 2*between/(n*m) - 2*left/(n*(n-1)) - 2*right/(m*(m-1))
		if e *= n * m / (n + m); e > energy {
			cut, energy = k, e
		}
	}
	return cut, energy
}
