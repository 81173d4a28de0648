package search

import (
	"fmt"
	"math"
	"slices"
)

// If latency hardly depends on the load, many neighbouring levels stay undecided. All are about
// equally near to the limit, so probes of more levels would not help. A deep probe measures one
// level with far more new samples, and judges them at looks planned in advance. If it decides that
// level, it also decides all levels below or above.

const (
	// apart is the smallest ratio between the ends of a range in which a deep probe is made. The
	// range is that of the undecided levels, or that in which the limit may lie. At a knee of the
	// latency curve the ranges are smaller.
	apart = 1.25
	// beside is the largest ratio of two levels that count as neighbours. The level of a deep probe
	// is lower by this ratio than the highest level that may pass, or higher than the lowest that
	// may fail.
	beside = 1.05
	// worth is the smallest ratio of levels for which a deep probe is worth making. The probe's
	// level must be that far above the highest passed level, or below the lowest failed one.
	worth = 1.1
	// deepest is the largest number of deep probes in a search. Deep probes of a required level do
	// not count.
	deepest = 2
)

func (s *Search) wide() bool {
	us := s.undecided()
	return s.opts.Deep != nil && len(us) > 1 && float64(us[len(us)-1].n) >= apart*float64(us[0].n)
}

// deepProbe continues a probe of one level with many requests. If none has begun, and undecided
// levels are far apart, it begins one.
func (s *Search) deepProbe() (Probe, bool) {
	if s.opts.Deep == nil {
		return Probe{}, false
	}
	ts := trends(s.visits)
	for _, l := range s.levels {
		if l.deep == nil {
			continue
		}
		if p, ok := s.probeDeep(ts, l.n); ok {
			return p, true
		}
	}
	if !s.wide() {
		return Probe{}, false
	}
	return s.deepen(ts, hope)
}

// remaining returns a deep probe if undecided levels are far apart after bisection. A deep probe
// has many requests, and is made only if it is expected to decide. Near a knee of the latency curve
// it gains little.
func (s *Search) remaining() (Probe, bool) {
	if !s.open() {
		return Probe{}, false
	}
	return s.deepen(trends(s.visits), 0)
}

// open reports whether several undecided levels remain, and the range in which the limit may lie
// spans at least the ratio apart.
func (s *Search) open() bool {
	pass, _ := s.bounds()
	return s.opts.Deep != nil && len(s.undecided()) > 1 && float64(s.top()) >= apart*float64(pass)
}

// deepen returns a probe of one level with many requests. This is the highest level that may pass
// with so many, or else the lowest level that may fail. Neighbouring levels are measured first,
// because a level between two distant ones may unexpectedly pass or fail.
func (s *Search) deepen(ts []trend, hope float64) (Probe, bool) {
	begun := 0
	for _, l := range s.levels {
		if l.deep != nil {
			begun++
		}
	}
	if begun >= deepest {
		return Probe{}, false
	}
	if p, ok := s.highest(ts, hope); ok {
		return p, true
	}
	return s.lowest(ts, hope)
}

// highest returns a deep probe of the highest level that may pass in such a probe.
func (s *Search) highest(ts []trend, hope float64) (Probe, bool) {
	pass, fail := s.bounds()
	n := s.top() - 1
	if l := s.find(fail); l != nil && l.deep != nil {
		// The lowest level that fails had a deep probe already. As many requests at a slightly
		// lower level would hardly show more.
		n = int(float64(fail) / apart)
	}
	for n > pass && !mayPass(ts, n, s.deepRequests(n), hope) {
		n = max(n-step(n), pass)
	}
	lo, hi := s.neighbors(n)
	if n > pass && hi > s.nextTo(lo) {
		return s.halve(lo, hi)
	}
	if n < s.top()-1 || fail > 0 {
		n = min(int(float64(n+1)/beside), lo)
	}
	if float64(n) <= worth*float64(pass) {
		return Probe{}, false
	}
	return s.probeDeep(ts, n)
}

// lowest returns a deep probe of the lowest level that may fail in such a probe.
func (s *Search) lowest(ts []trend, hope float64) (Probe, bool) {
	pass, _ := s.bounds()
	top := s.top()
	n := max(pass+1, s.opts.From)
	for n < top && !mayFail(ts, n, s.deepRequests(n), hope) {
		n = min(n+step(n), top)
	}
	lo, hi := s.neighbors(n - 1)
	if n < top && hi > s.nextTo(lo) {
		return s.halve(lo, hi)
	}
	if n > s.opts.From || pass > 0 {
		n = max(int(math.Ceil(float64(n)*beside)), hi)
	}
	if worth*float64(n) >= float64(top) {
		return Probe{}, false
	}
	return s.probeDeep(ts, n)
}

// step is how far apart the levels are at which the search estimates the margin. It is a tenth of
// the distance that the ratio beside allows.
func step(n int) int { return max(1, n/200) }

// decide returns a deep probe of the required level, if that level is still undecided.
func (s *Search) decide() (Probe, bool) {
	r := s.opts.Require
	pass, _ := s.bounds()
	if s.opts.Deep == nil || r < s.opts.From || r <= pass || r >= s.top() {
		return Probe{}, false
	}
	return s.probeDeep(trends(s.visits), r)
}

// probeDeep begins or continues a probe of level n with many requests. It returns false if even the
// most requests that the budget allows cannot decide the level.
func (s *Search) probeDeep(ts []trend, n int) (Probe, bool) {
	pass, _ := s.bounds()
	l := s.find(n)
	if n <= pass || n >= s.top() || l != nil && (l.stands != Inconclusive || l.tried || l.retried) {
		return Probe{}, false
	}
	most := s.deepRequests(n)
	if !mayPass(ts, n, most, hope) && !mayFail(ts, n, most, hope) {
		return Probe{}, false
	}
	p := Probe{N: n, Purpose: Deep}
	switch {
	case l == nil:
	case l.deep == nil:
		p.Set = l.sets
	default:
		p.Set, p.Have = l.deep.set, l.deep.have
	}
	looks := s.opts.Deep(n)
	p.Planned = len(looks)
	for _, k := range looks {
		if k > p.Have && k <= most {
			p.Looks = []int{k}
			return p, true
		}
	}
	return Probe{}, false
}

// deepRequests returns the largest number of requests that a deep probe of level n can have. The
// budget must last for twice as many, because a pass is confirmed with as many new requests. The
// result is 0 if there is no time.
func (s *Search) deepRequests(n int) int {
	most := 0
	for _, k := range s.opts.Deep(n) {
		have := 0
		if l := s.find(n); l != nil && l.deep != nil {
			have = l.deep.have
		}
		if s.opts.Budget == 0 || s.predict(n, k-have)+s.confirmTime(k, n) <= s.budgetLeft() {
			most = k
		}
	}
	return most
}

// neighbors returns the two measured levels next to n. Both are in the range in which the limit may
// lie: lo is at or below n, and hi is above n.
func (s *Search) neighbors(n int) (lo, hi int) {
	pass, _ := s.bounds()
	lo, hi = max(pass, s.opts.From-1), s.top()
	for _, l := range s.levels {
		switch {
		case l.n > lo && l.n <= n:
			lo = l.n
		case l.n < hi && l.n > n:
			hi = l.n
		}
	}
	return lo, hi
}

// nextTo returns the highest level that counts as next to level n. It is n times the factor beside,
// or one step of the resolution above n, whichever is higher.
func (s *Search) nextTo(n int) int {
	pass, _ := s.bounds()
	return max(n+s.resolution(pass), int(beside*float64(n)))
}

// lacking describes a search that ended while levels far apart were still undecided. It says how
// near to its limit the server stays at those levels, how many requests would decide, if that is
// known, and which setting to change for that. It returns "" if no such levels remain.
func (s *Search) lacking() string {
	if s.ended == "" || !s.open() {
		return ""
	}
	us, ts := s.undecided(), trends(s.visits)
	low, high := us[0].n, us[len(us)-1].n
	threshold, off := nearest(ts, low, high)
	said := fmt.Sprintf("from %s to %s ", s.label(low), s.label(high))
	near := fmt.Sprintf("%s stays within %s of its limit: ", threshold, percent(off))
	n, needs := s.cheapest(ts)
	if needs > unaffordable {
		return said + near + "hardly any number of requests would decide"
	}
	if have := s.judged(n); needs <= have {
		// The margins predict that enough requests were made, but these did not decide. So ask for
		// at least one more.
		said, needs = said+"more requests would decide", have+1
	} else {
		said += near + fmt.Sprintf("about %s requests at %s would decide", thousands(needs), s.label(n))
	}
	switch looks := s.opts.Deep(n); {
	case len(looks) == 0 || needs > float64(looks[len(looks)-1]):
		said += " (max_requests)"
	case s.opts.Budget > 0 && needs > float64(s.deepRequests(n)):
		said += " (budget)"
	case n != s.opts.Require:
		said += " (require)" // if the plan required this level, the search would measure it
	}
	return said
}

// judged returns the largest number of requests on which level n was judged.
func (s *Search) judged(n int) float64 {
	most := 0
	for _, v := range s.visits {
		if v.Result.N == n {
			most = max(most, v.Result.Requests)
		}
	}
	return float64(most)
}

// unaffordable is a number of requests that is too large for any level.
const unaffordable = 1e6

// cheapest returns an undecided level that few requests would decide, with their number. An
// undecided required level comes first. Otherwise it looks for the fewest requests that would
// decide any level. Of the levels that need at most four times as many, it takes the highest if
// they would pass, and the lowest if they would fail.
func (s *Search) cheapest(ts []trend) (n int, requests float64) {
	us := s.undecided()
	if r := s.opts.Require; slices.ContainsFunc(us, func(l *level) bool { return l.n == r }) {
		return r, min(toPass(ts, r), toFail(ts, r))
	}
	requests = math.Inf(1)
	pick := func(needs func([]trend, int) float64) {
		least := math.Inf(1)
		for _, u := range us {
			least = min(least, needs(ts, u.n))
		}
		if least >= requests {
			return
		}
		for _, u := range us {
			if takes := needs(ts, u.n); takes <= 4*least {
				n, requests = u.n, takes
				return
			}
		}
	}
	pick(toFail)
	slices.Reverse(us)
	pick(toPass)
	return n, requests
}

// percent writes a logarithmic margin as a percentage, rounded up: 0.026 is "3 %".
func percent(log float64) string {
	return fmt.Sprintf("%.0f %%", max(1, math.Ceil(100*math.Expm1(log)-1e-9)))
}

// thousands rounds a number to two digits and adds commas: 21,834 becomes "22,000".
func thousands(x float64) string {
	unit := math.Pow(10, max(0, math.Floor(math.Log10(x))-1))
	n := int(math.Round(x/unit) * unit)
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
