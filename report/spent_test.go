package report

import (
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// roundOf returns a round with requests of each phase. A request is written by the seconds in
// which it was sent and ended.
func roundOf(warmup, measured, fillers [][2]int) *metric.Round {
	r := &metric.Round{Complete: true, Due: len(measured)}
	add := func(phase metric.Phase, list [][2]int) {
		for i, at := range list {
			from, to := time.Duration(at[0])*time.Second, time.Duration(at[1])*time.Second
			r.Samples = append(r.Samples, &metric.Sample{Phase: phase, Order: i, Scheduled: from, Sent: from, End: to})
			if phase == metric.Measured {
				if i == 0 {
					r.Start = from
				}
				r.Start, r.End = min(r.Start, from), max(r.End, to)
			}
		}
	}
	add(metric.Warmup, warmup)
	add(metric.Measured, measured)
	add(metric.Filler, fillers)
	return r
}

func TestSpentOn(t *testing.T) {
	first := roundOf([][2]int{{10, 12}}, [][2]int{{12, 14}, {13, 15}}, [][2]int{{14, 16}})
	second := roundOf([][2]int{{20, 21}}, [][2]int{{21, 24}}, nil)
	next := roundOf(nil, [][2]int{{14, 17}, {15, 18}}, nil) // the next batch of the same window
	for _, tt := range []struct {
		name        string
		all, judged *metric.Level
		want        Spent
	}{
		{"not run", &metric.Level{}, &metric.Level{}, Spent{}},
		// Load from 10 to 16 and from 20 to 24, measured from 12 to 15 and from 21 to 24.
		{"two rounds and the pause between them", &metric.Level{Rounds: []*metric.Round{first, second}}, nil, Spent{6, 3, 10, 6, 0}},
		{"a voided round", &metric.Level{Rounds: []*metric.Round{first}, Voided: []*metric.Round{second}}, nil, Spent{6, 2, 10, 3, 0}},
		// Load from 10 to 18 and measured from 12 to 18: what overlaps counts once.
		{"batches that overlap", &metric.Level{Rounds: []*metric.Round{first, next}}, nil, Spent{6, 4, 8, 6, 0}},
		{"a batch that was not judged", &metric.Level{Rounds: []*metric.Round{first, next}}, &metric.Level{Rounds: []*metric.Round{first}}, Spent{6, 2, 8, 3, 0}},
		{"a part of a mix", &metric.Level{Of: "mix", Rounds: []*metric.Round{first}}, nil, Spent{}},
	} {
		judged := tt.judged
		if judged == nil {
			judged = tt.all
		}
		must.Same(t, tt.name+": -want +got", tt.want, spentOn(tt.all, judged))
	}
}

// The cost of a run is that of its cases, and the starts of servers that it started.
func TestSpentOnRun(t *testing.T) {
	two := []metric.Start{{}, {}}
	d := &Document{Run: &metric.Run{Servers: []*metric.ServerRun{
		{Address: "ours", Declared: metric.Fingerprint{"command": "serve"}, Starts: two},
		{Address: "theirs", Starts: two}, // runs already
	}}, Cases: []Case{{Spent: Spent{Sent: 30, Measured: 20, Load: 3, Judged: 2}}, {}, {Spent: Spent{Sent: 70, Measured: 10, Load: 5, Judged: 1}}}}
	must.Same(t, "-want +got", Spent{100, 30, 8, 3, 2}, d.spent())
}
