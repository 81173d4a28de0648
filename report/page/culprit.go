package page

import (
	"cmp"
	"fmt"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
)

// Bisect returns the command that finds who changed a metric at a level; "" if no bisection measures it.
// The statistic is a part of the metric's name, as in "ttft p95". change has a sign and a unit.
func Bisect(plan string, def metric.Def, name, workload, level, change string) string {
	if level == "" || level == "capacity" || def.Name == "" || def.Source != metric.Client || def.Unit == metric.Ratio || def.Paired {
		return ""
	}
	return fmt.Sprintf("Who did it? With the images since then, the oldest first, in a file: tokgate bisect %s --var image --values FILE --metric '%s' --at '%s/%s' --claimed %s",
		cmp.Or(plan, "PLAN"), name, workload, level, change)
}

// Culprit returns the command that bisects the first change that makes a comparison red; "" if none is.
func Culprit(d *report.Document) string {
	for _, c := range d.Comparisons {
		for i := range c.Changes {
			x := &c.Changes[i]
			if x.Outcome != verdict.Fail || x.Severity == verdict.SeverityWarn || x.Improve || !x.Change.OK || x.Points {
				continue
			}
			by := metric.Format(metric.Ratio, max(x.Change.V, -x.Change.V))
			if said := Bisect(d.Plan.Path, x.Metric, x.Name(), x.Workload, x.Level, by); said != "" {
				return said
			}
		}
	}
	return ""
}
