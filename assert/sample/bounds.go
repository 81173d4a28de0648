package sample

import (
	"slices"
	"sort"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Meets reports whether v meets the bound. NaN never meets a bound.
func Meets(v float64, op plan.Op, limit float64) bool {
	switch op {
	case plan.Less:
		return v < limit
	case plan.LessEqual:
		return v <= limit
	case plan.Greater:
		return v > limit
	case plan.GreaterEqual:
		return v >= limit
	}
	return false
}

// Decide returns the outcome of a test by the plan's policy: by the point estimate, which meets the
// limit or not, or by what the test proves. Below means that the limit is certainly met, and Above that
// it is not.
func Decide(policy plan.Policy, meets bool, test stat.Side) verdict.Outcome {
	if policy.Estimates() {
		test = map[bool]stat.Side{true: stat.Below, false: stat.Above}[meets]
	}
	return map[stat.Side]verdict.Outcome{stat.Below: verdict.Pass, stat.Open: verdict.Inconclusive, stat.Above: verdict.Fail}[test]
}

// Upward reports whether the operator sets a lower limit, which means that higher values are
// better.
func Upward(op plan.Op) bool { return op == plan.Greater || op == plan.GreaterEqual }

// Beyond counts the observations that do not meet the bound.
func Beyond(d metric.Distribution, op plan.Op, limit float64) int {
	upward := Upward(op)
	at := sort.Search(len(d.Values), func(i int) bool { return Meets(d.Values[i], op, limit) == upward })
	if upward {
		return d.Before(at)
	}
	return d.Count() - d.Before(at)
}

// Streamed reports whether a metric depends on how answers are split into chunks. goodput depends
// on it if the good block bounds such a metric.
func Streamed(def metric.Def, w *plan.Workload) bool {
	return def.Streams || def.Name == "goodput" && w != nil &&
		slices.ContainsFunc(w.Good, func(t *plan.Threshold) bool { return t.Metric.Streams })
}

// Good returns the function that decides whether a request of the workload is good; nil if there is
// no good block.
func Good(w *plan.Workload) func(*metric.Sample) bool {
	if len(w.Good) == 0 {
		return nil
	}
	return func(s *metric.Sample) bool {
		if !s.Completed() {
			return false
		}
		for _, t := range w.Good {
			if t.Metric.Scope == metric.PerGap {
				if len(s.Gaps) == 0 && s.Chunks > 1 {
					return false
				}
				for _, g := range s.Gaps {
					if !Meets(float64(g)/1e6, t.Op, t.Limit) {
						return false
					}
				}
				continue
			}
			if t.Metric.Streams && s.OneChunk() {
				// An answer in one chunk is neither slow nor fast, so skip it. Level.Unstreamed
				// reports it if there are too many such answers.
				continue
			}
			if t.Metric.OfAnswers && s.Answer != nil && s.Says(t.Metric) == metric.Unasked {
				continue
			}
			v, ok := s.Value(t.Metric.Name)
			if !ok || !Meets(v, t.Op, t.Limit) {
				return false
			}
		}
		return true
	}
}
