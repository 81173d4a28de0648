package verdict

import (
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// A failure that the generator cannot have caused decides, although the generator disturbed other
// verdicts. It does not decide if anything else could not be measured.
func TestWorst(t *testing.T) {
	pass, fail, unsure := Verdict{Outcome: Pass}, Verdict{Outcome: Fail}, Verdict{Outcome: Inconclusive}
	sure, skipped := Verdict{Outcome: Fail, Sure: true}, Verdict{Outcome: Skipped}
	disturbed, invalid := Verdict{Outcome: Error, Cause: CauseGenerator}, Verdict{Outcome: Error, Cause: CauseInvalid}
	warned := func(v Verdict) Verdict { v.Severity = SeverityWarn; return v }
	for _, tt := range []struct {
		name  string
		list  []Verdict
		want  Outcome
		cause Cause
	}{
		{"nothing", nil, Pass, ""},
		{"skipped", []Verdict{skipped}, Pass, ""},
		{"undecided", []Verdict{pass, unsure}, Inconclusive, ""},
		{"a failure", []Verdict{pass, unsure, fail}, Fail, ""},
		{"disturbed", []Verdict{pass, disturbed}, Error, CauseGenerator},
		{"a failure beside it", []Verdict{fail, disturbed}, Error, CauseGenerator},
		{"a sure failure beside it", []Verdict{disturbed, sure, unsure, disturbed}, Fail, ""},
		{"an invalid measurement", []Verdict{sure, invalid}, Error, ""},
		{"an invalid measurement and a disturbed one", []Verdict{sure, invalid, disturbed}, Error, ""},
		{"something pending", []Verdict{sure, {}}, Error, ""},
		{"a sure failure that only warns", []Verdict{warned(sure), disturbed}, Error, CauseGenerator},
		{"an invalid measurement that only warns", []Verdict{sure, disturbed, warned(invalid)}, Fail, ""},
	} {
		got, cause := Worst(tt.list)
		must.Hold(t, got == tt.want && cause == tt.cause, "%s: %v by %q, want %v by %q", tt.name, got, cause, tt.want, tt.cause)
	}
}
