package search

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Limit is the answer of a capacity search, or the answer so far while the search runs.
type Limit struct {
	Kind metric.CapacityKind
	// L is the largest passed level that has no failed level below it. U is the smallest failed
	// level. Passes and failures are certified. Each is 0 if there is no such level.
	L int
	U int
	// PassBy and FailBy are the indexes of the probes that decided L and U. They mean nothing if
	// there is no such level.
	PassBy int
	FailBy int
	// Crossing estimates the load at which a threshold first reaches its limit.
	Crossing Crossing
	// Binding is the name of the threshold that fails at U. If there is no U, it is the threshold
	// that is nearest to its limit at L. AtL and AtU are estimates of that threshold's statistic at
	// L and U; "" if unknown.
	Binding string
	AtL     string
	AtU     string
	// NonMonotone lists levels that pass although a lower level fails, both certified. Each pair is
	// the nearest failed level, which is above L, and the level that passes.
	NonMonotone [][2]int
	// Confirmed means that a second probe of level L, with only new requests, passed too.
	Confirmed bool
	// Probes holds all measurements in order. First come levels that were measured before the
	// search.
	Probes []Visit
	// Spent is the total time of all probes. Levels measured before the search do not count.
	Spent time.Duration
	// Reason explains why the search ended; "" while it runs.
	Reason string
	// Notes are further remarks, such as verdicts that fresh samples reversed, and confirmations
	// that failed.
	Notes []string
}

// claim returns what the probes so far show, without an estimate of the crossing.
func (s *evidence) claim() Limit {
	l := Limit{
		Kind:   metric.CapacityUnknown,
		Probes: slices.Clone(s.visits),
		Spent:  s.spent,
		Reason: s.ended,
		Notes:  slices.Clone(s.notes),
	}
	l.L, l.U = s.bounds()
	switch {
	case l.L > 0 && s.cause == byServer && (l.U == 0 || l.U > s.ceiling) && s.ceiling-l.L <= s.resolution(l.L):
		l.Kind = metric.CapacityServerCap
	case l.L > 0 && l.U > 0:
		l.Kind = metric.CapacityInterpolated
		if l.U-l.L <= s.resolution(l.L) {
			l.Kind = metric.CapacityExact
		}
	case l.L > 0:
		l.Kind = metric.CapacityAtLeast
	case l.U > 0:
		l.Kind = metric.CapacityBelow
	}
	var fail *level
	for _, v := range s.levels {
		switch {
		case v.stands == Fail:
			fail = v
		case v.stands == Pass && fail != nil:
			l.NonMonotone = append(l.NonMonotone, [2]int{fail.n, v.n})
		}
		switch v.n {
		case l.L:
			l.Confirmed, l.PassBy = v.confirmed, v.by
		case l.U:
			l.FailBy = v.by
		}
	}
	return l
}

// Limit returns the answer that the results so far allow.
func (s *Search) Limit() Limit {
	l := s.claim()
	if note := s.lacking(); note != "" {
		l.Notes = append(l.Notes, note)
	}
	l.Crossing = cross(s.visits, l.L, l.U)
	l.Binding = s.binding(l)
	l.AtL, l.AtU = s.shown(l.L, l.Binding), s.shown(l.U, l.Binding)
	return l
}

// binding returns the name of the threshold that limits the capacity.
//
// That is the threshold that failed at the lowest failed level, l.U. If none failed there, it is
// the threshold that reaches its limit first as the load grows. If that is unknown too, it is the
// threshold that is nearest to its limit at the highest passed level, l.L.
func (s *Search) binding(l Limit) string {
	for i := len(s.visits) - 1; i >= 0; i-- {
		r := s.visits[i].Result
		if r.N == l.U && r.Outcome == Fail && r.Binding != "" {
			return r.Binding
		}
	}
	if l.Crossing.Threshold != "" {
		return l.Crossing.Threshold
	}
	for i := len(s.visits) - 1; i >= 0; i-- {
		r := s.visits[i].Result
		if r.N != l.L || l.L == 0 {
			continue
		}
		if r.Binding != "" {
			return r.Binding
		}
		name, nearest := "", math.Inf(-1)
		for _, m := range r.Margins {
			if m.Log > nearest {
				name, nearest = m.Threshold, m.Log
			}
		}
		return name
	}
	return ""
}

// shown returns, as text, the estimate for a threshold from the latest samples of level n.
func (s *evidence) shown(n int, threshold string) string {
	for i := len(s.visits) - 1; i >= 0 && n > 0; i-- {
		if r := s.visits[i].Result; r.N == n {
			for _, m := range r.Margins {
				if m.Threshold == threshold {
					return m.Shown
				}
			}
		}
	}
	return ""
}

// closed returns the reason why a search is complete; "" if something is left to measure.
func (s *Search) closed() string {
	pass, fail := s.bounds()
	us := s.undecided()
	switch {
	case pass > 0 && fail > 0 && fail <= s.ceiling && fail-pass <= s.resolution(pass):
		return "the limit is found to within the resolution"
	case len(us) == 1:
		return fmt.Sprintf("%s could not be decided", s.label(us[0].n))
	case len(us) > 1:
		return fmt.Sprintf("%s to %s could not be decided", s.label(us[0].n), s.label(us[len(us)-1].n))
	case s.cause != byUpTo && (fail == 0 || fail > s.ceiling):
		return s.why
	case pass > 0:
		return fmt.Sprintf("the search goes up to %s", s.label(s.opts.UpTo))
	case fail > 0:
		return fmt.Sprintf("the search goes down to %s", s.label(s.opts.From))
	}
	return "nothing could be measured"
}

// Fill writes the result of a search into c. This includes the reason why it ended, and the line
// for reports.
func (l Limit) Fill(c *metric.Capacity) {
	c.Kind, c.Pass, c.Fail = l.Kind, l.L, l.U
	c.Crossing, c.CrossingLow, c.CrossingHigh = 0, 0, 0
	if l.Crossing.OK {
		c.Crossing, c.CrossingLow, c.CrossingHigh = l.Crossing.N, l.Crossing.Low, l.Crossing.High
	}
	c.Binding, c.AtPass, c.AtFail = l.Binding, l.AtL, l.AtU
	c.NonMonotone, c.Confirmed, c.Spent, c.Reason = l.NonMonotone, l.Confirmed, l.Spent, l.Reason
	c.Line = c.Words()
}
