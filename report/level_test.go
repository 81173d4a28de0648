package report

import (
	"testing"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// The level-wide values of the fixture, by hand.
func TestLevelValues(t *testing.T) {
	run, p, v, m := fixture()
	ttft, _ := metric.Lookup("ttft")
	p.Workloads[0].Good = []*plan.Threshold{{Metric: ttft, Stat: metric.Stat{Kind: metric.Every}, Op: plan.Less, Limit: 1e6}}
	d := New(run, p, v, m)
	one, thirty, skipped := &d.Cases[0], &d.Cases[1], &d.Cases[2]

	// 104 of 120 completed.
	if s := thirty.Summary("success"); !s.Value.OK || s.Value.V != 104.0/120 {
		t.Errorf("success = %+v, want 104/120", s)
	}
	// Every completed request is good by a bound of a million seconds.
	if good, rate := thirty.Summary("goodput"), thirty.Summary("request_rate"); !good.Value.OK || good.Value != rate.Value {
		t.Errorf("goodput = %+v, want the request rate %+v", good, rate)
	}
	// throughput(30) / (30 · throughput(1)).
	want := thirty.Summary("throughput").Value.V / (30 * one.Summary("throughput").Value.V)
	if s := thirty.Summary("scaling_efficiency"); !s.Value.OK || s.Value.V != want {
		t.Errorf("scaling efficiency = %+v, want %v", s, want)
	}
	for _, s := range skipped.Metrics {
		if s.Value.OK || s.Mean.OK || s.Why == "" {
			t.Errorf("a level that was not run has %+v, want no value and a reason", s)
		}
	}
	if s := New(run, nil, v, m).Cases[0].Summary("goodput"); s.Value.OK || s.Why != "what is good is in the plan, which is not at hand" {
		t.Errorf("goodput without a plan = %+v", s)
	}
}
