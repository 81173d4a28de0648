package search

import (
	"github.com/tokgate/tokgate/metric"
	"iter"
	"math"
	"slices"
)

// wants yields the probes that would help the search, most important first. Next takes the first
// one that the budget allows. The confirmation comes last, so it gets what is left of the budget.
func (s *Search) wants() iter.Seq[Probe] {
	return func(yield func(Probe) bool) {
		for _, want := range []func() (Probe, bool){
			s.repeat, s.settle, s.gate, s.decide, s.extend, s.rung, s.probeBelow, s.probeAbove, s.certify, s.check, s.confirm,
		} {
			if p, ok := want(); ok && !yield(p) {
				return
			}
		}
	}
}

// repeat measures a level again if the load generator could not keep up. The probe has new
// requests.
func (s *Search) repeat() (Probe, bool) {
	pass, _ := s.bounds()
	for _, l := range s.levels {
		if l.retry && l.n > pass && l.n < s.top() {
			return s.probeAgain(l, Again), true
		}
	}
	return Probe{}, false
}

// settle measures a contradiction once more on new requests: a level fails, and a higher level
// passes. The failing level comes first. If it now passes, the contradiction is gone.
func (s *Search) settle() (Probe, bool) {
	var fail *level // the nearest below
	for _, l := range s.levels {
		switch {
		case l.stands == metric.Fail:
			fail = l
		case l.stands == metric.Pass && fail != nil && !fail.retried:
			return s.probeAgain(fail, Retry), true
		case l.stands == metric.Pass && fail != nil && !l.retried:
			return s.probeAgain(l, Retry), true
		}
	}
	return Probe{}, false
}

// gate returns a probe of the level that the plan requires, with all its looks. ok is false once
// that level is decided.
func (s *Search) gate() (Probe, bool) {
	r := s.opts.Require
	pass, fail := s.bounds()
	if r < s.opts.From || r >= s.ceiling || r <= pass || (fail > 0 && r >= fail) {
		return Probe{}, false
	}
	switch l := s.find(r); {
	case l == nil:
		return s.first(r, Gate)
	case l.stands == metric.Inconclusive:
		return s.addRequests(l, math.MaxInt)
	}
	return Probe{}, false
}

// extend adds requests to an inconclusive level inside the bracket. The bracket lies between the
// highest pass and the lowest fail. extend takes the level that needs the fewest further requests,
// if the remaining looks can decide it.
func (s *Search) extend() (Probe, bool) {
	var best Probe
	cost := math.MaxInt
	for _, l := range s.undecided() {
		if l.needs < 0 {
			continue
		}
		p, ok := s.addRequests(l, l.needs)
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

// rung returns the next step of the ladder, the first phase of a search. It goes down while no
// level passes, and up while none fails. ok is false once one level passes and one fails.
//
// ok is also false if the ladder ends where the generator was saturated. The level before that
// could not be measured either.
func (s *Search) rung() (Probe, bool) {
	if s.ceiling <= s.opts.From {
		return Probe{}, false // the generator cannot keep up even at the lowest level
	}
	if len(s.levels) == 0 {
		return s.first(s.clamp(s.begin()), Ladder)
	}
	pass, fail := s.bounds()
	if lo := s.levels[0].n; pass == 0 && lo > s.opts.From {
		return s.first(s.clamp(s.levelBelow(lo)), Ladder)
	}
	hi := 0
	for _, l := range s.levels {
		if l.n < s.ceiling {
			hi = l.n
		}
	}
	if (fail == 0 || fail > s.ceiling) && hi > 0 && hi < s.ceiling-1 && !s.vague {
		return s.first(s.clamp(s.levelAbove(hi)), Ladder)
	}
	return Probe{}, false
}

// begin returns the first level of the search. If an earlier search found a limit, the first level
// is just below it.
func (s *Search) begin() int {
	if s.opts.Start > 0 {
		return s.opts.Start - s.stride()
	}
	return s.opts.Begin
}

// stride is the distance from the last known limit to the nearest levels of the search. It is an
// eighth of the limit, but at least the resolution of the search.
func (s *Search) stride() int {
	return max(s.resolution(s.opts.Start), (s.opts.Start+7)/8)
}

// levelAbove returns the next level above hi, usually 2·hi. It is lower around start, the limit of
// an earlier search. There the levels are start−d, start+d, start+2d, start+4d and so on, where d
// is the stride.
func (s *Search) levelAbove(hi int) int {
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

// levelBelow returns the next level below lo: half of lo, or a higher level that lies close to the
// last known limit. See levelAbove.
func (s *Search) levelBelow(lo int) int {
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

func (s *Search) clamp(n int) int { return max(s.opts.From, min(n, s.ceiling-1)) }

// probeBelow returns a probe halfway between L, the highest level that passes, and the lowest
// inconclusive level above it. Without an inconclusive level, the probe is halfway between L and
// the lowest level that fails or cannot be measured.
func (s *Search) probeBelow() (Probe, bool) {
	pass, _ := s.bounds()
	if pass == 0 || s.certified() {
		return Probe{}, false
	}
	to := s.top()
	if us := s.undecided(); len(us) > 0 {
		if to = us[0].n; s.besides(pass, to) {
			return Probe{}, false
		}
	}
	return s.halve(pass, to)
}

// probeAbove returns a probe above the highest inconclusive level. It is halfway to the lowest
// level that fails or cannot be measured.
func (s *Search) probeAbove() (Probe, bool) {
	us := s.undecided()
	if len(us) == 0 || s.certified() {
		return Probe{}, false
	}
	last := us[len(us)-1].n
	if s.besides(last, s.top()) {
		return Probe{}, false
	}
	return s.halve(last, s.top())
}

// beside is the largest ratio of two levels that count as neighbours. A neighbour of an undecided
// level is about as near to the limit, so it would stay undecided too.
const beside = 1.05

func (s *Search) besides(low, high int) bool { return float64(high) <= beside*float64(low) }

// halve returns a probe halfway between the levels lo and hi. Halfway is their geometric mean if hi
// is more than three times lo.
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

// check returns a probe in the widest gap between levels below L, once a search, to find a failure
// there. The gap must be wider than a quarter of L, and must end above L/2.
func (s *Search) check() (Probe, bool) {
	pass, _ := s.bounds()
	made := slices.ContainsFunc(s.visits, func(v Visit) bool { return v.Probe.Purpose == Check })
	if made || pass == 0 {
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

// confirm returns a probe that measures L once more, with new requests only. L is the highest level
// that passes.
func (s *Search) confirm() (Probe, bool) {
	pass, _ := s.bounds()
	if !s.opts.Confirm || pass == 0 {
		return Probe{}, false
	}
	l := s.find(pass)
	if l.tried {
		return Probe{}, false
	}
	return s.probeAgain(l, Confirm), true
}

// top returns the level at which the search need not look further up. It is U, the smallest level
// that fails, or the first level that cannot be measured.
func (s *Search) top() int {
	_, fail := s.bounds()
	if fail > 0 {
		return min(fail, s.ceiling)
	}
	return s.ceiling
}

// undecided lists the inconclusive levels between the highest level that passes and the lowest
// level that fails, in ascending order.
func (s *Search) undecided() []*level {
	pass, _ := s.bounds()
	top := s.top()
	var us []*level
	for _, l := range s.levels {
		if l.n > pass && l.n < top && l.stands == metric.Inconclusive {
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

// addRequests returns a probe that adds requests to the first samples of a level. It ends at the
// first planned look with at least need new requests, or else at the last look. ok is false if no
// look is left.
func (s *Search) addRequests(l *level, need int) (Probe, bool) {
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

// probeAgain returns a probe that measures a level again, with new requests only. The probe has all
// looks of the level.
func (s *Search) probeAgain(l *level, why Purpose) Probe {
	looks := s.looks(l.n)
	if l.fresh && s.opts.Certify != nil {
		looks = s.opts.Certify(l.n) // fewer requests may not decide the level
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
