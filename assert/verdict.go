// Package assert judges a run. It compares the observations (a metric.Run) with the requirements (a
// plan.Plan), and returns Verdicts. A missing measurement never passes.
package assert

import (
	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Verdicts is the result of a run.
type Verdicts struct {
	List    []verdict.Verdict // in the plan's order: servers, cases, thresholds, capacities, comparisons, asserts
	Outcome verdict.Outcome   // outcome of the run, by the plan's policy; never Pending
	Partial bool              // the user excluded cases (--only)
	// Comparisons are in the order of the plan. They include changes that are not required.
	Comparisons []*compare.Comparison
	// Why explains the outcome if nothing was judged and no verdict explains it; else "".
	Why string
}

// ExitCode returns the exit code for a run with the verdicts v. An interrupted run has its own
// code.
func (v Verdicts) ExitCode(interrupted bool) int {
	if interrupted {
		return verdict.ExitInterrupted
	}
	return verdict.ExitCode(v.Outcome)
}

// ThresholdOf returns a threshold of the plan in the form for verdicts and reports.
func ThresholdOf(t *plan.Threshold) *verdict.Threshold {
	out := verdict.Threshold{Metric: t.Metric, Stat: t.Stat, Op: string(t.Op), Text: t.Text}
	if t.Op != "" {
		out.Limit = metric.Some(t.Limit)
	}
	return &out
}
