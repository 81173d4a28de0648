package search

import (
	"iter"
	"math"
)

// wants yields the probes that the search wants, most important first. Next takes the first probe
// that the budget allows. The confirmation is last and gets the rest of the budget.
func (s *Search) wants() iter.Seq[Probe] {
	return func(yield func(Probe) bool) {
		for _, want := range []func() (Probe, bool){
			s.repeat, s.settle, s.gate, s.early, s.rung, s.alike, s.extend, s.below, s.above, s.remaining, s.decide, s.check, s.confirm,
		} {
			if p, ok := want(); ok && !yield(p) {
				return
			}
		}
	}
}

// repeat measures a level again on new requests, if the load generator was saturated.
func (s *Search) repeat() (Probe, bool) {
	pass, _ := s.bounds()
	for _, l := range s.levels {
		if l.again && l.n > pass && l.n < s.top() {
			return s.fresh(l, Again), true
		}
	}
	return Probe{}, false
}

// settle measures a contradiction once more on new requests. In a contradiction, a level passes
// above a level that fails. The failing level is measured first. If it now passes, the
// contradiction is gone.
func (s *Search) settle() (Probe, bool) {
	var fail *level // the nearest below
	for _, l := range s.levels {
		switch {
		case l.stands == Fail:
			fail = l
		case l.stands == Pass && fail != nil && !fail.retried:
			return s.fresh(fail, Retry), true
		case l.stands == Pass && fail != nil && !l.retried:
			return s.fresh(l, Retry), true
		}
	}
	return Probe{}, false
}

// gate returns a probe of the required level with all its looks. ok is false once that level is
// decided.
func (s *Search) gate() (Probe, bool) {
	r := s.opts.Require
	pass, fail := s.bounds()
	if r < s.opts.From || r >= s.ceiling || r <= pass || (fail > 0 && r >= fail) {
		return Probe{}, false
	}
	switch l := s.find(r); {
	case l == nil:
		return s.first(r, Gate)
	case l.stands == Inconclusive:
		return s.more(l, math.MaxInt)
	}
	return Probe{}, false
}

// early extends a level while the ladder is still climbing. If undecided levels are far apart, it
// does nothing, because a deep probe of one level uses the requests better.
func (s *Search) early() (Probe, bool) {
	if s.wide() {
		return Probe{}, false
	}
	return s.extend()
}

// extend adds requests to an inconclusive level inside the bracket, if its remaining looks can
// decide it. It takes the level that needs the fewest additional requests.
func (s *Search) extend() (Probe, bool) {
	var best Probe
	cost := math.MaxInt
	for _, l := range s.undecided() {
		if l.needs < 0 {
			continue
		}
		p, ok := s.more(l, l.needs)
		if !ok {
			continue
		}
		last := p.Looks[len(p.Looks)-1]
		if last-l.have < l.needs || last-l.have >= cost {
			continue
		}
		best, cost = p, last-l.have
	}
	return best, cost < math.MaxInt
}

// rung returns the next step of the ladder. It is a lower level while nothing passes, and a higher
// level while nothing fails. ok is false if the bracket has both sides.
//
// ok is also false if the ladder ends where the generator was saturated. The level before that
// could not be measured either.
func (s *Search) rung() (Probe, bool) {
	if s.ceiling <= s.opts.From {
		return Probe{}, false // the generator was saturated at every level
	}
	if len(s.levels) == 0 {
		return s.first(s.clamp(s.begin()), Ladder)
	}
	pass, fail := s.bounds()
	if lo := s.levels[0].n; pass == 0 && lo > s.opts.From {
		return s.first(s.clamp(s.down(lo)), Ladder)
	}
	hi := 0
	for _, l := range s.levels {
		if l.n < s.ceiling {
			hi = l.n
		}
	}
	if (fail == 0 || fail > s.ceiling) && hi > 0 && hi < s.ceiling-1 && !s.vague {
		return s.first(s.clamp(s.up(hi)), Ladder)
	}
	return Probe{}, false
}

// begin returns the first level of the search. If an earlier search found a limit, it is just below
// that limit, and the next level is just above.
func (s *Search) begin() int {
	if s.opts.Start > 0 {
		return s.opts.Start - s.stride()
	}
	return s.opts.Begin
}

// stride is the distance from the last known limit to the nearest levels of the search. It is an
// eighth of the limit, but at least the resolution. At that distance the first look usually decides
// a level.
func (s *Search) stride() int {
	return max(s.resolution(s.opts.Start), (s.opts.Start+7)/8)
}

// up returns the next level above hi, at most 2·hi. Around the last known limit, start, the next
// level may be lower. There the levels are start−d, start+d, start+2d, start+4d and so on, where d
// is the stride.
func (s *Search) up(hi int) int {
	n := 2 * hi
	if start, d := s.opts.Start, s.stride(); start > 0 && hi < 2*start {
		switch {
		case hi < start-d:
			n = start - d
		case hi < start+d:
			n = start + d
		default:
			n = min(n, start+2*(hi-start))
		}
	}
	return n
}

// down returns the next level below lo. It is half of lo, or the next level around the last known
// limit if that is higher. See up.
func (s *Search) down(lo int) int {
	n := lo / 2
	if start, d := s.opts.Start, s.stride(); start > 0 {
		switch {
		case lo > start-d:
			n = start - d
		default:
			n = max(n, start-2*(start-lo))
		}
	}
	return n
}

// clamp returns the level nearest to n that can be measured.
func (s *Search) clamp(n int) int { return max(s.opts.From, min(n, s.ceiling-1)) }

// below returns a probe halfway between L and the lowest inconclusive level above L. Without such a
// level the probe is in the middle of the bracket.
func (s *Search) below() (Probe, bool) {
	pass, _ := s.bounds()
	if pass == 0 {
		return Probe{}, false
	}
	to := s.top()
	if us := s.undecided(); len(us) > 0 {
		to = us[0].n
	}
	return s.halve(pass, to)
}

// above returns a probe halfway between two levels: the highest inconclusive level, and the lowest
// level that fails or cannot be measured.
func (s *Search) above() (Probe, bool) {
	us := s.undecided()
	if len(us) == 0 {
		return Probe{}, false
	}
	return s.halve(us[len(us)-1].n, s.top())
}

// halve returns a probe in the middle between the levels lo and hi. If hi is more than three times
// lo, the probe is at their geometric mean.
func (s *Search) halve(lo, hi int) (Probe, bool) {
	pass, _ := s.bounds()
	if hi-lo <= s.resolution(pass) {
		return Probe{}, false
	}
	mid := (lo + hi) / 2
	if hi > 3*lo {
		mid = max(lo+1, int(math.Sqrt(float64(lo)*float64(hi))))
	}
	return s.first(mid, Bisect)
}

// check returns a probe in the middle of the widest gap between measured levels below L. It does so
// once in a search. The gap must be wider than a quarter of L, and must end above L/2. At lower
// levels a failure is less likely, and a measurement takes longer.
func (s *Search) check() (Probe, bool) {
	pass, _ := s.bounds()
	if s.checked || pass == 0 {
		return Probe{}, false
	}
	wide, at := max(s.resolution(pass), pass/4), 0
	prev := s.opts.From - 1
	for _, l := range s.levels {
		if l.n > pass {
			break
		}
		if 2*l.n > pass && l.n-prev > wide {
			wide, at = l.n-prev, (prev+l.n)/2
		}
		prev = l.n
	}
	if at < s.opts.From {
		return Probe{}, false
	}
	return s.first(at, Check)
}

// confirm returns a probe that measures L once more, with new requests only.
func (s *Search) confirm() (Probe, bool) {
	pass, _ := s.bounds()
	if !s.opts.Confirm || pass == 0 {
		return Probe{}, false
	}
	l := s.find(pass)
	if l.tried {
		return Probe{}, false
	}
	return s.fresh(l, Confirm), true
}

// top returns the lowest level above which the search need not look. It is U, or the first level
// that cannot be measured.
func (s *Search) top() int {
	_, fail := s.bounds()
	if fail > 0 {
		return min(fail, s.ceiling)
	}
	return s.ceiling
}

// undecided lists the inconclusive levels within the bracket, in ascending order.
func (s *Search) undecided() []*level {
	pass, _ := s.bounds()
	top := s.top()
	var us []*level
	for _, l := range s.levels {
		if l.n > pass && l.n < top && l.stands == Inconclusive {
			us = append(us, l)
		}
	}
	return us
}

// first returns the probe that visits level n for the first time. ok is false if the level was
// already visited.
func (s *Search) first(n int, why Purpose) (Probe, bool) {
	if s.find(n) != nil {
		return Probe{}, false
	}
	looks := s.looks(n)
	k := s.opts.First
	if k == 0 {
		k = len(looks) - 1
	}
	k = max(1, min(k, len(looks)))
	return Probe{N: n, Purpose: why, Looks: looks[:k], Planned: len(looks)}, true
}

// more returns a probe that adds requests to the first samples of a level. It ends at the next
// planned look that has at least need more requests. ok is false if no look is left.
func (s *Search) more(l *level, need int) (Probe, bool) {
	p := Probe{N: l.n, Purpose: Extend, Have: l.have}
	looks := s.looks(l.n)
	p.Planned = len(looks)
	for _, k := range looks {
		if k <= l.have {
			continue
		}
		p.Looks = append(p.Looks, k)
		if k-l.have >= need {
			break
		}
	}
	return p, len(p.Looks) > 0
}

// fresh returns a probe that measures a level again on new requests. It has all looks of the level.
func (s *Search) fresh(l *level, why Purpose) Probe {
	looks := s.looks(l.n)
	if l.deep != nil {
		looks = s.opts.Deep(l.n) // with fewer requests the level could not be decided
	}
	return Probe{N: l.n, Purpose: why, Set: l.sets, Looks: looks, Planned: len(looks)}
}

// looks returns the planned looks at level n. It panics if there are no looks, or if they do not
// ascend.
func (s *Search) looks(n int) []int {
	looks := s.opts.Looks(n)
	last := 0
	for _, k := range looks {
		if k <= last {
			panic("search: looks do not ascend from 1")
		}
		last = k
	}
	if last == 0 {
		panic("search: no look planned")
	}
	return looks
}
