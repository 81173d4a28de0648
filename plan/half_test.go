package plan

import (
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

func TestHalve(t *testing.T) {
	for _, tt := range []struct {
		name  string
		kind  metric.LoadKind
		level Level
		want  Level
	}{
		// 300 requests in ten rounds at 30 in flight: 150 fill five rounds of one wave.
		{"rounds of one wave", metric.ClosedLoop, Level{N: 30, Requests: 300, Rounds: 10}, Level{N: 30, Requests: 150, Rounds: 5}},
		{"rounds of several waves", metric.ClosedLoop, Level{N: 4, Requests: 200, Rounds: 10}, Level{N: 4, Requests: 100, Rounds: 10}},
		// 640 requests at 32 in flight are twenty batches, and 320 are ten.
		{"a window", metric.ClosedLoop, Level{N: 32, Requests: 640, Rounds: 20, Batches: true}, Level{N: 32, Requests: 320, Rounds: 10, Batches: true}},
		{"a duration", metric.ClosedLoop, Level{N: 8, Requests: 80, Rounds: 10, Duration: time.Hour}, Level{N: 8, Requests: 80, Rounds: 10, Duration: 30 * time.Minute}},
		{"a rate", metric.OpenLoop, Level{Rate: 4, Requests: 1200, Rounds: 10}, Level{Rate: 4, Requests: 600, Rounds: 10}},
		{"bursts", metric.Burst, Level{N: 8, Requests: 80, Rounds: 10}, Level{N: 8, Requests: 40, Rounds: 5}},
		{"a single request", metric.ClosedLoop, Level{N: 1, Requests: 1, Rounds: 1}, Level{N: 1, Requests: 1, Rounds: 1}},
	} {
		got := tt.level
		got.halve(tt.kind)
		must.Same(t, tt.name+": -want +got", tt.want, got)
	}
}

// A halved mix has halved parts, and the plan itself stays as it is.
func TestHalved(t *testing.T) {
	mix := &Workload{Name: "mix", Loads: []*Load{{Kind: metric.ClosedLoop, Levels: []Level{{Name: "8", N: 8, Requests: 200, Rounds: 10}}}}}
	a, b := mix.Part(&Workload{Name: "a"}, 750_000), mix.Part(&Workload{Name: "b"}, 250_000)
	mix.Mix = []*Workload{a, b}
	mix.ShareOut()
	p := &Plan{Workloads: []*Workload{mix, a, b}}
	h := p.Halved()
	for i, want := range [][2]int{{200, 100}, {150, 75}, {50, 25}} {
		if whole, half := p.Workloads[i].Loads[0].Levels[0].Requests, h.Workloads[i].Loads[0].Levels[0].Requests; whole != want[0] || half != want[1] {
			t.Errorf("%s: %d requests and %d halved, want %v", p.Workloads[i].Name, whole, half, want)
		}
	}
	must.Hold(t, h.Workloads[1].Of == h.Workloads[0] && h.Workloads[0].Mix[1] == h.Workloads[2], "the copy has parts of the plan itself")
}
