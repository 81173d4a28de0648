// Package verdict holds the possible results of a check: the outcomes and their combination, the
// verdict with everything that explains it, the cause of an error, and the exit codes. Decisions
// use only fields, because messages are for people.
package verdict

import "fmt"

// Outcome is the result of one check. Outcomes are ordered, and the combination of two outcomes is
// the larger one; Skipped does not count. The zero value is Pending, which counts as an error at
// the end of a run.
type Outcome int

const (
	Pending Outcome = iota
	Skipped         // not judged, for a stated reason; does not count in combined outcomes
	Pass
	Inconclusive
	Fail
	Error // could not be measured, or the measurement is invalid
)

func (o Outcome) String() string {
	switch o {
	case Pending:
		return "pending"
	case Skipped:
		return "skipped"
	case Pass:
		return "pass"
	case Inconclusive:
		return "inconclusive"
	case Fail:
		return "fail"
	case Error:
		return "error"
	}
	return fmt.Sprintf("Outcome(%d)", int(o))
}

// The exit codes of tokgate, a stable interface.
const (
	ExitPass         = 0
	ExitFail         = 1
	ExitPlan         = 2 // invalid plan, values or command line; nothing was started
	ExitInconclusive = 3
	ExitError        = 4 // could not be measured
	ExitInterrupted  = 130
)

// ExitCode is the exit code of a run with the outcome o. Any outcome other than a
// pass, a failure or inconclusive means that the run could not be measured.
func (o Outcome) ExitCode() int {
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

// Combine returns the largest outcome in the list, without verdicts that only warn. The outcome is
// an error if nothing was measured, or if nothing was judged although the plan requires something
// (measureOnly is false). why explains an error that no verdict in the list explains; otherwise "".
func Combine(list []Verdict, measureOnly bool) (outcome Outcome, why string) {
	outcome = Pass
	judged, measured := false, false
	for i := range list {
		v := &list[i]
		if v.Outcome == Skipped {
			continue
		}
		judged, measured = judged || v.judges(), measured || v.measures()
		outcome = max(outcome, v.Counts())
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
