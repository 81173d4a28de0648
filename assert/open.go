package assert

import (
	"fmt"
	"slices"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// opened checks what only levels of a rate have, and notes how reliable percentiles
// are near the largest rate.
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
		return // it shares the requests in flight with the stages around it
	}
	most := 0
	for _, p := range s.level.Passages() {
		most = max(most, p.Max)
	}
	mean := s.level.Value("in_flight", metric.Steady, nil, nil)
	v.Message += fmt.Sprintf(", %s in flight on average, %d at most", metric.Format(metric.Count, mean.V), most)
	if len(s.level.Saturation) == 0 {
		v.Notes = append(v.Notes, "the largest rate is not known: a window without a busy period cannot show one")
	}
}
