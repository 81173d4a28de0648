package search

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Rates finds the largest rate that meets the thresholds. It is a state machine like Search. Near
// the largest rate of a server, busy periods are few and long, so no affordable number of requests
// certifies a rate just below the limit. Rates therefore works in three steps:
//
//  1. Short probes estimate the limit. They certify nothing.
//  2. One rate is certified: the rate that the plan requires, or else a rate well below the
//     estimate. The latter is lower if the budget is short.
//  3. Further rates between the last certified rate and the estimate are certified, as long as
//     the budget lasts.
//
// A rate is claimed if a probe of it passed on fresh samples and no probe at a lower rate failed.
// RFC 9971 (MLRsearch) also finds a rate by short and long trials, but does not bound the error.
// Rates certifies at the plan's confidence.
type Rates struct {
	evidence
	opts RateOptions
}

// RateOptions describes a search over rates. Rates are counted in steps of Step requests per
// second.
type RateOptions struct {
	// Options has no Start, Begin, Confirm, Looks or Certify: the search over rates has rules of its
	// own. Relative is the allowed distance below the estimate.
	Options
	// Largest is the largest rate of the saturated server, and Least is a lower bound of it. Both
	// are above 0, and in steps.
	Largest, Least float64
	// Unsaturated means that Largest is only said to be the largest rate. So nothing but the backlog of a
	// probe shows that its rate is sustained.
	Unsaturated bool
	Scatter     float64 // variance of the gaps between requests / square of their mean
	Effective   int     // number of independent requests that can certify the thresholds
	Short       int     // number of requests of a probe that estimates the limit
	Most        int     // largest number of requests of a probe that certifies
}

const (
	shortProbes = 2
	longProbes  = 5
	// Probes that estimate run at a share of the largest rate. The share is firstShort in the first
	// probe, and at most mostShort in later ones. Nearer to the largest rate, a short window shows
	// too little.
	firstShort, mostShort = 0.8, 0.93
	// below is the first rate to certify, as a share of the estimated limit.
	below = 0.82
	// reserve is the factor by which a probe that certifies has more requests than the minimum. The
	// minimum suffices only if no request exceeds the limit.
	reserve = 1.5
	// cheap is how long a probe may take that certifies more than the required rate.
	cheap   = 100 * time.Second
	growing = "backlog_growth"
)

// NewRates starts a search.
func NewRates(o RateOptions) *Rates {
	if o.From < 1 || o.UpTo < o.From || !(o.Step > 0) {
		panic(fmt.Sprintf("search: no rate from %d up to %d", o.From, o.UpTo))
	}
	o.Over, o.Resolution = metric.OpenLoop, max(o.Resolution, 1)
	s := &Rates{gather(o.Options), o}
	if !(o.Largest > 0 && o.Least > 0) {
		s.ended = "the largest rate that the server can sustain is not known"
	}
	return s
}

// Sustained returns the mean of the rates in the consecutive parts of one saturation, and an
// approximate lower bound of this mean. The bound only serves to plan probes.
func Sustained(parts []float64) (mean, least float64) {
	n := float64(len(parts))
	if n < 2 {
		return 0, 0
	}
	for _, x := range parts {
		mean += x / n
	}
	variance := 0.0
	for _, x := range parts {
		variance += (x - mean) * (x - mean) / (n - 1)
	}
	return mean, mean - 1.9*math.Sqrt(variance/n)
}

func (s *Rates) made(of func(Probe) bool) (n int) {
	for _, v := range s.visits {
		if v.Probe.Purpose != Known && of(v.Probe) {
			n++
		}
	}
	return n
}

// estimates returns the number of probes that estimate, except those that the generator sent late.
func (s *Rates) estimates() (n int) {
	for _, v := range s.visits {
		if v.Probe.Purpose == Estimate && v.Result.Outcome != metric.Saturated {
			n++
		}
	}
	return n
}

func (s *Rates) sets(n int) int { return s.made(func(p Probe) bool { return p.N == n }) }

// Next returns the next probe; false when the search has ended.
func (s *Rates) Next() (Probe, bool) {
	if s.pending != nil {
		return *s.pending, true
	}
	if s.ended != "" {
		return Probe{}, false
	}
	p, why := s.want()
	if s.ended = why; why != "" {
		return Probe{}, false
	}
	if s.opts.Budget > 0 {
		p.Within = s.opts.Budget - s.spent
	}
	p.Planned, p.Set = len(p.Looks), s.sets(p.N)
	p.Expected = s.takes(p.N, p.Looks[len(p.Looks)-1])
	s.pending = &p
	return p, true
}

func (s *Rates) want() (p Probe, why string) {
	if n := s.sentLate(); n > 0 {
		return s.afterLate(n)
	}
	estimate, ok := s.estimate()
	if !ok && s.estimates() >= shortProbes {
		return p, s.unestimated()
	}
	if !ok || s.estimates() == 0 {
		return s.estimating(s.clamp(firstShort * s.opts.Largest))
	}
	if s.gates() && float64(s.opts.Require) < below*estimate {
		return s.gate(estimate)
	}
	if s.estimates() < shortProbes && estimate < float64(s.opts.UpTo) {
		return s.estimating(s.clamp(min(estimate, mostShort*s.opts.Largest)))
	}
	if s.gates() {
		return s.certifying(s.opts.Require)
	}
	pass, fail := s.bounds()
	if long := s.made(func(p Probe) bool { return p.Purpose != Estimate }); long >= longProbes {
		return p, fmt.Sprintf("%d certifying probes were sent, the most that a search sends", long)
	}
	if fail > 0 {
		estimate = min(estimate, float64(fail))
	}
	switch {
	case fail > 0 && fail <= s.opts.From:
		return p, "the search goes down to " + s.label(s.opts.From)
	case pass >= s.opts.UpTo:
		return p, "the search goes up to " + s.label(s.opts.UpTo)
	case pass > 0 && float64(pass) >= (1-s.opts.Relative)*estimate:
		return p, "the certified rate is near enough to the estimate"
	}
	return s.climb(pass, estimate)
}

// unestimated says why a search ends whose probes gave no value of any threshold, such as on a server
// that fails every request.
func (s *Rates) unestimated() string {
	said := fmt.Sprintf("%d probes gave no estimate of the largest rate", s.estimates())
	if last := s.visits[len(s.visits)-1].Result.Note; last != "" {
		said += ": " + last
	}
	return said
}

// climb returns a probe that may certify a higher rate than pass. It chooses the highest rate that
// still seems possible after the earlier probes, within the budget and max_requests.
func (s *Rates) climb(pass int, estimate float64) (p Probe, why string) {
	n := s.clamp(below * estimate)
	if pass > 0 {
		n = max(n, s.clamp((float64(pass)+estimate)/2))
	}
	n = s.untried(n)
	least := max(s.opts.From, int(math.Ceil(float64(pass)*1.03)), int(0.4*float64(n)))
	if pass == 0 && s.opts.From >= int(below*estimate) {
		n, least = s.opts.From, s.opts.From
	}
	for ; n >= least; n = min(n-1, neat(0.98*float64(n))) {
		p, cannot := s.certifying(n)
		if cannot == "" {
			return p, ""
		}
		why = cmp.Or(why, cannot) // keep the reason for the highest rate
	}
	return p, s.undecided() + cmp.Or(why, "no higher rate could be certified")
}

// untried returns n, or a rate a tenth below each rate that could not be certified.
func (s *Rates) untried(n int) int {
	for _, v := range s.visits {
		if v.Probe.Purpose == Certify && v.Result.Outcome != metric.Pass {
			n = min(n, neat(0.9*float64(v.Probe.N)))
		}
	}
	return n
}

// gates reports whether the required rate is undecided, and was not measured yet.
func (s *Rates) gates() bool {
	r := s.opts.Require
	pass, fail := s.bounds()
	return r > pass && (fail == 0 || r < fail) && s.sets(r) == 0
}

// gate returns a probe that may certify the required rate, which is far below the estimate. A higher
// rate certifies it too, because a lower rate is never worse. So gate takes the highest rate that is
// certified within the time cheap, or else the one that is certified soonest. After two such probes it
// takes the required rate itself.
func (s *Rates) gate(estimate float64) (Probe, string) {
	r := s.opts.Require
	best, why := s.certifying(r)
	if s.made(func(p Probe) bool { return p.Purpose == Certify }) >= 2 {
		return best, why
	}
	for n := s.untried(s.clamp(below * estimate)); n > r; n = min(n-1, neat(0.98*float64(n))) {
		p, cannot := s.certifying(n)
		if cannot != "" {
			continue
		}
		if s.lasts(p) <= cheap {
			return p, ""
		}
		if why != "" || s.lasts(p) < s.lasts(best) {
			best, why = p, ""
		}
	}
	return best, why
}

func (s *Rates) lasts(p Probe) time.Duration { return s.takes(p.N, p.Looks[len(p.Looks)-1]) }

func late(v Visit) bool { return v.Probe.Purpose != Known && v.Result.Outcome == metric.Saturated }

// sentLate returns how many probes were sent late, if the last was one of them; otherwise 0.
func (s *Rates) sentLate() (n int) {
	if last := len(s.visits) - 1; last < 0 || !late(s.visits[last]) {
		return 0
	}
	for _, v := range s.visits {
		if late(v) {
			n++
		}
	}
	return n
}

// afterLate returns the probe after one that was sent late, the given number of them so far: the same
// once more, then one at half the rate, and then none.
func (s *Rates) afterLate(so int) (Probe, string) {
	last := s.visits[len(s.visits)-1]
	n := last.Probe.N
	if so > 2 || so == 2 && n <= s.opts.From {
		why := fmt.Sprintf("the load generator sent %d probes late, the last at %s", so, s.label(n))
		if last.Result.Note != "" {
			why += ": " + last.Result.Note
		}
		return Probe{}, why
	}
	if so == 2 {
		n = s.clamp(float64(n))
	}
	if last.Probe.Purpose == Certify {
		return s.certifying(n)
	}
	return s.estimating(n)
}

// undecided returns the beginning of a message if the required rate was not decided. Otherwise, or
// if that rate was not probed, it returns "".
func (s *Rates) undecided() string {
	for _, v := range s.visits {
		if v.Probe.Purpose != Certify || v.Probe.N != s.opts.Require || v.Result.Outcome != metric.Inconclusive {
			continue
		}
		if v.Result.Requests == 0 {
			return fmt.Sprintf("%s was not measured to the end; ", s.label(v.Probe.N))
		}
		return fmt.Sprintf("%s was not decided by %d requests; ", s.label(v.Probe.N), v.Result.Requests)
	}
	return ""
}

// estimating returns a short probe at the rate n, which only estimates the limit. The second result
// is the reason if the budget does not allow the probe; otherwise "".
func (s *Rates) estimating(n int) (Probe, string) {
	p := Probe{N: n, Purpose: Estimate, Looks: []int{s.opts.Short * (s.estimates() + 1)}}
	if left := s.opts.Budget - s.spent; s.opts.Budget > 0 && s.takes(n, p.Looks[0]) > left {
		return p, fmt.Sprintf("budget: %s left, %d requests at %s for an estimate take about %s", round(max(left, 0)), p.Looks[0], s.label(n), round(s.takes(n, p.Looks[0])))
	}
	return p, ""
}

// certifying returns a probe of rate n with enough requests to certify the thresholds, even if a
// few exceed their limits. If max_requests or the budget forbids so many, only a required rate is
// probed, with fewer requests. If there is no probe, why is the reason.
func (s *Rates) certifying(n int) (p Probe, why string) {
	idle := max(0, 1-float64(n)/s.opts.Least)
	worth := min(1, idle*idle/(s.opts.Scatter+0.5))
	if worth == 0 && n != s.opts.Require {
		return p, fmt.Sprintf("no number of requests certifies %s, which is not below the rate that the server is certified to sustain", s.label(n))
	}
	requests := s.opts.Most
	if need := reserve * float64(s.opts.Effective) / worth; need < float64(requests) {
		requests = max(int(math.Ceil(need)), min(s.least(), s.opts.Most))
	} else if n != s.opts.Require {
		return p, fmt.Sprintf("certifying %s takes %.0f requests, more than max_requests = %d", s.label(n), need, s.opts.Most)
	}
	p = Probe{N: n, Purpose: Certify, Looks: []int{requests}}
	if left := s.opts.Budget - s.spent; s.opts.Budget > 0 && s.takes(n, requests) > left {
		if n == s.opts.Require {
			p.Looks[0] = int((left - s.overhead()).Seconds() * float64(n) * s.opts.Step)
		}
		if p.Looks[0] < s.opts.Short || n != s.opts.Require {
			return p, fmt.Sprintf("budget: %s left, certifying %s takes about %s", round(max(left, 0)), s.label(n), round(s.takes(n, requests)))
		}
	}
	return p, ""
}

// least returns the smallest number of requests of a probe that certifies. The backlog alone shows less
// than the backlog beside a saturation.
func (s *Rates) least() int {
	if s.opts.Unsaturated {
		return 4 * s.opts.Short
	}
	return 2 * s.opts.Short
}

// takes returns the duration of a probe with the given number of requests at rate n, including
// warm-up and drain.
func (s *Rates) takes(n, requests int) time.Duration {
	return time.Duration(float64(requests)/(float64(n)*s.opts.Step)*float64(time.Second)) + s.overhead()
}

// overhead returns how long a probe takes outside its window, for warm-up and drain.
func (s *Rates) overhead() time.Duration {
	most := time.Duration(0)
	for _, v := range s.visits {
		if v.Result.Spent > 0 {
			most = max(most, v.Result.Spent-time.Duration(float64(v.Result.Requests)/(float64(v.Probe.N)*s.opts.Step)*float64(time.Second)))
		}
	}
	return most
}

// clamp returns a rate within the search, and at most half of each rate that was sent late twice.
func (s *Rates) clamp(n float64) int {
	most := float64(s.opts.UpTo)
	for i, v := range s.visits {
		if i > 0 && late(v) && late(s.visits[i-1]) && v.Probe.N == s.visits[i-1].Probe.N {
			most = min(most, float64(v.Probe.N)/2)
		}
	}
	return max(s.opts.From, neat(min(most, n)))
}

// neat rounds a rate down to three significant digits.
func neat(n float64) int {
	if n < 1 {
		return 1
	}
	unit := math.Pow(10, max(0, math.Floor(math.Log10(n))-2))
	return int(math.Round(math.Floor(n/unit+1e-9) * unit))
}

// Limit returns what the search has found so far. Without a failure, it is complete only at UpTo.
func (s *Rates) Limit() Limit {
	l := s.claim()
	if l.Kind == metric.CapacityAtLeast && l.Pass < s.opts.UpTo {
		l.Kind = metric.CapacityInterpolated
	}
	if n, name, ok := s.crossing(); ok {
		n = max(n, float64(l.Pass))
		if l.Fail > 0 {
			n = min(n, float64(l.Fail))
		}
		l.Crossing, l.CrossingLow, l.CrossingHigh = n, float64(l.Pass), float64(l.Fail)
		l.Binding = name
	}
	l.AtPass, l.AtFail = s.shown(l.Pass, l.Binding), s.shown(l.Fail, l.Binding)
	return l
}
