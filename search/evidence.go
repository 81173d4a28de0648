package search

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// evidence is what the probes of a search have shown so far. The claims of both kinds of search
// follow from it: while the search runs, and when a recording is judged again.
type evidence struct {
	opts    Options
	levels  []*level // measured levels within [From, UpTo], by ascending n
	visits  []Visit
	pending *Probe
	spent   time.Duration
	ceiling int    // lowest level that cannot be measured
	cause   cause  // why
	vague   bool   // the level just below the ceiling may be impossible to measure too
	why     string // in words
	ended   string // why the search ended; "" while it runs
	notes   []string
}

// level holds what the search knows about one level.
type level struct {
	n         int
	stands    metric.Outcome // outcome of the level after its latest samples; see evidence.stand
	by        int            // index of the visit that decided it
	have      int            // requests of set 0
	needs     int            // of set 0
	sets      int
	spent     time.Duration // time to the first decision; a confirmation takes about as long
	saturated bool          // the generator was saturated once at this level
	retry     bool          // measure the level once more, because the generator was saturated
	retried   bool
	confirmed bool
	tried     bool // a confirmation was made
	fresh     bool // a probe certified the level, or tried to; see Search.certify
}

// cause is the reason why levels at and above the ceiling cannot be measured.
type cause int

const (
	byUpTo cause = iota
	byGenerator
	byServer
)

// gather begins with the results of the levels that were measured before the search.
func gather(opts Options) evidence {
	s := evidence{opts: opts, ceiling: opts.UpTo + 1}
	for _, r := range opts.Known {
		s.Take(Probe{N: r.N, Purpose: Known}, r)
	}
	return s
}

// Report takes the result of the probe that Next returned. It panics on the result of another
// probe.
func (s *evidence) Report(p Probe, r Result) {
	if s.pending == nil || p.N != s.pending.N || p.Set != s.pending.Set || r.N != p.N || r.Outcome == metric.Pending {
		panic(fmt.Sprintf("search: result %s at %d was not asked for", r.Outcome, r.N))
	}
	s.pending = nil
	s.spent += r.Spent
	s.Take(p, r)
}

// Stop ends the search with a reason. Certified results stay. A probe without a result is dropped.
func (s *evidence) Stop(reason string) {
	s.pending = nil
	if s.ended == "" {
		s.ended = reason
	}
}

// Take records the result r of the probe p, and sets the outcome of the probe's level. A search
// that runs takes results by Report. Take also takes those of a recorded search, judged again, so
// its probes may have results with which the search would have chosen others.
func (s *evidence) Take(p Probe, r Result) {
	r.Margins = finite(r.Margins)
	s.visits = append(s.visits, Visit{Probe: p, Result: r})
	if r.N < s.opts.From || r.N > s.opts.UpTo || p.Purpose == Estimate {
		return // levels outside the search's range, known from earlier, only help to predict times
	}
	l := s.at(r.N)
	l.sets = max(l.sets, p.Set+1)
	l.retried = l.retried || p.Purpose == Retry
	l.tried = l.tried || p.Purpose == Confirm
	l.retry = false
	if len(p.Looks) > 0 && p.Purpose != Retry && p.Purpose != Confirm {
		// A planned look counts as used up, even if the level had fewer requests than planned.
		l.have = max(l.have, p.Looks[len(p.Looks)-1])
	}
	if p.Purpose == Certify {
		// It begins a new set of samples. The level's earlier set is not extended.
		l.fresh, l.have, l.spent = true, math.MaxInt, 0
	}
	switch r.Outcome {
	case metric.Saturated:
		if once := !l.saturated; once && (p.Set == 0 || p.Purpose == Confirm) {
			// The generator may have been saturated by chance, because its machine was busy. So
			// measure the level once more.
			l.saturated, l.retry = true, p.Set == 0
			l.tried = l.tried && p.Purpose != Confirm
			return
		}
		l.unmeasured(metric.Saturated, p.Set == 0 || p.Purpose == Again)
		s.lower(r.N, byGenerator, r)
		return
	case metric.Capped:
		l.unmeasured(metric.Capped, p.Set == 0)
		s.lower(r.N, byServer, r)
		return
	case metric.Pass:
		// A level that was known before the search may pass above the ceiling. Then raise the
		// ceiling above it.
		s.ceiling = max(s.ceiling, r.N+1)
	}
	s.stand(l, p, r)
}

// stand updates the verdict on a level after a probe of that level. Only a retry takes a failure
// back: it was made to settle a contradiction. Anything but a pass takes a pass back. A confirmation
// makes no pass of a level that did not pass before.
func (s *evidence) stand(l *level, p Probe, r Result) {
	switch p.Purpose {
	case Retry, Confirm:
	case Certify, deep:
		l.spent += r.Spent
	default:
		l.needs = r.Needs
		l.have = max(l.have, r.Requests)
		l.spent += r.Spent
	}
	switch {
	case p.Purpose == Retry && r.Outcome == metric.Inconclusive,
		p.Purpose != Retry && l.stands == metric.Fail,
		p.Purpose == Confirm && l.stands != metric.Pass && r.Outcome == metric.Pass:
		return
	case p.Purpose == Retry && r.Outcome != l.stands:
		s.note("%s %s first, but %s on fresh requests", s.label(l.n), pastTense(l.stands), pastTense(r.Outcome))
	case p.Purpose == Confirm && r.Outcome != l.stands:
		l.have = math.MaxInt // so that later probes do not extend the first samples
		s.note("%s %s first, but %s on fresh requests, so a smaller load was tried", s.label(l.n), pastTense(l.stands), pastTense(r.Outcome))
	}
	l.confirmed = r.Outcome == metric.Pass && (l.confirmed || p.Purpose == Confirm)
	l.stands, l.by = r.Outcome, len(s.visits)-1
}

// unmeasured gives a level the outcome of samples that do not show what the server sustains. If
// they are fresh ones of a level that has a verdict, the verdict stays, and a failure always does.
func (l *level) unmeasured(o metric.Outcome, first bool) {
	if first && l.stands != metric.Fail {
		l.stands = o
	}
}

// lower moves the ceiling down. The ceiling is the lowest level that cannot be measured, because of
// the load generator or the server.
func (s *evidence) lower(n int, by cause, r Result) {
	top := n
	known := by == byServer && r.Cap > 0 && r.Cap < n
	if known {
		top = r.Cap + 1 // the server admits Cap requests, so level Cap can be measured
	}
	for _, l := range s.levels {
		if l.stands == metric.Pass {
			top = max(top, l.n+1) // a level that passed can surely be measured
		}
	}
	if top >= s.ceiling {
		return
	}
	s.ceiling, s.cause, s.vague = top, by, !known
	switch {
	case by == byGenerator:
		s.why = "the generator was saturated at " + s.label(n)
	case r.Cap > 0:
		s.why = fmt.Sprintf("the server admitted %d of %s", r.Cap, s.label(n))
	default:
		s.why = "the server did not admit all of " + s.label(n)
	}
	if r.Note != "" {
		s.why += ": " + r.Note
	}
}

func (s *evidence) at(n int) *level {
	i, found := slices.BinarySearchFunc(s.levels, n, func(l *level, n int) int { return l.n - n })
	if !found {
		s.levels = slices.Insert(s.levels, i, &level{n: n})
	}
	return s.levels[i]
}

func (s *evidence) find(n int) *level {
	for _, l := range s.levels {
		if l.n == n {
			return l
		}
	}
	return nil
}

// bounds returns the largest level that is certified to pass, below every level that fails, and the
// smallest level that is certified to fail. Each is 0 if no such level is known.
func (s *evidence) bounds() (pass, fail int) {
	for _, l := range s.levels {
		switch l.stands {
		case metric.Pass:
			pass = l.n
		case metric.Fail:
			return pass, l.n
		}
	}
	return pass, 0
}

// resolution returns the largest distance U − L at which the search ends. U is a failing level, and
// L, given as pass, is a passing level.
func (s *evidence) resolution(pass int) int {
	return max(s.opts.Resolution, int(math.Ceil(s.opts.Relative*float64(pass))))
}

func (s *evidence) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

func pastTense(o metric.Outcome) string {
	switch o {
	case metric.Pass:
		return "passed"
	case metric.Fail:
		return "failed"
	}
	return "was " + o.String()
}

// finite removes margins that are not numbers, and limits all others to ±MaxLog.
func finite(ms []Margin) []Margin {
	var out []Margin
	for _, m := range ms {
		if math.IsNaN(m.Log) {
			continue
		}
		if m.Low == m.High || math.IsNaN(m.Low) || math.IsNaN(m.High) {
			m.Low, m.High = m.Log, m.Log
		}
		m.Log, m.Low, m.High = clamp(m.Log), clamp(m.Low), clamp(m.High)
		out = append(out, m)
	}
	return out
}

func clamp(x float64) float64 { return max(-MaxLog, min(MaxLog, x)) }

func round(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Minute:
		return d.Round(time.Minute)
	case d >= 10*time.Second:
		return d.Round(time.Second)
	}
	return d.Round(100 * time.Millisecond)
}

func (s *evidence) label(n int) string {
	return (&metric.Capacity{Over: s.opts.Over, Step: s.opts.Step}).Named(n)
}
