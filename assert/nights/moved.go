package nights

import (
	"math"
	"slices"
)

// twoLevels is the least distance of two levels of a reference, in standard deviations, that moves
// the reference to the later one.
const twoLevels = 2.5

func (s *watched) adopt() {
	since := s.since(s.change.from)
	if len(since) < leastReference {
		return
	}
	s.reference, s.numbers, s.memo = nil, nil, nil
	for _, at := range since {
		s.reference, s.numbers = append(s.reference, at), append(s.numbers, s.values[at])
	}
	s.first, s.change = s.seen[len(s.seen)-1]+1, latch{}
	s.moved, s.adopted = s.reference[0], true
}

// rebase moves the reference behind a change inside it. Such a reference would have two levels and
// find no change any more. A change for the worse among nights that were judged stays in it,
// because it could be the beginning of a regression. If better levels wait for a pin, a change for
// the better among these nights stays too.
func (s *watched) rebase() {
	xs := s.numbers
	if len(xs) < leastReference || len(xs) >= mostReference || !suspect(xs, 0.01, 0) {
		return
	}
	cuts := divisive(xs)
	for i, c := range slices.Backward(cuts) {
		before, after := sides(cuts, i, len(xs))
		a, b := robust(xs[before:c.Night], s.floor, 0), robust(xs[c.Night:after], s.floor, 0)
		shift := b.Mean - a.Mean
		judged := c.Night >= s.least()
		better := shift*float64(s.worse) < 0
		if judged && (!better || s.wait) || math.Abs(shift) < max(twoLevels*max(a.Sigma, b.Sigma), s.ignore) {
			continue
		}
		s.reference, s.numbers, s.memo = slices.Clone(s.reference[c.Night:]), slices.Clone(s.numbers[c.Night:]), nil
		s.first = max(s.first, s.reference[0])
		s.moved, s.adopted = s.reference[0], false
		return
	}
}
