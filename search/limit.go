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
	metric.Bracket
	// PassBy and FailBy are the indexes of the probes that decided Pass and Fail. They mean nothing if
	// there is no such level.
	PassBy, FailBy int
	Probes         []Visit       // all measurements in order, those from before the search first
	Spent          time.Duration // of all probes; levels measured before the search do not count
	Reason         string        // why the search ended; "" while it runs
	Notes          []string      // such as verdicts that fresh samples reversed
}

func (s *evidence) claim() Limit {
	l := Limit{Probes: slices.Clone(s.visits), Spent: s.spent, Reason: s.ended, Notes: slices.Clone(s.notes)}
	l.Kind = metric.CapacityUnknown
	l.Pass, l.Fail = s.bounds()
	switch {
	case l.Pass > 0 && s.cause == byServer && (l.Fail == 0 || l.Fail > s.ceiling) && s.ceiling-l.Pass <= s.resolution(l.Pass):
		l.Kind = metric.CapacityServerCap
	case l.Pass > 0 && l.Fail > 0:
		l.Kind = metric.CapacityInterpolated
		if l.Fail-l.Pass <= s.resolution(l.Pass) {
			l.Kind = metric.CapacityExact
		}
	case l.Pass > 0:
		l.Kind = metric.CapacityAtLeast
	case l.Fail > 0:
		l.Kind = metric.CapacityBelow
	}
	var fail *level
	for _, v := range s.levels {
		switch {
		case v.stands == metric.Fail:
			fail = v
		case v.stands == metric.Pass && fail != nil:
			l.NonMonotone = append(l.NonMonotone, [2]int{fail.n, v.n})
		}
		switch v.n {
		case l.Pass:
			l.Confirmed, l.PassBy = v.confirmed, v.by
		case l.Fail:
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
	c := cross(s.visits, l.Pass, l.Fail)
	if c.OK {
		l.Crossing, l.CrossingLow, l.CrossingHigh = c.N, c.Low, c.High
	}
	l.Binding = s.binding(l, c.Threshold)
	l.AtPass, l.AtFail = s.shown(l.Pass, l.Binding), s.shown(l.Fail, l.Binding)
	return l
}

// binding returns the name of the threshold that limits the capacity.
//
// That is the threshold that failed at the lowest failed level, l.Fail. If none failed there, it is
// first, which reaches its limit first as the load grows. If that is unknown too, it is the threshold
// that is nearest to its limit at the highest passed level, l.Pass.
func (s *Search) binding(l Limit, first string) string {
	for i := len(s.visits) - 1; i >= 0; i-- {
		r := s.visits[i].Result
		if r.N == l.Fail && r.Outcome == metric.Fail && r.Binding != "" {
			return r.Binding
		}
	}
	if first != "" {
		return first
	}
	for i := len(s.visits) - 1; i >= 0; i-- {
		r := s.visits[i].Result
		if r.N != l.Pass || l.Pass == 0 {
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
	c.Bracket, c.Spent, c.Reason = l.Bracket, l.Spent, l.Reason
	c.Line = c.Words()
}
