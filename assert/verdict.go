// Package assert judges a run. It compares the observations (a metric.Run) with the requirements (a
// plan.Plan), and returns Verdicts. A missing measurement never passes.
package assert

import (
	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// These types and constants are those of package verdict, under shorter names.
type (
	Outcome  = verdict.Outcome
	Kind     = verdict.Kind
	Verdict  = verdict.Verdict
	Test     = verdict.Test
	Compares = verdict.Compares
	Place    = verdict.Place
)

const (
	Pending      = verdict.Pending
	Skipped      = verdict.Skipped
	Pass         = verdict.Pass
	Inconclusive = verdict.Inconclusive
	Fail         = verdict.Fail
	Error        = verdict.Error

	KindLoad     = verdict.KindLoad
	KindSLA      = verdict.KindSLA
	KindAssert   = verdict.KindAssert
	KindCapacity = verdict.KindCapacity
	KindCompare  = verdict.KindCompare
	KindServer   = verdict.KindServer
	KindAccept   = verdict.KindAccept
	KindResidue  = verdict.KindResidue

	ExitPass         = verdict.ExitPass
	ExitFail         = verdict.ExitFail
	ExitPlan         = verdict.ExitPlan
	ExitInconclusive = verdict.ExitInconclusive
	ExitError        = verdict.ExitError
	ExitInterrupted  = verdict.ExitInterrupted
)

// Verdicts is the result of a run.
type Verdicts struct {
	List    []Verdict // in the plan's order: servers, cases, thresholds, capacities, comparisons, asserts
	Outcome Outcome   // outcome of the run, by the plan's policy; never Pending
	Partial bool      // the user excluded cases (--only)
	// Comparisons are in the order of the plan. They include changes that are not required.
	Comparisons []*compare.Comparison
	// Why explains the outcome if nothing was judged and no verdict explains it; else "".
	Why string
}

// ExitCode returns the exit code for a run with the verdicts v. An interrupted run has its own
// code.
func (v Verdicts) ExitCode(interrupted bool) int {
	if interrupted {
		return ExitInterrupted
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
