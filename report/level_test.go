package report

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// The level-wide values of the fixture agree with values that were computed by hand.
func TestLevelValues(t *testing.T) {
	run, p, v, m := fixture()
	ttft, _ := metric.Lookup("ttft")
	p.Workloads[0].Good = []*plan.Threshold{{Metric: ttft, Stat: metric.Stat{Kind: metric.Every}, Op: plan.Less, Limit: 1e6}}
	d := New(run, p, v, m)
	one, thirty, skipped := &d.Cases[0], &d.Cases[1], &d.Cases[2]

	// 104 of 120 completed.
	s := thirty.Summary("success")
	must.Hold(t, s.Value.OK && s.Value.V == 104.0/120, "success = %+v, want 104/120", s)
	// The fixture's good block accepts every request that completed within a million seconds. So
	// goodput is equal to the rate of all requests.
	good, rate := thirty.Summary("goodput"), thirty.Summary("request_rate")
	must.Hold(t, good.Value.OK && good.Value == rate.Value, "goodput = %+v, want the request rate %+v", good, rate)
	// The efficiency is the throughput at 30, divided by 30 times the throughput at 1.
	want := thirty.Summary("throughput").Value.V / (30 * one.Summary("throughput").Value.V)
	if s := thirty.Summary("scaling_efficiency"); !s.Value.OK || s.Value.V != want {
		t.Errorf("scaling efficiency = %+v, want %v", s, want)
	}
	for _, s := range skipped.Metrics {
		must.Hold(t, !s.Value.OK && !s.Mean.OK && s.Why != "", "a level that was not run has %+v, want no value and a reason", s)
	}
	if s := New(run, nil, v, m).Cases[0].Summary("goodput"); s.Value.OK || s.Why != "the plan, which defines good requests, is not available" {
		t.Errorf("goodput without a plan = %+v", s)
	}
}

// A round that was measured again is listed, but its requests are in no value: they only cost.
func TestVoidedRounds(t *testing.T) {
	run, p, v, m := fixture()
	want := New(run, p, v, m).Cases[1]
	void := *run.Levels[1].Rounds[0]
	void.Index, void.Void, void.Health.Stall = 9, "the generator stood still for 700 ms", 700*time.Millisecond
	run.Levels[1].Voided = []*metric.Round{&void}
	got := New(run, p, v, m).Cases[1]
	if len(got.Voided) != 1 || got.Voided[0].Void != void.Void || got.Voided[0].Index != 9 || got.Voided[0].Health.Stall != 700*time.Millisecond {
		t.Errorf("voided: %+v", got.Voided)
	}
	sent := len(void.All())
	must.Hold(t, got.Spent.Sent == want.Spent.Sent+sent, "%d requests sent, want %d and %d voided", got.Spent.Sent, want.Spent.Sent, sent)
	got.Voided, got.Spent = nil, want.Spent
	must.Same(t, "a voided round changed the case", want, got)
}

// The table has a row for each of the first nine turns, and one row for all later turns. Each turn
// k has TTFTs of about k·100 ms.
func TestTurns(t *testing.T) {
	run, p, v, m := fixture()
	run.Levels = run.Levels[:1]
	l := run.Levels[0]
	l.Rounds = l.Rounds[:1]
	var samples []*metric.Sample
	for i := range 4 {
		for turn := 1; turn <= 11; turn++ {
			first := time.Duration(100*turn+i) * time.Millisecond
			s := &metric.Sample{Server: l.Server, Workload: l.Workload, Level: l.Name, Phase: metric.Measured, Order: len(samples), Turn: turn,
				First: first, FirstAnswer: first, Last: first + time.Second, End: first + time.Second, Chunks: 2, Status: 200, Usage: &metric.Usage{Input: 1000, Output: 2}}
			if turn == 2 {
				s.Usage.Cached = 500
			}
			if turn == 3 && i == 0 {
				s.Failure, s.First, s.FirstAnswer, s.Usage = &metric.Failure{Kind: metric.FailStatus}, 0, 0, nil
			}
			samples = append(samples, s)
		}
	}
	l.Rounds[0].Samples, l.Rounds[0].Due = samples, len(samples)
	d := New(run, p, v, m)
	c := &d.Cases[0]
	must.Need(t, len(c.Turns) == 10, "%d turns: %+v", len(c.Turns), c.Turns)
	some := func(v float64) metric.Value { return metric.Value{V: v, OK: true} }
	want := []Turn{
		{From: 1, To: 1, Requests: 4, Mean: some(0.1015), P95: some(0.103), Cached: some(0)}, // mean: (100 + 101 + 102 + 103) / 4
		{From: 2, To: 2, Requests: 4, Mean: some(0.2015), P95: some(0.203), Cached: some(0.5)},
		{From: 3, To: 3, Requests: 4, Mean: some(0.302), P95: some(math.Inf(1)), Cached: some(0)}, // mean: (301 + 302 + 303) / 3; one failed
	}
	close := cmpopts.EquateApprox(1e-9, 0)
	must.Same(t, "", want, c.Turns[:3], close)
	// The last entry has turns 10 and 11 of four conversations, so eight requests. The p95 of eight
	// TTFTs is the largest one.
	last := c.Turns[9]
	must.Hold(t, last.From == 10 && last.To == 11 && last.Requests == 8 && last.P95 == some(1.103), "%+v", last)
	if c := New(fixture()).Cases[1]; c.Turns != nil {
		t.Errorf("turns where there are none: %v", c.Turns)
	}
}
