// Package search finds the capacity limit: the largest level at which every threshold still holds.
// A level is a load, such as the number of requests in flight. The package is a state machine. From
// the results so far it decides which level to measure next, and what may be claimed.
//
//  1. A required level is decided first.
//  2. A ladder finds a level that certainly passes and a higher level that certainly
//     fails. It doubles the level, or begins near the last known limit.
//  3. Bisection narrows the bracket between the largest certified pass L and the smallest
//     certified fail U. An inconclusive level is extended if more requests can decide it.
//     Otherwise the search goes on below it and above it.
//  4. If the inconclusive levels that remain are far apart, one of them is measured again
//     with many more samples: the highest level that may then pass, or else the lowest
//     level that may then fail.
//  5. The ladder skips levels. In the widest stretch that it skipped below L, one level
//     is measured. If that level fails, latency does not always grow with the load.
//  6. L is measured again on fresh samples. If it does not pass again, L is lowered to the
//     next certified pass.
//
// Step 6 corrects for chance. Each of the levels just above the true limit may pass by chance with
// probability α. Twice, on samples that share no request, it passes with probability α².
package search

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Over is the unit of a level.
type Over string

const (
	Concurrency Over = "concurrency" // requests in flight in a closed loop
	Burst       Over = "burst"       // requests sent at once, to find the largest safe queue
	// Users are simulated people who think between requests. The windows of all levels take the
	// same time.
	Users Over = "users"
	// Rate is an arrival rate: N counts steps of Options.Step requests per second.
	Rate Over = "rate"
	// Speedup is the factor by which recorded traffic is replayed faster.
	Speedup Over = "speedup"
)

// Options describes a search. The zero value of every field except UpTo is usable.
type Options struct {
	Over Over // default Concurrency
	From int  // smallest level; 0 means 1
	UpTo int  // largest level, at least From
	// Step is the size of one level in units of Over; 0 means 1. The search itself counts in
	// levels.
	Step float64
	// Resolution is the largest distance U − L, in levels, at which the limit counts as exact; 0
	// means 1. U is a level that fails, and L is a level that passes. Relative is this distance as
	// a share of L, in [0, 1). The larger of the two distances counts.
	Resolution int
	Relative   float64
	// Require is the level that the gate requires; 0 if none.
	Require int
	// Budget is the time limit of all probes together; 0 means none.
	Budget time.Duration
	// Begin is the first level of the ladder; if it is 0, the ladder begins at From. It is not used
	// if Start is set. Levels near 1 take longest and are rarely the limit, so a higher Begin saves
	// time. The ladder goes below it only if it must.
	Begin int
	// Start is the last known limit, where the search begins; 0 if there is none.
	Start int
	// Confirm means that the search ends by measuring the highest level that passes once more, on
	// new samples.
	Confirm bool
	// Looks returns the numbers of requests at which level n may be judged, in ascending order.
	// They are planned in advance and share the allowed error, even if the search skips some. nil
	// means Doubling(200, 800).
	Looks func(n int) []int
	// First is the number of looks that the first probe of a level may use; 0 means all but the
	// last. The later looks are used when the level is extended.
	First int
	// Deep returns the looks of a deep probe of level n, in ascending order. They have more
	// requests than those of Looks. If Deep is nil or returns no looks, there is no deep probe.
	Deep func(n int) []int
	// Known holds results of levels that were measured before the search, such as the workload's
	// fixed levels. They count as probes and cost nothing. An inconclusive level may still be
	// extended.
	Known []Result
}

// Doubling plans looks (early judgements). The first is after the number first of requests, each
// further one after twice as many. The last is after the number most. Doubling(400, 1600) plans
// looks after 400, 800 and 1600 requests.
func Doubling(first, most int) func(int) []int {
	if first < 1 || most < first {
		panic("search: Doubling needs 1 <= first <= most")
	}
	var looks []int
	for k := first; k < most; k *= 2 {
		looks = append(looks, k)
	}
	looks = append(looks, most)
	return func(int) []int { return slices.Clone(looks) }
}

// Halving plans looks (early judgements). The last is after the number most of requests, each
// earlier one after half as many, but never after fewer than the number least. Halving(5000, 40000)
// plans looks after 5000, 10000, 20000 and 40000 requests.
func Halving(least, most int) []int {
	looks := []int{most}
	for k := most / 2; k >= least; k /= 2 {
		looks = append(looks, k)
	}
	slices.Reverse(looks)
	return looks
}

// level holds what the search knows about one level.
type level struct {
	n         int
	stands    Outcome // outcome of the level after its latest samples; see Search.take
	have      int     // requests of set 0
	needs     int     // of set 0
	sets      int
	spent     time.Duration // time to the first decision; a confirmation takes about as long
	saturated bool          // the generator was saturated once at this level
	retry     bool          // measure the level once more, because the generator was saturated
	retried   bool
	confirmed bool
	tried     bool  // a confirmation was made
	deep      *deep // the level's deep probes; nil if there are none
}

// Search is a running search. Its methods are not safe for concurrent use.
type Search struct {
	opts    Options
	levels  []*level // measured levels within [From, UpTo], by ascending n
	visits  []Visit
	pending *Probe
	spent   time.Duration
	ceiling int    // lowest level that cannot be measured
	cause   cause  // why
	vague   bool   // the level just below the ceiling may be impossible to measure too
	why     string // in words
	checked bool
	ended   string // why the search ended; "" while it runs
	notes   []string
}

// cause is the reason why levels at and above the ceiling cannot be measured.
type cause int

const (
	byUpTo cause = iota
	byGenerator
	byServer
)

// New starts a search. It panics on contradictory options, which a checked plan
// cannot contain.
func New(opts Options) *Search {
	if opts.Over == "" {
		opts.Over = Concurrency
	}
	if opts.From == 0 {
		opts.From = 1
	}
	if opts.Begin == 0 {
		opts.Begin = opts.From
	}
	if opts.Step == 0 {
		opts.Step = 1
	}
	if opts.Resolution == 0 {
		opts.Resolution = 1
	}
	if opts.Looks == nil {
		opts.Looks = Doubling(200, 800)
	}
	switch {
	case opts.From < 1 || opts.UpTo < opts.From:
		panic(fmt.Sprintf("search: no level from %d up to %d", opts.From, opts.UpTo))
	case opts.Resolution < 1 || !(opts.Relative >= 0 && opts.Relative < 1):
		panic("search: resolution below 1, or relative resolution outside [0, 1)")
	case opts.Budget < 0 || opts.Require < 0 || opts.Begin < 0 || opts.Start < 0 || opts.First < 0 || opts.Step < 0:
		panic("search: negative option")
	}
	s := &Search{opts: opts, ceiling: opts.UpTo + 1}
	for _, r := range opts.Known {
		s.take(Probe{N: r.N, Purpose: Known}, r)
	}
	return s
}

// Next returns the probe that must be made next. It returns false when the search has ended. Until
// the probe's result is reported, it returns the same probe again.
func (s *Search) Next() (Probe, bool) {
	if s.pending != nil {
		return *s.pending, true
	}
	if s.ended != "" {
		return Probe{}, false
	}
	var blocked time.Duration // time that the most important probe needs; 0 if there is enough
	for want := range s.wants() {
		p, need, ok := s.fit(want)
		if ok {
			s.pending = &p
			return p, true
		}
		if blocked == 0 {
			blocked = need
		}
	}
	if blocked > 0 {
		s.ended = fmt.Sprintf("budget: %s left, the next probe takes about %s", round(s.budgetLeft()), round(blocked))
	} else {
		s.ended = s.closed()
	}
	return Probe{}, false
}

// Report takes the result of the probe that Next returned. It panics on the result of another
// probe.
func (s *Search) Report(p Probe, r Result) {
	if s.pending == nil || p.N != s.pending.N || p.Set != s.pending.Set || r.N != p.N || r.Outcome == Pending {
		panic(fmt.Sprintf("search: result %s at %d was not asked for", r.Outcome, r.N))
	}
	s.pending = nil
	s.spent += r.Spent
	s.take(p, r)
}

// Stop ends the search with a reason. Certified results stay. A probe without a result is dropped.
func (s *Search) Stop(reason string) {
	s.pending = nil
	if s.ended == "" {
		s.ended = reason
	}
}

// take records the result r of the probe p, and sets the outcome of the probe's level.
func (s *Search) take(p Probe, r Result) {
	r.Margins = finite(r.Margins)
	s.visits = append(s.visits, Visit{Probe: p, Result: r})
	if r.N < s.opts.From || r.N > s.opts.UpTo {
		return // levels outside the search's range, known from earlier, only help to predict times
	}
	l := s.at(r.N)
	l.sets = max(l.sets, p.Set+1)
	l.retried = l.retried || p.Purpose == Retry
	l.tried = l.tried || p.Purpose == Confirm
	l.retry = false
	s.checked = s.checked || p.Purpose == Check
	if p.Purpose == Deep {
		if l.deep == nil {
			// A deep probe begins a new, larger set of samples. The level's earlier set is not
			// extended.
			l.deep = &deep{set: p.Set}
			l.have, l.spent = math.MaxInt, 0
		}
		l.deep.have = max(r.Requests, p.Looks[len(p.Looks)-1])
	}
	switch r.Outcome {
	case Saturated:
		if once := !l.saturated; once && (p.Set == 0 || p.Purpose == Confirm) {
			// The generator may have been saturated by chance, because its machine was busy. So
			// measure the level once more.
			l.saturated, l.retry = true, p.Set == 0
			l.tried = l.tried && p.Purpose != Confirm
			return
		}
		if p.Set == 0 || p.Purpose == Again {
			l.stands = Saturated
		}
		s.lower(r.N, byGenerator, r)
		return
	case Capped:
		if p.Set == 0 {
			l.stands = Capped
		}
		s.lower(r.N, byServer, r)
		return
	case Pass:
		// A level that was known before the search may pass above the ceiling. Then raise the
		// ceiling above it.
		s.ceiling = max(s.ceiling, r.N+1)
	}
	s.stand(l, p, r)
}

// lower moves the ceiling down. The ceiling is the lowest level that cannot be measured, because of
// the load generator or the server.
func (s *Search) lower(n int, by cause, r Result) {
	top := n
	known := by == byServer && r.Cap > 0 && r.Cap < n
	if known {
		top = r.Cap + 1 // the server admits Cap requests, so level Cap can be measured
	}
	for _, l := range s.levels {
		if l.stands == Pass {
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

func (s *Search) at(n int) *level {
	i, found := slices.BinarySearchFunc(s.levels, n, func(l *level, n int) int { return l.n - n })
	if !found {
		s.levels = slices.Insert(s.levels, i, &level{n: n})
	}
	return s.levels[i]
}

func (s *Search) find(n int) *level {
	for _, l := range s.levels {
		if l.n == n {
			return l
		}
	}
	return nil
}

// bounds returns the largest level that is certified to pass, below every level that fails, and the
// smallest level that is certified to fail. Each is 0 if no such level is known.
func (s *Search) bounds() (pass, fail int) {
	for _, l := range s.levels {
		switch l.stands {
		case Pass:
			pass = l.n
		case Fail:
			return pass, l.n
		}
	}
	return pass, 0
}

// resolution returns the largest distance U − L at which the search ends. U is a failing level, and
// L, given as pass, is a passing level.
func (s *Search) resolution(pass int) int {
	return max(s.opts.Resolution, int(math.Ceil(s.opts.Relative*float64(pass))))
}

func (s *Search) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

func pastTense(o Outcome) string {
	switch o {
	case Pass:
		return "passed"
	case Fail:
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

// round shortens a duration for people.
func round(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Minute:
		return d.Round(time.Minute)
	case d >= 10*time.Second:
		return d.Round(time.Second)
	}
	return d.Round(100 * time.Millisecond)
}
