// Package assert judges: it takes what was observed (a metric.Run) and what
// was promised (a plan.Plan) and gives Verdicts. It reads no clock, touches no
// network, and fails closed: no data is never a pass.
package assert

import (
	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/plan"
)

// What assert's results are made of; see package verdict.
type (
	Outcome = verdict.Outcome
	Kind    = verdict.Kind
	Verdict = verdict.Verdict
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

	ExitPass         = verdict.ExitPass
	ExitFail         = verdict.ExitFail
	ExitPlan         = verdict.ExitPlan
	ExitInconclusive = verdict.ExitInconclusive
	ExitError        = verdict.ExitError
	ExitInterrupted  = verdict.ExitInterrupted
)

// Verdicts is the result of a run.
type Verdicts struct {
	List    []Verdict // in order of the plan: servers, cases, thresholds, capacities, comparisons, asserts
	Outcome Outcome   // of the run, by the plan's policy; never Pending
	Partial bool      // --only left cases out
	// Comparisons are in order of the plan, and hold changes that nothing
	// requires too.
	Comparisons []*compare.Comparison
	// Why explains an Outcome that no verdict of the list explains: nothing
	// was judged. "" otherwise.
	Why string
}

// ExitCode is the exit code of a run that came to v; interrupted outweighs
// everything.
func (v Verdicts) ExitCode(interrupted bool) int {
	if interrupted {
		return ExitInterrupted
	}
	return v.Outcome.ExitCode()
}

// ThresholdOf is a threshold as verdicts and reports show it.
func ThresholdOf(t *plan.Threshold) *verdict.Threshold {
	return &verdict.Threshold{Metric: t.Metric, Stat: t.Stat, Op: string(t.Op), Limit: t.Limit, Text: t.Text}
}
