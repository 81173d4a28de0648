package report

import (
	"fmt"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

func TestHeadroom(t *testing.T) {
	for _, c := range []struct {
		op           string
		limit, value float64
		unit         string
		outcome      verdict.Outcome
		want         string
	}{
		{"<", 1, 0.25, "s", verdict.Pass, "4 ×"},
		{"<", 0.5, 0.0521, "s", verdict.Pass, "9.6 ×"}, // 0.5/0.0521 = 9.597
		{"<=", 0.11, 0.1, "s", verdict.Pass, "10%"},
		{">", 40, 107, "tok/s", verdict.Pass, "2.7 ×"}, // 107/40 = 2.675
		{">=", 40, 50, "tok/s", verdict.Pass, "25%"},
		{"<", 10000, 0.1, "s", verdict.Pass, "more than 1000 ×"},
		{">", 0.95, 1, "ratio", verdict.Pass, ""}, // a share cannot exceed 1, so it has no factor to spare
		{"<", 1, 0, "requests", verdict.Pass, "more than 1000 ×"},
		{"<", 0, 0, "requests", verdict.Pass, ""},
		{"", 0, 1, "s", verdict.Pass, ""},
		{"<", 1, 2, "s", verdict.Fail, ""},
	} {
		v := verdict.Verdict{Outcome: c.outcome, Test: verdict.Test{Value: metric.Some(c.value)}, Threshold: &verdict.Threshold{Op: c.op, Limit: metric.Some(c.limit), Metric: metric.Def{Unit: metric.Unit(c.unit)}}}
		must.Same(t, fmt.Sprintf("%v", c), c.want, v.Spare())
	}
	must.Same(t, "without a threshold", "", (&verdict.Verdict{Outcome: verdict.Pass}).Spare())
}
