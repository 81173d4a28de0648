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
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Options describes a search. The zero value of every field except UpTo is usable.
type Options struct {
	// Over is the kind of load that a level counts; the default is metric.ClosedLoop. The windows of
	// all levels take the same time if it is metric.Users.
	Over metric.LoadKind
	From int // smallest level; 0 means 1
	UpTo int // largest level, at least From
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
		s.ended = fmt.Sprintf("budget: %s left, the next probe takes about %s", round(s.budgetLeft()), round(blocked))
	} else {
		s.ended = s.closed()
	}
	return Probe{}, false
}
