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
	// A change counts if its p-value is at most significance. The p-value comes from this number of
	// permutations, so it is at least 1/(permutations+1).
	permutations = 199
	significance = 0.01
)

// cut is a lasting change in a series of nights.
type cut struct {
	Night  int     // index of the first night after the change
	Before float64 // mean of the nights from the previous change to this one
	After  float64 // mean of the nights after the change, up to the next one
	P      float64 // p-value: share of shuffled series whose parts differ at least as much
}

// divisive returns the changes in a series, in order. It splits the series at the night where both
// parts differ most by the energy distance. It drops the split if shuffled nights often have as
// large a distance. Otherwise it splits both parts in the same way (E-divisive: Matteson and James,
// JASA 109, 2014).
//
// Each part needs several nights, so divisive is too slow to raise an alarm. It confirms and dates
// the changes that watch found. The shuffles have a fixed seed, so the same series gives the same
// result.
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

// split finds the changes in xs and appends them to cuts, in order. from is the index of the first
// value of xs in the whole series.
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
			return // the change can no longer become significant
		}
	}
	p := float64(as) / (permutations + 1)
	split(xs[:at], from, rng, cuts)
	*cuts = append(*cuts, cut{Night: from + at, P: p})
	split(xs[at:], from+at, rng, cuts)
}

// sides returns where the stretch before the cut i begins, and where the stretch after it ends.
// total is the number of nights of the series.
func sides(cuts []cut, i, total int) (from, to int) {
	to = total
	if i > 0 {
		from = cuts[i-1].Night
	}
	if i < len(cuts)-1 {
		to = cuts[i+1].Night
	}
	return from, to
}

// suspect reports whether the function divisive may find a change in xs. The means before and after
// some night must differ by nearly as much as a significant change. suspect takes linear time, and
// divisive takes quadratic time.
func suspect(xs []float64, level, r float64) bool {
	worth := 0.75 * stat.NormalQuantile(1-level/2) * math.Sqrt((1+r)/(1-r))
	mean, variance := stat.Moments(xs)
	total, left := float64(len(xs)), 0.0
	squares := variance * (total - 1)
	for k := 1; k < len(xs); k++ {
		left += xs[k-1] - mean
		n, m := float64(k), total-float64(k)
		// between is the part of the sum of squares that a change at night k would explain.
		between := left * left * (1/n + 1/m)
		if k >= leastSegment && len(xs)-k >= leastSegment && between*(total-2) > worth*worth*(squares-between) {
			return true
		}
	}
	return false
}

// order holds the values of a series in any order. far has, for each value, the sum of its
// distances to all other values. The order of the values does not change the sums.
type order struct {
	xs, far []float64
	pairs   float64 // sum of the distances between all pairs of values
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

// best finds the split of the series whose two parts have the largest energy distance. For parts X
// and Y of n and m nights, that is n·m/(n+m) · (2·E|X−Y| − E|X−X'| − E|Y−Y'|). X' and Y' are
// independent copies of X and Y.
//
// cut is the number of nights in the first part. It is 0 if the series is too short or constant.
// Each split updates the sums of the previous split, so best visits each pair of nights only once.
func (s *order) best() (cut int, energy float64) {
	total := len(s.xs)
	left, right, between := 0.0, s.pairs, 0.0 // sums over pairs
	for k := 1; k < total; k++ {
		// Move the k-th value from the right part to the left part.
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
