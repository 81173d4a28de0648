package assert

import (
	"fmt"
	"slices"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// opened makes the checks that only levels of a rate need. It adds to the verdict v how many
// requests were in flight.
func (s *subject) opened(v *verdict.Verdict, thresholds []judgedThreshold, invalid objection) {
	if s.level.Kind != metric.OpenLoop {
		return
	}
	if s.level.Cut == metric.CutFull && s.level.Alone() && !slices.ContainsFunc(thresholds, func(t judgedThreshold) bool {
		return t.threshold.Metric.Name == growing && t.Outcome == verdict.Fail
	}) {
		invalid(verdict.CauseInvalid, "the level was given up with too many requests in flight, before it was certain whether the backlog grows: raise max_in_flight")
	}
	if s.level.Stage != nil || !s.level.Alone() {
		return // the number in flight includes requests of other stages or parts
	}
	most := 0
	for _, p := range s.level.Passages() {
		most = max(most, p.Max)
	}
	mean := s.level.Value("in_flight", metric.Steady, nil, nil)
	v.Message += fmt.Sprintf(", with %s in flight on average and %d at most", metric.Format(metric.Count, mean.V), most)
	if len(s.level.Saturation) == 0 {
		v.Note("the largest rate that the server can sustain is not known, so only the backlog can show whether the server sustains this rate")
	}
}

// overrun reports whether a level of a rate counts as measured although no request completed. That
// is so if all requests timed out, the server kept answering, and a required threshold on backlog
// growth fails. overrun then skips the thresholds that have no value, because the level fails
// anyway.
func (s *subject) overrun(thresholds []judgedThreshold) bool {
	grew := slices.ContainsFunc(thresholds, func(t judgedThreshold) bool {
		return t.threshold.Metric.Name == growing && t.Outcome == verdict.Fail && t.Severity != verdict.SeverityWarn
	})
	for _, x := range s.level.MeasuredSamples() {
		grew = grew && x.Failure != nil && (x.Failure.Kind == metric.FailTimeout || x.Failure.Kind == metric.FailUnfinished)
	}
	if !grew || s.level.Cut == metric.CutStalled || !answering(s.level) {
		return false
	}
	for _, t := range thresholds {
		if t.Outcome == verdict.Error && !t.Value.OK {
			t.Outcome, t.Message = verdict.Skipped, "because no request completed and the server does not sustain the rate"
		}
	}
	return true
}

// answering reports whether the server still sent tokens in the last round of a level.
func answering(l *metric.Level) bool {
	last := l.Rounds[len(l.Rounds)-1]
	return slices.ContainsFunc(l.Rounds, func(r *metric.Round) bool {
		return slices.ContainsFunc(r.All(), func(x *metric.Sample) bool { return max(x.First, x.Last) > last.WindowStart })
	})
}
