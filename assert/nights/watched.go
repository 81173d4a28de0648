package nights

import (
	"math"
	"slices"
)

// watched is the state of watch for one series of nightly values: its reference, and whether an
// alarm is on.
type watched struct {
	column
	nights    []night
	seen      []int     // nights with a value
	reference []int     // nights that later nights are compared with
	numbers   []float64 // values of the nights in the field reference
	memo      []moments // statistics of the reference's first n nights, by n
	first     int       // first night that a window may contain
	change    latch
}

// known returns statistics of the first n nights of the reference. Outliers are left out.
func (s *watched) known(n int) moments {
	for k := len(s.memo); k <= n; k++ {
		s.memo = append(s.memo, robust(s.numbers[:k], s.floor))
	}
	return s.memo[n]
}

// correlation collects the correlations from night to night of several series. Their weighted mean
// is sum/nights, in which each series weighs as much as it has nights.
type correlation struct{ sum, nights float64 }

func (c correlation) add(m moments, sign float64) correlation {
	if m.N < leastReference || math.IsNaN(m.Correlation) {
		return c
	}
	n := sign * float64(m.N)
	return correlation{c.sum + n*m.Correlation, c.nights + n}
}

// allowed returns the correlation from night to night that the prediction assumes. It is the
// estimate, limited to the range from 0 to mostCorrelated.
func (c correlation) allowed() float64 { return min(max(c.sum/c.nights, 0), mostCorrelated) }

// sharedCorrelation estimates one correlation from night to night for all series of a plan, because
// a single series has too few nights. The estimate is drawn towards zero.
func sharedCorrelation(series []*watched) correlation {
	c := correlation{nights: uncorrelated}
	for _, s := range series {
		c = c.add(s.known(len(s.reference)), +1)
	}
	return c
}

// evidence is the smallest p-value over several windows, corrected for the number of windows. The
// field nights is the length of the window with that p-value.
type evidence struct {
	p      float64
	nights int
}

func (e evidence) stronger(p float64, nights int) evidence {
	if p < e.p {
		return evidence{p, nights}
	}
	return e
}

// look compares the last nights with the reference, for every number of nights in windows. It
// returns the strongest evidence that the series became worse, and the strongest that it became
// better.
func (s *watched) look(tonight int, shared correlation) (worse, better evidence) {
	worse, better = evidence{p: 1}, evidence{p: 1}
	others := shared.add(s.known(len(s.reference)), -1)
	for _, w := range windows {
		if len(s.seen) < w.nights || s.seen[len(s.seen)-w.nights] < s.first {
			break
		}
		stretch := s.seen[len(s.seen)-w.nights:]
		n, _ := slices.BinarySearch(s.reference, stretch[0])
		m := s.known(n)
		if w.nights == 1 {
			s.nights[tonight].Reference, s.nights[tonight].Expected.Center = n, m.Mean
			s.nights[tonight].Shift = s.values[tonight] - m.Mean
		}
		if n < leastReference {
			break
		}
		r := others.add(m, +1).allowed()
		expected := m.predict(w.nights, r)
		if w.nights == 1 {
			s.nights[tonight].Expected, s.nights[tonight].Correlation = expected, r
		}
		mean := s.mean(stretch)
		if math.Abs(mean-m.Mean) < s.ignore {
			continue
		}
		higher, lower := expected.upperTail(mean)/w.share, expected.lowerTail(mean)/w.share
		switch s.worse {
		case +1:
			worse, better = worse.stronger(higher, w.nights), better.stronger(lower, w.nights)
		case -1:
			worse, better = worse.stronger(lower, w.nights), better.stronger(higher, w.nights)
		default:
			worse = worse.stronger(2*min(higher, lower), w.nights)
		}
	}
	return worse, better
}

func (s *watched) mean(nights []int) float64 {
	sum := 0.0
	for _, at := range nights {
		sum += s.values[at]
	}
	return sum / float64(len(nights))
}

// alarm records that a change began with the first of the last nights. The parameter nights is the
// number of these nights. They are removed from the reference.
func (s *watched) alarm(nights int, worse bool) {
	from := s.seen[len(s.seen)-nights]
	n, _ := slices.BinarySearch(s.reference, from)
	s.reference, s.numbers, s.memo = s.reference[:n], s.numbers[:n], s.memo[:min(len(s.memo), n+1)]
	s.first = s.seen[len(s.seen)-1] + 1
	s.change = latch{on: true, worse: worse, from: from}
	for _, at := range s.since(from) {
		s.change.add(s.values[at])
	}
}

// settle concludes a night of a series. It decides whether a change continues or ends. If there is
// no change, the night becomes part of the reference.
func (s *watched) settle(tonight int) {
	n := &s.nights[tonight]
	n.New = s.change.on && s.first == tonight+1
	if s.change.on && !n.New {
		s.change.add(s.values[tonight])
		s.release(tonight)
		n.Back = !s.change.on && s.change.worse
	}
	if n.Changed = s.change.on; n.Changed {
		n.Worse, n.From = s.change.worse, s.change.from
		n.Shift = s.change.mean() - n.Expected.Center
		return
	}
	if len(s.reference) == mostReference {
		return
	}
	for _, at := range s.since(s.first) {
		if len(s.reference) < mostReference && (len(s.reference) == 0 || at > s.reference[len(s.reference)-1]) {
			s.reference, s.numbers = append(s.reference, at), append(s.numbers, s.values[at])
		}
	}
}

// since returns the given night and all later nights, except nights without a value.
func (s *watched) since(night int) []int {
	i, _ := slices.BinarySearch(s.seen, night)
	return s.seen[i:]
}
