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
		outcome      Outcome
		want         string
	}{
		{"<", 1, 0.25, "s", Pass, "4 ×"},
		{"<", 0.5, 0.0521, "s", Pass, "9.6 ×"}, // 0.5/0.0521 = 9.597
		{"<=", 0.11, 0.1, "s", Pass, "10%"},
		{">", 40, 107, "tok/s", Pass, "2.7 ×"}, // 107/40 = 2.675
		{">=", 40, 50, "tok/s", Pass, "25%"},
		{"<", 10000, 0.1, "s", Pass, "more than 1000 ×"},
		{">", 0.95, 1, "ratio", Pass, ""}, // a share cannot exceed 1, so it has no factor to spare
		{"<", 1, 0, "requests", Pass, "more than 1000 ×"},
		{"<", 0, 0, "requests", Pass, ""},
		{"", 0, 1, "s", Pass, ""},
		{"<", 1, 2, "s", Fail, ""},
	} {
		v := Verdict{Outcome: c.outcome, Test: verdict.Test{Value: metric.Some(c.value)}, Threshold: &verdict.Threshold{Op: c.op, Limit: metric.Some(c.limit), Metric: metric.Def{Unit: metric.Unit(c.unit)}}}
		must.Same(t, fmt.Sprintf("%v", c), c.want, v.Spare())
	}
	must.Same(t, "without a threshold", "", (&Verdict{Outcome: Pass}).Spare())
}
