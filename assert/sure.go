package assert

import (
	"net/http"
	"sort"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// sure reports whether a threshold on success or on answers fails for what the server did alone. It
// judges only requests that the generator sent on time and not soon after it stood still, and only
// failures that carry a status. Such a failure stands whatever else the generator disturbed.
func (s *subject) sure(t *plan.Threshold) bool {
	if !t.Metric.OfAnswers && t.Metric.Name != "success" {
		return false
	}
	e2e := metric.Of(metric.MustLookup("e2e"), s.level.MeasuredSamples())
	e2e.Worst = 0 // failed requests have no duration
	median, _ := e2e.Percentile(50)
	limit, alone, whole := s.level.LagLimit(), *s.level, *s
	alone.Rounds = nil
	for _, r := range s.level.Rounds {
		if r.Health.Standstills == nil && s.held(r) > 0 {
			continue // it is not known when the generator stood still
		}
		c, inAftermath := r.With(nil), aftermaths(r, time.Duration(median*float64(time.Second)))
		for _, x := range r.All() {
			lag, sent := x.Value("lag")
			blameless := sent && lag <= limit && !inAftermath(x.Sent) &&
				(x.Completed() || x.Failure.Kind == metric.FailStatus && x.Status != http.StatusRequestTimeout)
			if blameless {
				c.Samples = append(c.Samples, x)
			} else if x.Phase == metric.Measured {
				c.Due--
			}
		}
		alone.Rounds = append(alone.Rounds, c)
	}
	return s.judgedOn(&whole, &alone, t) == verdict.Fail
}

// aftermaths returns a function that reports whether a time lies in a standstill of the round, or
// in the time in which the server still feels it. The requests that were overdue at the end of a
// standstill leave together. The server feels them for one more request, of the duration e2e, after
// the last of them left.
func aftermaths(r *metric.Round, e2e time.Duration) func(at time.Duration) bool {
	stood := r.Health.Standstills
	ends := make([]time.Duration, len(stood))
	for i, s := range stood {
		ends[i] = s.To
	}
	for _, x := range r.All() {
		i := sort.Search(len(stood), func(i int) bool { return x.Scheduled <= stood[i].To+metric.Heartbeat })
		if i < len(stood) && x.Sent >= stood[i].From {
			ends[i] = max(ends[i], x.Sent)
		}
	}
	for i := range ends {
		ends[i] += e2e
		if i > 0 {
			ends[i] = max(ends[i], ends[i-1])
		}
	}
	return func(at time.Duration) bool {
		after := sort.Search(len(stood), func(i int) bool { return stood[i].From-metric.Heartbeat > at })
		return after > 0 && at < ends[after-1]
	}
}
