// Package verdict defines the results of checks: outcomes, verdicts, causes of errors and exit
// codes.
//
// Code must decide by the fields of a verdict. Messages are for people.
package verdict

import "github.com/tokgate/tokgate/metric"

// Outcome is the result of one check.
type Outcome = metric.Outcome

const (
	Pending      = metric.Pending
	Skipped      = metric.Skipped
	Pass         = metric.Pass
	Inconclusive = metric.Inconclusive
	Fail         = metric.Fail
	Error        = metric.Error
)

// The exit codes of tokgate. They are a stable interface.
const (
	ExitPass         = 0
	ExitFail         = 1
	ExitPlan         = 2 // invalid plan, values or command line; nothing was started
	ExitInconclusive = 3
	ExitError        = 4 // could not be measured
	ExitInterrupted  = 130
)

// ExitCode returns the exit code of a run with the outcome o. Outcomes other than Pass, Fail and
// Inconclusive mean that the run could not be measured.
func ExitCode(o Outcome) int {
	switch o {
	case Pass:
		return ExitPass
	case Fail:
		return ExitFail
	case Inconclusive:
		return ExitInconclusive
	}
	return ExitError
}

// Worst returns the worst outcome that the verdicts contribute, and the cause of an error: the
// generator if it caused every error, otherwise "". A failure that the generator cannot have caused
// outranks errors of the generator.
func Worst(list []Verdict) (Outcome, Cause) {
	worst, sure, cause := Pass, false, CauseGenerator
	for i := range list {
		v := &list[i]
		counts := v.Counts()
		worst, sure = max(worst, counts), sure || counts == Fail && v.Sure
		if counts == Error && v.Cause != CauseGenerator {
			cause = ""
		}
	}
	switch {
	case worst != Error:
		return worst, ""
	case sure && cause == CauseGenerator:
		return Fail, ""
	}
	return Error, cause
}

// Combine returns the worst outcome in the list, as Worst does. Verdicts that only warn do not
// count. The outcome is Error if nothing was measured, or if nothing was judged although
// measureOnly is false. why then gives the reason; it is "" if a verdict in the list gives it.
func Combine(list []Verdict, measureOnly bool) (outcome Outcome, why string) {
	outcome, _ = Worst(list)
	judged, measured := false, false
	for i := range list {
		if v := &list[i]; v.Outcome != Skipped {
			judged, measured = judged || v.judges(), measured || v.measures()
		}
	}
	switch {
	case outcome == Error:
	case !measured:
		return Error, "nothing was measured"
	case !judged && !measureOnly:
		return Error, "nothing was judged"
	}
	return outcome, ""
}
