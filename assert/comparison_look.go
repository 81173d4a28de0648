package assert

import (
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// ComparisonLook is the result of a look: a judgement of a comparison that still runs.
type ComparisonLook struct {
	Outcome Outcome // worst outcome of the required changes
	// Stop means that no further round is worth its cost.
	Stop bool
}

// JudgeComparison judges a comparison before its end, on the rounds that both servers have
// completed. The argument run holds the record of the comparison. The last look in the record is
// the current one.
func JudgeComparison(p *plan.Plan, c *plan.Compare, run *metric.Run) ComparisonLook {
	v := Judge(&plan.Plan{Gate: p.Gate, Servers: p.Servers, Workloads: p.Workloads, Compares: []*plan.Compare{c}}, run, Options{})
	if len(v.Comparisons) == 0 {
		return ComparisonLook{Outcome: Error, Stop: true}
	}
	x := v.Comparisons[0] // Judge gets a plan with only this comparison
	open := false
	for i := range x.Changes {
		row := &x.Changes[i]
		open = open || row.Limit.OK && !row.OfCapacity && !row.OfAnswers && row.Outcome == Inconclusive &&
			row.Severity != verdict.SeverityWarn
	}
	if x.Stage != nil {
		open = !x.Stage.Stop
	}
	return ComparisonLook{Outcome: x.Outcome, Stop: !open}
}
