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
		outcome  Outcome
		measures Outcome // of the run under measure_only
	}{
		{KindSLA, Pass, Pass}, {KindSLA, Fail, Pass}, {KindSLA, Inconclusive, Pass}, {KindSLA, Error, Error},
		{KindCapacity, Fail, Pass}, {KindCapacity, Inconclusive, Pass}, {KindCapacity, Error, Error},
		{KindLoad, Error, Error}, {KindLoad, Fail, Fail}, {KindServer, Error, Error},
	} {
		for _, only := range []bool{false, true} {
			j := judge{promised: &plan.Plan{Gate: plan.Gate{MeasureOnly: only}}, run: &metric.Run{}}
			j.add(Verdict{Kind: KindLoad, Outcome: Pass}, plan.Stop)
			j.add(Verdict{Kind: KindSLA, Outcome: Pass}, plan.Stop)
			j.add(Verdict{Kind: row.kind, Outcome: row.outcome}, plan.Stop)
			want := row.outcome
			if only {
				want = row.measures
			}
			got, why := verdict.Combine(j.list, only)
			must.Hold(t, got == want, "%s %v, measure_only = %v: %v (%s), want %v", row.kind, row.outcome, only, got, why, want)
		}
	}
}
