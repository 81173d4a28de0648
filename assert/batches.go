package assert

import (
	"fmt"
	"math"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// This file has the rules for batches: the groups, in order of start, into which the window of a
// closed loop is cut. Neighbouring batches resemble each other, and a window has up to five looks.
// So an interval over batches is widened by their autocorrelation, and an early pass must be clear.
//
// The rules were found by simulation of servers with noise that lasts up to three requests, pauses,
// heavy prefills and queues (make characteristics).
//
// Recordings of earlier versions, and the legs of comparisons, have rounds with a pause between
// them. None of these rules applies to them.

const (
	// clearShare is the largest share of its limit at which an estimate passes early.
	clearShare = 0.85
	// mostBatches is the number of batches of a usual window.
	mostBatches = 20
	// fewBatches is the number of batches below which a percentile needs a standard error too.
	fewBatches = 10
	// fewBeyond is the number of requests over a percentile's limit below which their number alone
	// does not show that they come in groups, such as the prefills of one step. It is for at most
	// fewInFlight requests in flight. With more, more of them are in one step.
	fewBeyond   = 20
	fewInFlight = 32
)

// batched reports whether the rounds of the level are batches of one window.
func (e evidence) batched() bool { return e.level.Batches }

// resemblance returns by which factor the requests of a level count as fewer, because neighbouring
// batches resemble each other in one of the given quantities. It is 1 without a quantity.
func (s *subject) resemblance(quantities [][]stat.Ascending) float64 {
	worst := 1.0
	if !s.batched() {
		return worst
	}
	errors := 0.0
	if len(s.level.Rounds) < fewBatches && !s.unfinished() {
		errors = 1
	}
	for _, blocks := range quantities {
		worst = max(worst, stat.Inflation(stat.BlockMeans(blocks), errors))
	}
	return worst
}

// tooFew reports whether the window has too few batches for any verdict on a percentile or mean.
func (e evidence) tooFew() bool { return e.batched() && len(e.level.Rounds) < leastRounds }

// enoughFor returns how many requests a percentile that allows the given share needs so that their
// number alone can certify it. It is 0 for percentiles up to p95, which need no such number, and for
// levels that are not batched.
func (e evidence) enoughFor(share float64) float64 {
	if !e.batched() || share >= 0.05 {
		return 0
	}
	return fewBeyond / share * max(1, float64(e.level.AtOnce())/fewInFlight)
}

// grouped reports whether too few of n observations may be over the limit of a percentile to show
// whether they come in groups. The batches' worst observations must then show it; see the method
// clear.
func (e evidence) grouped(share float64, n int) bool { return float64(n) < e.enoughFor(share) }

// early withdraws a verdict before the planned end of a level, if the rest may well change it: a fail of
// an exact statistic that later requests could mend, and in a window a pass whose estimate is not clear
// of its limit. The first batches often look good by chance: a pause may not have come yet.
func (s *subject) early(v *verdict.Verdict, t *plan.Threshold) {
	rest := s.due - s.n
	switch {
	case !s.unfinished():
		return
	case v.Outcome == verdict.Fail && mends(v, t, rest):
		v.Needs = "needs the rest of the planned requests, which could still mend it"
	case v.Outcome == verdict.Pass && s.batched() && !t.Stat.Exact() && !s.policy.Estimates() && !clearly(v.Value.V, t):
		v.Needs = fmt.Sprintf("needs the rest of the planned requests: before the end, a pass needs an estimate at most %s of the way to its limit", metric.Format(metric.Ratio, clearShare))
	default:
		return
	}
	v.Outcome, v.More = verdict.Inconclusive, rest
}

// forGood reports whether an exact threshold fails, and no further request could mend it. How many are due
// at a probe of a search is not known.
func (s *subject) forGood(v *verdict.Verdict, t *plan.Threshold) bool {
	return v.Outcome == verdict.Fail && t.Stat.Exact() && t.Stat.Kind != metric.Implied && (s.due > 0 || !mends(v, t, math.MaxInt32))
}

// mends reports whether further requests could still mend an exact statistic that fails: all of them
// good, or one that is the smallest or largest.
func mends(v *verdict.Verdict, t *plan.Threshold, further int) bool {
	switch all := float64(v.N + further); t.Stat.Kind {
	case metric.Min:
		return !sample.Upward(t.Op)
	case metric.Max:
		return sample.Upward(t.Op)
	case metric.Observed:
		share := v.Over / all
		if t.Metric.Better != metric.LowerIsBetter {
			share = 1 - share
		}
		return sample.Meets(share, t.Op, t.Limit)
	}
	return false
}

// clearly reports whether an estimate stays at a distance from its limit: at most clearShare of it,
// or at least 1/clearShare of it where more is better. Of a share it compares the shares of bad
// requests.
func clearly(x float64, t *plan.Threshold) bool {
	limit := t.Limit
	switch {
	case t.Metric.Name == "success" || t.Stat.IsShare():
		if t.Metric.Better != metric.LowerIsBetter {
			x, limit = 1-x, 1-limit
		}
		return x <= clearShare*limit
	case sample.Upward(t.Op):
		return limit <= clearShare*x
	}
	return x <= clearShare*limit
}
