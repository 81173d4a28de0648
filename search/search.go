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
//     A level beside an inconclusive one is not measured: it would stay inconclusive too.
//  4. If more than L is likely to pass, a level clearly below the estimated limit is certified
//     with many more samples, all fresh: at 0.8 of it, else at 0.65, else at 0.5.
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
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Search is a running search. Its methods are not safe for concurrent use.
type Search struct{ evidence }

// New starts a search. It panics on contradictory options, which a checked plan
// cannot contain.
func New(opts Options) *Search {
	if opts.Over == "" {
		opts.Over = metric.ClosedLoop
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
	return &Search{gather(opts)}
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
		s.ended = fmt.Sprintf("budget: %s left, the next probe takes about %s", round(max(s.budgetLeft(), 0)), round(blocked))
	} else {
		s.ended = s.closed()
	}
	return Probe{}, false
}
