package search

import (
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
	// Certify returns the looks of a probe that certifies level n, in ascending order. The last has
	// more requests than those of Looks. If Certify is nil, there is no such probe.
	Certify func(n int) []int
	// Known holds results of levels that were measured before the search, such as the workload's
	// fixed levels. They count as probes and cost nothing. An inconclusive level may still be
	// extended.
	Known []Result
}

// Doubling plans looks. The first is after the number first of requests, each further one after
// twice as many. The last is after the number most. Doubling(400, 1600) plans looks after 400, 800
// and 1600 requests.
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
