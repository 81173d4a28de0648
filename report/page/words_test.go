package page

import (
	"fmt"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
)

func TestNearness(t *testing.T) {
	// 9.4 s is only 6 % below a limit of 10 s. So it is "within" the limit, not "well within".
	for _, tt := range []struct {
		op       string
		v, limit float64
		want     string
	}{
		{"<", 9.4, 10, "within its limit"}, {"<", 7.9, 10, "well within its limit"}, {"<", 9.6, 10, "just within its limit"},
		{"<", 10.004, 10, "right at its limit"}, {"<", 10.4, 10, "just beyond its limit"}, {"<", 11, 10, "beyond its limit"},
		{">", 21, 10, "well within its limit"}, {">", 15.04, 15, "just within its limit"}, {">=", 14, 15, "beyond its limit"},
		{"<", 1, 0, ""},
	} {
		must.Same(t, fmt.Sprintf("%v %s %v", tt.v, tt.op, tt.limit), tt.want, nearness(margin(tt.op, tt.v, tt.limit)))
	}
}

// If a threshold is required at one level and only warns at others, the page's rules show it once.
func TestRules(t *testing.T) {
	bound := func(text string, severity verdict.Severity) report.Bound {
		return report.Bound{Threshold: verdict.Threshold{Metric: metric.MustLookup("e2e"), Text: text}, Severity: severity}
	}
	for _, tt := range []struct {
		bounds []report.Bound
		want   string
	}{
		{nil, "nothing: measured only"},
		{[]report.Bound{bound("mean < 2s", "warn")}, "E2E mean < 2s (a warning)"},
		{[]report.Bound{bound("mean < 2s", "warn"), bound("mean < 2s", "error")}, "E2E mean < 2s"},
		{[]report.Bound{bound("mean < 2s", "error"), bound("mean < 1s", "warn")}, "E2E mean < 2s; E2E mean < 1s (a warning)"},
	} {
		must.Same(t, fmt.Sprintf("%v", tt.bounds), tt.want, rules(&report.Workload{Bounds: tt.bounds}))
	}
}
