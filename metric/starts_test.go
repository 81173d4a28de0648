package metric

import (
	"testing"
	"time"
)

// A level has the starts of its server that served its rounds.
func TestStartsOfLevel(t *testing.T) {
	s := time.Second
	starts := []Start{
		{At: 0, Ready: 100 * s, Pull: 40 * s, Kind: StartCold}, // 60 s without its pull
		{At: 200 * s, Ready: 220 * s, Kind: StartWarm},
		{At: 300 * s, Ready: 330 * s, Kind: StartWarm},
	}
	legs := []*Round{{Leg: &Leg{Start: 0}}, {Leg: &Leg{Start: 1}}, {Leg: &Leg{Start: 2}}}
	unknown := []Start{{Ready: 60 * s}, {At: 100 * s, Ready: 110 * s}}
	for _, row := range []struct {
		name   string
		starts []Start
		rounds []*Round
		metric string
		want   Gauge
		why    string
	}{
		{"cold", starts, legs, "start_cold", Gauge{N: 1, Mean: 60, Min: 60, Max: 60}, ""},
		{"warm", starts, legs, "start_warm", Gauge{N: 2, Mean: 25, Min: 20, Max: 30}, ""}, // (20 + 30) / 2
		{"rounds without legs, by time", starts, []*Round{{Start: 101 * s}, {Start: 150 * s}, {Start: 221 * s}}, "start_warm", Gauge{N: 1, Mean: 20, Min: 20, Max: 20}, ""},
		{"of unknown kind, the first is cold", unknown, []*Round{{Start: 61 * s}, {Start: 111 * s}}, "start_warm", Gauge{N: 1, Mean: 10, Min: 10, Max: 10}, ""},
		{"no warm one", starts[:1], legs[:1], "start_warm", Gauge{}, "no start was warm: each was the first since the machine booted"},
		{"no cold one", starts[1:2], legs[:1], "start_cold", Gauge{}, "no start was cold: the machine had started the server before"},
		{"no start", nil, legs, "start_warm", Gauge{}, "tokgate did not start the server"},
	} {
		run := &Run{Servers: []*ServerRun{{Address: "vllm", Starts: row.starts}}}
		l := run.WithStarts(&Level{Server: "vllm", Rounds: row.rounds})
		if g, why := l.Gauge(row.metric); g != row.want || why != row.why {
			t.Errorf("%s: %+v, %q; want %+v, %q", row.name, g, why, row.want, row.why)
		}
	}
}
