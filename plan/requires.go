package plan

import (
	"slices"

	"github.com/tokgate/tokgate/metric"
)

// Requires reports whether a threshold, a required capacity, a rate, a residue, an assert, or a
// comparison that is made can fail the plan.
func (p *Plan) Requires() bool {
	return len(p.Asserts) > 0 || slices.ContainsFunc(p.Workloads, func(w *Workload) bool {
		return w.Capacity != nil && w.Capacity.Require > 0 || slices.ContainsFunc(p.Residuals(w), (*Residue).MustHold) ||
			slices.ContainsFunc(w.Loads, func(l *Load) bool { return l.Kind == metric.OpenLoop }) ||
			slices.ContainsFunc(w.SLAs, func(s *SLA) bool {
				return s.Severity == SeverityError && len(s.At) > 0 && len(s.Thresholds) > 0
			})
	}) || slices.ContainsFunc(p.Compares, func(c *Compare) bool {
		return c.Skip == "" && c.Requires()
	})
}
