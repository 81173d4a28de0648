// Package verdict holds what a check can come to: outcomes and how they combine,
// the verdict with everything that explains it, the cause of an error, and the
// exit codes. It decides by its fields alone; messages are for people.
package verdict

import "fmt"

// Outcome is the result of one check. Outcomes are ordered: combining two is
// taking the larger. The zero value is Pending, and pending at the end is an
// error. Skipped stands apart.
type Outcome int

const (
	Pending Outcome = iota
	Skipped         // not judged, with a reason; combines as nothing
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
	ExitPlan         = 2 // plan, values or command line wrong; nothing was started
	ExitInconclusive = 3
	ExitError        = 4 // could not be measured
	ExitInterrupted  = 130
)

// ExitCode is the exit code of a run that came to o. What is neither a pass, a
// failure nor inconclusive could not be measured.
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

// Combine takes the largest outcome that counts. What only warns does not;
// nothing measured is an error, and so is nothing judged unless the plan asks
// for figures alone (measureOnly). why explains an error that no verdict of the
// list does; "" otherwise.
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
