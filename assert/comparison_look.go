package assert

import (
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// ComparisonLook is the result of a look at a comparison while it ran.
type ComparisonLook struct {
	Outcome Outcome // worst outcome of the required changes
	// More reports whether more rounds could decide the comparison.
	More bool
}

// JudgeComparison judges a comparison before its end. It uses the rounds that both sides have
// completed. run has the record of the comparison, and the last look in the record is the current
// look.
func JudgeComparison(p *plan.Plan, c *plan.Compare, run *metric.Run) ComparisonLook {
	v := Judge(&plan.Plan{Gate: p.Gate, Servers: p.Servers, Workloads: p.Workloads, Compares: []*plan.Compare{c}}, run, Options{})
	if len(v.Comparisons) == 0 {
		return ComparisonLook{Outcome: Error}
	}
	x := v.Comparisons[0] // the plan above has only this comparison
	out := ComparisonLook{Outcome: x.Outcome}
	for _, row := range x.Changes {
		if row.Limit.OK && !row.OfCapacity && !row.OfAnswers && row.Outcome == Inconclusive && row.Severity != verdict.SeverityWarn {
			out.More = true
		}
	}
	return out
}
