package assert

import (
	"fmt"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// accepts adds a verdict on each accept block, which passes or warns.
func (j *judge) accepts() {
	for _, a := range j.promised.Accepts {
		v := verdict.Verdict{Kind: verdict.KindAccept, Name: "accept." + a.Name, Outcome: verdict.Fail, Severity: verdict.SeverityWarn,
			Test: verdict.Test{Value: metric.None("an accept block has no value")}, Place: verdict.Place{File: a.Range.Filename, Line: a.Range.Start.Line}}
		judged, needed, wide := 0, 0, len(a.Workloads) == 0
		for _, x := range j.list {
			if x.Accepted == nil || x.Accepted.Name != a.Name || x.Outcome == verdict.Error || x.Outcome == verdict.Skipped {
				continue
			}
			if judged++; x.Accepted.Own != verdict.Pass {
				needed++
			}
			wide = wide || x.Accepted.Wide
		}
		until := a.Until.Format(time.DateOnly)
		switch {
		case a.Lapsed != "":
			v.Message = "does not count: it " + a.Lapsed + ". The plan's own bound holds. Remove the block, or review it again"
		case judged > 0 && needed == 0:
			v.Message = "is no longer needed: the plan's own bound is met. Remove the block"
		case len(a.Workloads) == 0:
			v.Message = fmt.Sprintf("is too wide: it names no workload, so it accepts %s %s of all until %s. Name one", a.Metric, a.Text, until)
		case wide:
			v.Message = fmt.Sprintf("is too wide: %s %s is more than twice the change that was measured. Accept less", a.Metric, a.Text)
		default:
			v.Outcome = verdict.Pass
			v.Message = fmt.Sprintf("holds until %s: %s %s (%s)", until, a.Metric, a.Text, a.Why)
		}
		j.keep(v)
	}
}
