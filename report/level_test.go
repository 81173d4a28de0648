package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

// A round that was measured again is listed, and part of no value.
func TestVoidedRounds(t *testing.T) {
	run, p, v, m := fixture()
	want := New(run, p, v, m).Cases[1]
	void := *run.Levels[1].Rounds[0]
	void.Index, void.Void, void.Health.Stall = 9, "the generator stood still for 700 ms", 700*time.Millisecond
	run.Levels[1].Voided = []*metric.Round{&void}
	got := New(run, p, v, m).Cases[1]
	if len(got.Voided) != 1 || got.Voided[0].Void != void.Void || got.Voided[0].Index != 9 || got.Voided[0].Stall != 0.7 {
		t.Errorf("voided: %+v", got.Voided)
	}
	got.Voided = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a voided round changed the case:\n%s", diff)
	}
}
