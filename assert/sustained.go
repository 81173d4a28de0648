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

// There are three kinds of evidence that a server keeps up with a rate.
//
// The first is the growth of the backlog at this level, which may certainly be below or above the
// limit. It decides first, because a server may lose throughput when its queue is never empty.
//
// The second is the largest rate that the server can sustain, which was measured with a full queue
// (saturation) before the level. A rate certainly below it is sustained if the backlog hardly grew.
// A rate certainly above it is not, unless the server was faster at this level.
//
// The third is a saturation after the level. It decides where the rate is below the largest one,
// and yet the backlog grew, by chance or because the server has become slower since.

// evidenced is what decides whether a level sustains its rate, in words.
type evidenced struct {
	outcome verdict.Outcome
	words   string
}

var (
	undecided  = evidenced{verdict.Inconclusive, ""}
	stalled    = evidenced{verdict.Fail, "not sustained, because the server stopped answering"}
	grewLittle = evidenced{verdict.Pass, "sustained, because the backlog grew less than allowed"}
	grewMuch   = evidenced{verdict.Fail, "not sustained, because the backlog grew more than allowed"}
	// The backlog hardly grew.
	below = evidenced{verdict.Pass, "sustained, because the rate is below the largest rate that the server can sustain"}
	// The backlog grew.
	above       = evidenced{verdict.Fail, "not sustained, because requests arrive faster than the server can sustain"}
	belowStill  = evidenced{verdict.Pass, "sustained, because the rate is below the largest rate that the server can sustain, before the level and after it"}
	belowBefore = evidenced{verdict.Fail, "not sustained, because the server became slower: saturated again after the level, it certainly did not reach the rate"}
	notFollowed = evidenced{verdict.Inconclusive, "unclear, because the backlog grew although the rate is below the largest rate that was measured before the level"}
	followed    = evidenced{verdict.Inconclusive, "unclear, because the backlog grew, and a saturation after the level does not show whether the server still sustains the rate"}
	unrecovered = evidenced{verdict.Inconclusive, "unclear, because the level began while the server was still busy with the saturation before it, so that saturation certifies nothing"}
)

const (
	// hardly is the share of the limit up to which a backlog hardly grew.
	hardly = 0.5
	// afterError is the error at which a saturation after the level shows that the rate is no longer
	// sustained. It is small, because slow noise makes the parts of a saturation alike.
	afterError = 0.005
)

// decides returns what decides whether the level sustains its rate. The threshold t bounds the
// growth of the backlog.
func (s *subject) decides(t *plan.Threshold, g metric.Growth, x grown) evidenced {
	meets := func(growth float64) bool { return sample.Meets(growth, t.Op, t.Limit) }
	switch {
	case s.level.Cut == metric.CutStalled:
		return stalled
	case meets(x.high) && !x.over:
		return grewLittle
	case !meets(x.low):
		return grewMuch
	case x.below && !x.slowed(t) && s.level.Cut == "" && meets(float64(g.Lost)/float64(g.Arrivals)):
		return s.belowLargest(sample.Meets(g.Share, t.Op, hardly*t.Limit))
	case x.over && !meets(g.Share):
		return above
	}
	return undecided
}

// belowLargest returns what decides at a rate below the largest rate before the level. quiet means
// that the backlog hardly grew.
func (s *subject) belowLargest(quiet bool) evidenced {
	mean, _, _, ok := largest(s.level.After, s.alpha)
	_, _, most, _ := largest(s.level.After, afterError)
	switch {
	case s.level.Unrecovered:
		return unrecovered
	case quiet:
		return below
	case !ok:
		return notFollowed
	case mean > s.level.Rate:
		return belowStill
	case most < s.level.Rate:
		return belowBefore
	}
	return followed
}

// awaits reports whether a saturation after the level may certify its rate, and there is none yet.
func (s *subject) awaits(t *plan.Threshold) bool {
	g, ok := s.growth()
	return ok && t.Metric.Name == growing && !s.policy.Estimates() && s.decides(t, g, s.bounded(g)) == notFollowed
}

func (s *subject) growth() (g metric.Growth, ok bool) {
	g, ok = s.level.Growth()
	return g, ok && !math.IsNaN(g.Share) && !math.IsNaN(g.Error)
}

// sustained judges the growth of the backlog, which shows whether the server sustains a rate.
func (s *subject) sustained(v *verdict.Verdict, t *plan.Threshold) {
	g, ok := s.growth()
	if !ok {
		noValue(v, t, t.Metric.NoValue)
		return
	}
	x := s.bounded(g)
	v.N, v.Value, v.Low, v.High = g.Arrivals, metric.Some(g.Share), metric.Some(x.low), metric.Some(x.high)
	v.Message = fmt.Sprintf("%s of %s: %s", compared(t, v.Value), verdict.Count(g.Arrivals, "requests"), s.bounds(v, metric.Ratio))
	if g.Lost > 0 {
		v.Message += fmt.Sprintf("; the backlog includes %s that timed out", verdict.Count(g.Lost, "requests"))
	}
	if x.known {
		v.Message += fmt.Sprintf("; the largest rate that the server can sustain is about %s, and it is certified to be at least %s", metric.Format(metric.PerSecond, x.most), metric.Format(metric.PerSecond, x.least))
	}
	v.Note(s.slowerAfter()...)
	why := s.decides(t, g, x)
	if why != stalled && s.estimated(v, sample.Meets(g.Share, t.Op, t.Limit)) {
		return
	}
	v.Outcome = why.outcome
	if why.words != "" {
		v.Message = why.words + ": " + v.Message
	}
	switch {
	case why == belowStill && !sample.Meets(g.Share, t.Op, t.Limit):
		v.Value = metric.None("the backlog grew by more than the limit, by chance or because the server was filling up; this growth decides nothing, because the rate is below the largest rate that the server can sustain, also after the level")
	case why == notFollowed:
		v.Needs, v.More = "needs a saturation right after the level, which shows whether the server still sustains the rate", -1
	case v.Outcome == verdict.Inconclusive:
		v.Note(x.unclear(s.level, t, g)...)
		// Suggest a longer window: the fluctuation of a stable backlog does not grow with the
		// window.
		v.Needs, v.More = s.shortfall((max(g.Share, 0) + x.half) * float64(g.Arrivals) / t.Limit)
		if x.over && sample.Meets(1-x.most/s.level.Rate, t.Op, t.Limit) { // even in a long window, the growth meets the limit
			v.Needs, v.More = s.lowerRate(), -1
		}
	}
}

// slowerAfter returns a note if a saturation after the level was certainly slower than the one
// before it.
func (s *subject) slowerAfter() []string {
	before, _, _, ok1 := largest(s.level.Saturation, s.alpha)
	after, _, _, ok2 := largest(s.level.After, s.alpha)
	if _, _, high, ok := stat.Welch(s.level.Saturation, s.level.After, s.alpha); !ok1 || !ok2 || !ok || high >= 0 {
		return nil
	}
	return []string{fmt.Sprintf("the server became slower: saturated before the level it sustained about %s, and after it %s", metric.Format(metric.PerSecond, before), metric.Format(metric.PerSecond, after))}
}
