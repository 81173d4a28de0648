package assert

import (
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// ComparisonLook is the result of a look at a comparison while it ran.
type ComparisonLook struct {
	Outcome Outcome // the worst outcome of the required changes
	// More reports whether further rounds could decide the comparison.
	More bool
}

// JudgeComparison judges a comparison before its end, on the rounds that both sides have completed.
// The parameter run holds the record of the comparison; the last look in it is the current look.
func JudgeComparison(p *plan.Plan, c *plan.Compare, run *metric.Run) ComparisonLook {
	v := Judge(&plan.Plan{Gate: p.Gate, Servers: p.Servers, Workloads: p.Workloads, Compares: []*plan.Compare{c}}, run, Options{})
	if len(v.Comparisons) == 0 {
		return ComparisonLook{Outcome: Error}
	}
	x := v.Comparisons[0] // the only comparison of the plan above
	out := ComparisonLook{Outcome: x.Outcome}
	for _, row := range x.Changes {
		if row.Limit.OK && !row.OfCapacity && !row.OfAnswers && row.Outcome == Inconclusive && row.Severity != verdict.SeverityWarn {
			out.More = true
		}
	}
	return out
}
