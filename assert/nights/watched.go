package nights

import (
	"cmp"
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
	siblings  []*watched // the same series on other runners
	worst     float64    // largest deviation for the worse of a night that did not last, in standard deviations
	moved     int        // first night of the reference if it was moved; otherwise 0
	adopted   bool       // it was moved to a better level that lasted
}

func (s *watched) known(n int) moments {
	for k := len(s.memo); k <= n; k++ {
		s.memo = append(s.memo, robust(s.numbers[:k], s.floor, s.before.noise.Sigma))
	}
	return s.memo[n]
}

// remembered returns what later nights may know of the series after a pin.
func (s *watched) remembered() memory {
	out := memory{noise: s.known(len(s.reference)), worst: s.worst}
	if out.noise.N < leastReference {
		out.noise = s.before.noise
	}
	return out
}

// correlation collects the correlations from night to night of several series. Their weighted mean
// is sum/nights, in which each series weighs as much as it has nights. A plan has one estimate for
// all its series, because a single series has too few nights. The estimate is drawn towards zero.
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

// look is the strongest evidence of one night that a series became worse, and that it became
// better.
type look struct {
	worse, better evidence
	alone         float64 // p-value of tonight alone, for the worse
}

// look compares the last nights with the reference, for every number of nights in windows. worst is
// the largest deviation of a night of the plan that did not last.
func (s *watched) look(tonight int, plan surroundings, worst float64) look {
	out := look{worse: evidence{p: 1}, better: evidence{p: 1}, alone: 1}
	at := func(nights int) (m moments, all noise, stretch []float64) {
		list := s.seen[len(s.seen)-nights:]
		n, _ := slices.BinarySearch(s.reference, list[0])
		recent := list[max(nights-undecided, 0)]
		m, all = s.known(n), plan.before(recent)
		if s.typical() {
			k, _ := slices.BinarySearch(s.reference, recent)
			all.correlation = all.add(s.known(k), -1)
		}
		all.correlation = all.add(m, +1)
		for _, k := range list {
			stretch = append(stretch, s.values[k])
		}
		return m.pooled(s.borrowed()), all, stretch
	}
	night := &s.nights[tonight]
	n, _ := slices.BinarySearch(s.reference, tonight)
	m, all, stretch := at(1)
	night.Reference, night.Expected.Center, night.Shift = n, m.Mean, s.values[tonight]-m.Mean
	night.Moved, night.Adopted = s.moved, s.adopted
	if n < s.least() {
		return out
	}
	night.Correlation = all.allowed()
	night.Expected = m.predict(1, night.Correlation)
	out.alone = s.alone(night.Expected, stretch[0], worst)
	for _, w := range windows {
		if len(s.seen) < w.nights || s.seen[len(s.seen)-w.nights] < s.first {
			break
		}
		first, _ := slices.BinarySearch(s.reference, s.seen[len(s.seen)-w.nights])
		if first < s.least() {
			break
		}
		m, all, stretch := at(w.nights)
		r := all.allowed()
		// A clipped mean may be below ignore although the series is far beyond it, if its noise is
		// small. So half of the nights must be beyond.
		mean := m.predict(1, r).clipped(stretch, !s.common)
		slices.SortFunc(stretch, func(a, b float64) int { return cmp.Compare(math.Abs(a-m.Mean), math.Abs(b-m.Mean)) })
		if math.Abs(stretch[(len(stretch)-1)/2]-m.Mean) < s.ignore {
			continue
		}
		expected, skewness := m.predict(w.nights, r), float64(s.worse)*all.corrected()
		higher, lower := expected.upperTail(mean, skewness, w.nights)/w.share, expected.lowerTail(mean, skewness, w.nights)/w.share
		switch s.worse {
		case +1:
			out.worse, out.better = out.worse.stronger(higher, w.nights), out.better.stronger(lower, w.nights)
		case -1:
			out.worse, out.better = out.worse.stronger(lower, w.nights), out.better.stronger(higher, w.nights)
		default:
			out.worse = out.worse.stronger(2*min(higher, lower), w.nights)
		}
	}
	return out
}

// alone returns the p-value of a single night that is worse. It returns 1 if the night is not far
// beyond the worst night of the plan that did not last.
func (s *watched) alone(expected prediction, x, worst float64) float64 {
	sign := float64(s.worse)
	if sign == 0 {
		sign = math.Copysign(1, x-expected.Center)
	}
	shift := sign * (x - expected.Center)
	if shift < s.ignore || shift/expected.Sigma < beyondWorst*worst {
		return 1
	}
	return expected.upperTail(expected.Center+shift, 0, 1)
}

// borrowed returns the noise that is known from other nights: from before a pin, or of the runner
// with the most nights.
func (s *watched) borrowed() moments {
	out := s.before.noise
	if out.N >= leastReference {
		return out
	}
	out = moments{}
	if s.common {
		return out // runners differ from each other by more than their noise
	}
	for _, o := range s.siblings {
		if m := o.known(len(o.reference)); m.N >= leastReference && m.N > out.N {
			out = m
		}
	}
	return out
}

// typical reports whether the reference shows the noise of the plan. A common column does not if its
// runners have references of their own.
func (s *watched) typical() bool {
	return !s.common || !slices.ContainsFunc(s.siblings, func(o *watched) bool { return len(o.reference) >= leastReference })
}

// least returns the number of reference nights that a judgement needs.
func (s *watched) least() int {
	if s.borrowed().N >= leastReference {
		return leastKnown
	}
	return leastReference
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
	if n.New { // the nights of the change are no longer in the reference
		m := s.known(len(s.reference))
		n.Reference, n.Expected = len(s.reference), m.pooled(s.borrowed()).predict(1, n.Correlation)
	}
	if n.Changed = s.change.on; n.Changed {
		n.Worse, n.From = s.change.worse, s.change.from
		n.Shift = s.change.mean() - n.Expected.Center
		if !n.Worse && !s.wait {
			s.adopt()
		}
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
	s.rebase()
}

// since returns the given night and all later nights, except nights without a value.
func (s *watched) since(night int) []int {
	i, _ := slices.BinarySearch(s.seen, night)
	return s.seen[i:]
}
