package exec_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// In each round both servers of a comparison get requests at the same times, even if requests fail.
// The times differ between rounds.
func TestTurnsOfRates(t *testing.T) {
	d := newDuel(6, plan.RestartLeg, "a", "b")
	d.Workloads[0].Loads = []*plan.Load{{
		Kind: metric.OpenLoop, Seeds: []int64{1, 2, 3}, Timeout: time.Minute,
		Open:   &plan.Open{Arrivals: plan.Poisson, MaxInFlight: 100, Warmup: 2 * time.Second},
		Levels: []plan.Level{{Name: plan.RateName(4), Rate: 4, Requests: 120, Rounds: 6}},
	}}
	run := d.run(t, nil)
	arrivals := map[string][][]time.Duration{}
	for _, l := range run.Levels {
		for _, r := range l.Rounds {
			var due []time.Duration
			for _, s := range r.MeasuredSamples() {
				due = append(due, s.Scheduled-r.WindowStart)
			}
			arrivals[l.Server] = append(arrivals[l.Server], due)
		}
	}
	if n := len(arrivals["server.a"]) + len(arrivals["a"]); n != 6 {
		t.Fatalf("%d rounds, want 6", n)
	}
	var sides [][][]time.Duration
	for _, x := range arrivals {
		sides = append(sides, x)
	}
	if len(sides) != 2 {
		t.Fatalf("%d sides", len(sides))
	}
	must.Same(t, "", sides[0], sides[1])
	if cmp.Equal(sides[0][0], sides[0][1]) {
		t.Error("two rounds got the same arrivals")
	}
}
