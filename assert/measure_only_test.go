package assert

import (
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// A plan that only measures never fails because of what it measured, but what could not be measured
// is an error.
func TestMeasureOnly(t *testing.T) {
	for _, row := range []struct {
		kind     verdict.Kind
		outcome  verdict.Outcome
		measures verdict.Outcome // of the run under measure_only
	}{
		{verdict.KindSLA, verdict.Pass, verdict.Pass}, {verdict.KindSLA, verdict.Fail, verdict.Pass}, {verdict.KindSLA, verdict.Inconclusive, verdict.Pass}, {verdict.KindSLA, verdict.Error, verdict.Error},
		{verdict.KindCapacity, verdict.Fail, verdict.Pass}, {verdict.KindCapacity, verdict.Inconclusive, verdict.Pass}, {verdict.KindCapacity, verdict.Error, verdict.Error},
		{verdict.KindLoad, verdict.Error, verdict.Error}, {verdict.KindLoad, verdict.Fail, verdict.Fail}, {verdict.KindServer, verdict.Error, verdict.Error},
	} {
		for _, only := range []bool{false, true} {
			j := judge{promised: &plan.Plan{Gate: plan.Gate{MeasureOnly: only}}, run: &metric.Run{}}
			j.add(verdict.Verdict{Kind: verdict.KindLoad, Outcome: verdict.Pass}, plan.Stop)
			j.add(verdict.Verdict{Kind: verdict.KindSLA, Outcome: verdict.Pass}, plan.Stop)
			j.add(verdict.Verdict{Kind: row.kind, Outcome: row.outcome}, plan.Stop)
			want := row.outcome
			if only {
				want = row.measures
			}
			got, why := verdict.Combine(j.list, only)
			must.Hold(t, got == want, "%s %v, measure_only = %v: %v (%s), want %v", row.kind, row.outcome, only, got, why, want)
		}
	}
}
