package assert

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// opened checks what only levels of a rate have. It adds a note if the largest rate is unknown.
func (s *subject) opened(v *Verdict, thresholds []judgedThreshold, invalid objection) {
	if s.level.Kind != metric.OpenLoop {
		return
	}
	if s.level.Cut == metric.CutFull && s.level.Of == "" && !slices.ContainsFunc(thresholds, func(t judgedThreshold) bool {
		return t.threshold.Metric.Name == growing && t.Outcome == Fail
	}) {
		invalid(verdict.CauseInvalid, "given up with too many requests in flight, before the growth of the backlog was certain: raise max_in_flight")
	}
	if s.level.Stage != nil || s.level.Of != "" {
		return // the requests in flight of a stage, or of a part of a mix, are not its own alone
	}
	most := 0
	for _, p := range s.level.Passages() {
		most = max(most, p.Max)
	}
	mean := s.level.Value("in_flight", metric.Steady, nil, nil)
	v.Message += fmt.Sprintf(", %s in flight on average, %d at most", metric.Format(metric.Count, mean.V), most)
	if len(s.level.Saturation) == 0 {
		v.Notes = append(v.Notes, "the largest rate that the server can sustain is not known: the window has no busy period that could show it")
	}
}

// overrun reports whether a level of a rate counts as measured although no request completed. That
// is so if all requests timed out, the server kept answering, and a required threshold on backlog
// growth fails. Other thresholds have no value and are then skipped, because the level fails
// already.
func (s *subject) overrun(thresholds []judgedThreshold) bool {
	grew := slices.ContainsFunc(thresholds, func(t judgedThreshold) bool {
		return t.threshold.Metric.Name == growing && t.Outcome == Fail && t.Severity != verdict.SeverityWarn
	})
	for _, x := range s.level.MeasuredSamples() {
		grew = grew && x.Failure != nil && (x.Failure.Kind == metric.FailTimeout || x.Failure.Kind == metric.FailUnfinished)
	}
	if !grew || s.level.Cut == metric.CutStalled || !answering(s.level) {
		return false
	}
	for _, t := range thresholds {
		if t.Outcome == Error && !t.Value.OK {
			t.Outcome, t.Message = Skipped, "because no request completed: the rate is not sustained"
		}
	}
	return true
}

// answering reports whether tokens still arrived in the last round of a level.
func answering(l *metric.Level) bool {
	last := l.Rounds[len(l.Rounds)-1]
	return slices.ContainsFunc(l.Rounds, func(r *metric.Round) bool {
		return slices.ContainsFunc(r.All(), func(x *metric.Sample) bool { return max(x.First, x.Last) > last.WindowStart })
	})
}

// A rate also requires that the server keeps up with it. There are two kinds of evidence. The first
// is the backlog of the level itself: its growth may certainly be below or above the limit. The
// backlog comes first, because a server may lose throughput when its queue is never empty. The
// second is the saturation, which shows the largest rate. A rate certainly below the largest rate
// is sustained. A rate certainly above it is not, unless the server was faster at this level than
// when saturated.

// sustained judges the growth of the backlog, which shows whether the server sustains a rate.
func (s *subject) sustained(v *Verdict, t *plan.Threshold) {
	g, ok := s.level.Growth()
	if !ok || math.IsNaN(g.Share) || math.IsNaN(g.Error) {
		noValue(v, t, t.Metric.NoValue)
		return
	}
	x := s.bounded(g)
	v.N, v.Value, v.Low, v.High = g.Arrivals, metric.Some(g.Share), metric.Some(x.low), metric.Some(x.high)
	v.Message = fmt.Sprintf("%s of %s: %s", compared(t, v.Value), verdict.Count(g.Arrivals, "requests"), s.bounds(v, metric.Ratio))
	if g.Lost > 0 {
		v.Message += fmt.Sprintf("; %s timed out and are still in the backlog", verdict.Count(g.Lost, "requests"))
	}
	if x.known {
		v.Message += fmt.Sprintf("; the largest rate that the server can sustain is %s, and certainly at least %s", metric.Format(metric.PerSecond, x.most), metric.Format(metric.PerSecond, x.least))
	}
	switch {
	case s.level.Cut == metric.CutStalled:
		v.Outcome = Fail
		v.Message = "not sustained: the server stopped answering; " + v.Message
	case s.policy.Decide == plan.Estimate:
		estimated(v, sample.Meets(g.Share, t.Op, t.Limit))
	case sample.Meets(x.high, t.Op, t.Limit) && !x.over:
		v.Outcome = Pass
		v.Message = "sustained, as the backlog shows: " + v.Message
	case !sample.Meets(x.low, t.Op, t.Limit):
		v.Outcome = Fail
		v.Message = "not sustained, as the backlog shows: " + v.Message
	case x.below && !x.slowed(t) && s.level.Cut == "" && sample.Meets(float64(g.Lost)/float64(g.Arrivals), t.Op, t.Limit):
		v.Outcome = Pass
		v.Message = "sustained, because the rate is below the largest rate that the server can sustain: " + v.Message
		if !sample.Meets(g.Share, t.Op, t.Limit) {
			v.Value = metric.None("the backlog grew by more than the limit, by chance or because the server was filling up; this decides nothing, because the rate is below the largest rate that the server can sustain")
		}
	case x.over && !sample.Meets(g.Share, t.Op, t.Limit):
		v.Outcome = Fail
		v.Message = "not sustained, because requests arrive faster than the server can sustain: " + v.Message
	default:
		v.Outcome = Inconclusive
		v.Notes = append(v.Notes, x.unclear(s.level, t, g)...)
		// The fluctuation of a stable backlog does not grow with the window.
		v.Needs, v.More = s.more((max(g.Share, 0) + x.half) * float64(g.Arrivals) / t.Limit)
	}
}

// grown holds the growth of a backlog, and what the saturation shows about it.
type grown struct {
	low, high, half float64
	most, least     float64 // the largest rate and its lower bound, if known
	beyond          float64 // growth beyond chance, with what fills the server up
	known           bool
	below           bool // it is certain that requests arrive more slowly than at the largest rate
	over            bool // the rate is certainly above the largest rate, and the server was no faster than when saturated
	slower          bool // the saturated server answered more requests with as many in flight
	fills           bool // no more requests are in flight than the server answers at the same time
}

func (s *subject) bounded(g metric.Growth) (x grown) {
	above := 0.0
	x.most, x.least, above, x.known = largest(s.level, s.alpha)
	x.half = stat.NormalQuantile(1-s.alpha) * g.Error
	x.low, x.high = g.Share-x.half, g.Share+x.half
	if !x.known {
		return x
	}
	x.below = s.level.Rate < x.least
	// Above the largest rate the backlog may stay constant by chance, if fewer requests arrive. So
	// the server's answers are compared as well.
	x.over = s.level.Rate > above && answered(s.level) <= above
	x.fills = s.level.Rate < above && float64(g.End) <= s.level.SaturationAt
	if x.fills { // no queue is needed for so few requests in flight
		x.low = min(x.low, 0)
	}
	if x.below {
		// Near the largest rate a backlog moves like a random walk with a step at each arrival. It
		// varies more than its distance from its own line shows. What fills the server up is taken
		// off first.
		chance := stat.NormalQuantile(1-s.alpha) * math.Sqrt((s.scatter()+0.5)/float64(g.Arrivals))
		x.low = min(x.low, queued(s.level)-chance)
		x.beyond = g.Share - max(x.half, chance)
		// With fewer requests in flight a server answers at least as large a share of its largest rate.
		x.slower = answered(s.level)*s.level.SaturationAt < x.least*min(float64(g.End), s.level.SaturationAt)
	}
	return x
}

// slowed reports whether the backlog certainly grew by more than the limit, and not only because the
// server was filling up.
func (x grown) slowed(t *plan.Threshold) bool {
	return x.slower && !sample.Meets(x.beyond, t.Op, t.Limit)
}

// unclear returns notes on why neither the backlog nor the saturation decides.
func (x grown) unclear(l *metric.Level, t *plan.Threshold, g metric.Growth) []string {
	if x.over {
		return []string{"the rate is above the largest rate that the server can sustain, but by chance fewer requests arrived"}
	}
	notes := []string{fmt.Sprintf("these requests could have certified a growth below %s", metric.Format(metric.Ratio, max(x.high, 0)))}
	if x.slowed(t) {
		notes = append(notes, "the rate is below the largest rate, but the backlog grew by more than chance explains, and the server answered a smaller share of its largest rate than the share of its slots that was taken at the end")
	} else if x.fills {
		notes = append(notes, fmt.Sprintf("%d requests in the backlog at the end need not be a queue: the server, when saturated, answered %.0f at once", g.End, l.SaturationAt))
	}
	return notes
}

// queued is the part of a backlog's growth that must be a queue, as a share of the arrivals:
// requests that timed out, and requests in flight beyond the number that the server answered at the
// same time when saturated.
func queued(l *metric.Level) float64 {
	grew, arrivals := 0.0, 0
	for _, p := range l.Passages() {
		grew += float64(p.Lost) + max(float64(p.End), l.SaturationAt) - max(float64(p.Begin), l.SaturationAt)
		arrivals += p.Arrivals
	}
	return grew / float64(arrivals)
}

// answered returns how many requests per second ended during a rate, not counting those that timed
// out.
func answered(l *metric.Level) float64 {
	n, length := 0, time.Duration(0)
	for _, p := range l.Passages() {
		n += p.Arrivals - (p.End + p.Lost - p.Begin)
		length += p.To - p.From
	}
	return float64(n) / length.Seconds()
}

// recovered judges how long after the start of a stage requests are good again. It takes the
// longest time over all passes of the schedule. The result is exact for these passes and says
// nothing about others.
func (s *subject) recovered(v *Verdict, t *plan.Threshold) {
	good := sample.Good(s.workload)
	if good == nil {
		good = s.goodBySLA()
	}
	worst, never := 0.0, 0
	for _, r := range s.level.Rounds {
		x := r.Recovery(good)
		if !x.OK {
			never++
		}
		worst = max(worst, x.V)
	}
	v.N, v.Value = len(s.level.Rounds), metric.Some(worst)
	v.Message = fmt.Sprintf("%s, the longest of %s", compared(t, v.Value), verdict.Count(v.N, "passes"))
	if never > 0 {
		v.Value = metric.Some(math.Inf(1))
		v.Message = fmt.Sprintf("requests were not good again in %d of %s", never, verdict.Count(v.N, "passes"))
	}
	v.Notes = append(v.Notes, "exact for the passes of this run; it says nothing about other passes")
	decided(v, never == 0 && v.N > 0 && sample.Meets(worst, t.Op, t.Limit))
}

// goodBySLA returns the rule for a good request if the workload has no good block. A good request
// meets every threshold of the level that applies to single requests.
func (s *subject) goodBySLA() func(*metric.Sample) bool {
	var bounds []*plan.Threshold
	for _, sla := range s.workload.SLAs {
		for _, t := range sla.Thresholds {
			if slices.Contains(sla.At, s.level.Name) && t.Metric.Scope == metric.PerRequest {
				bounds = append(bounds, t)
			}
		}
	}
	return func(x *metric.Sample) bool {
		return !slices.ContainsFunc(bounds, func(t *plan.Threshold) bool {
			value, ok := x.Value(t.Metric.Name)
			return !ok || !sample.Meets(value, t.Op, t.Limit)
		})
	}
}
