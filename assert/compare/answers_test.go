package compare

import (
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// TestFormIsRed: a default limit on the form of answers fails the comparison only if the change is
// certain among all tests. Otherwise it warns, and it never makes the comparison inconclusive.
//
// Each row has 120 pairs of answers. Tango's interval gives the probability that such a change, or a
// larger one, comes from a true change of 1 point.
func TestFormIsRed(t *testing.T) {
	for _, tt := range []struct {
		name     string
		lost     float64 // answers that are bad on the candidate alone
		others   int     // other changes that are not decided
		reading  bool    // limit of the answers block
		outcome  verdict.Outcome
		severity verdict.Severity
	}{
		{"all repeat themselves", 120, 0, false, verdict.Fail, verdict.SeverityError},
		{"all, of the answers block", 120, 0, true, verdict.Fail, verdict.SeverityError},
		{"all, among ten tests", 120, 10, false, verdict.Fail, verdict.SeverityError},
		{"four of 120", 4, 0, false, verdict.Fail, verdict.SeverityError}, // p = 0.005
		{"four of 120, among ten undecided tests", 4, 10, false, verdict.Fail, verdict.SeverityWarn},
		{"two of 120", 2, 0, false, verdict.Inconclusive, verdict.SeverityWarn},
		{"two of 120, of the answers block", 2, 0, true, verdict.Inconclusive, verdict.SeverityWarn},
	} {
		bound := &plan.ChangeBound{Metric: metric.MustLookup("repetition"), Stat: metric.Stat{Kind: metric.Rate}, Limit: 0.01, Points: true}
		x := comparison{alpha: 0.05, whole: 0.05, nominal: once, out: &Comparison{}, Input: Input{Block: &plan.Compare{}},
			usual: &plan.Claim{Severity: plan.SeverityWarn}, reading: &plan.Claim{Severity: plan.SeverityError}}
		claim := x.usual
		if tt.reading {
			claim = x.reading
		}
		row := Change{Workload: "chat", Metric: bound.Metric, Stat: bound.Stat, Shift: Shift{Points: true}}
		row.delta.paired = &outcomes{lost: tt.lost, all: 120}
		row.estimate(x.alpha)
		row.require(bound, claim, plan.Policy{}, x.alpha)
		x.out.Changes, x.claims = append(x.out.Changes, row), append(x.claims, claimed{0, claim, bound})
		for range tt.others {
			x.claims = append(x.claims, claimed{len(x.out.Changes), &plan.Claim{}, bound})
			x.out.Changes = append(x.out.Changes, Change{Outcome: verdict.Inconclusive, judging: judging{pFail: 0.5, delta: delta{paired: &outcomes{all: 120}}}})
		}
		x.settle()
		got := x.out.Changes[0]
		if got.Outcome != tt.outcome || got.Severity != tt.severity {
			t.Errorf("%s: %v, %v (p = %.3g): %s", tt.name, got.Outcome, got.Severity, got.pFail, got.Message)
		}
		x.require()
		if v := x.list[0]; v.Severity != tt.severity || (v.Counts() == verdict.Pass) != (tt.severity == verdict.SeverityWarn) {
			t.Errorf("%s: the verdict is %v, %v", tt.name, v.Outcome, v.Severity)
		}
	}
}
