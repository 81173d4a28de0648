// Package verdict holds the possible results of a check: outcomes and how they
// combine, the verdict with everything that explains it, the cause of an error, and
// the exit codes. It decides only by fields; messages are for people.
package verdict

import "fmt"

// Outcome is the result of one check. Outcomes are ordered, and combining two takes
// the larger. The zero value is Pending, which is an error at the end. Skipped does
// not take part.
type Outcome int

const (
	Pending Outcome = iota
	Skipped         // not judged, with a reason; adds nothing when combined
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

// Combine takes the largest outcome that counts. A verdict that only warns does not
// count. It is an error if nothing was measured, or if nothing was judged, unless the
// plan only measures (measureOnly). why explains an error that no verdict in the list
// explains; else "".
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
