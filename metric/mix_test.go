package metric

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/internal/must"
)

// mixture returns a level of two rounds, in which every third request belongs to the part "long".
// One request of the second round is missing.
func mixture() *Level {
	l := &Level{Server: "sim", Workload: "production", Name: "4", Kind: ClosedLoop, N: 4,
		Parts: []*Level{{Server: "sim", Workload: "production/chat", Name: "4", Of: "production", Share: 2. / 3}, {Server: "sim", Workload: "production/long", Name: "4", Of: "production", Share: 1. / 3}}}
	for k := range 2 {
		r := &Round{Index: k, Due: 6, Start: time.Duration(k+1) * time.Second, Complete: true}
		for i := range 6 {
			s := &Sample{Server: "sim", Workload: "production", Part: "chat", Level: "4", Round: k, Order: i, Phase: Measured,
				Scheduled: r.Start + time.Duration(i), End: r.Start + time.Duration(100-i)}
			if i%3 == 2 {
				s.Part = "long"
			}
			r.End = max(r.End, s.End)
			if k == 1 && i == 5 {
				continue
			}
			r.Samples = append([]*Sample{s}, r.Samples...)
		}
		r.Samples = append(r.Samples, &Sample{Workload: "production", Part: "long", Level: "4", Round: k, Phase: Warmup, End: 1})
		l.Rounds = append(l.Rounds, r)
	}
	return l
}

// Divided numbers the requests of each part of a mix from 0. A request that a round's record lacks may
// belong to any part.
func TestDivided(t *testing.T) {
	l := mixture()
	all := (&Run{Levels: []*Level{l}}).All()
	must.Need(t, len(all) == 3 && all[0] == l, "%d levels", len(all))
	chat, long := all[1], all[2]
	type request struct {
		order int
		phase Phase
		of    string
	}
	var got [][]request
	for _, r := range long.Rounds {
		var of []request
		for _, s := range r.Samples {
			of = append(of, request{s.Order, s.Phase, s.Workload})
		}
		got = append(got, of)
	}
	want := [][]request{
		{{1, Measured, "production/long"}, {0, Measured, "production/long"}, {0, Warmup, "production/long"}},
		{{0, Measured, "production/long"}, {0, Warmup, "production/long"}},
	}
	must.Same(t, "", want, got, cmp.AllowUnexported(request{}))
	if long.Rounds[0].Due != 2 || long.Rounds[1].Due != 2 || chat.Rounds[1].Due != 5 {
		t.Errorf("due %d, %d and %d: one of 6 left no record", long.Rounds[0].Due, long.Rounds[1].Due, chat.Rounds[1].Due)
	}
	r := long.Rounds[0]
	must.Hold(t, r.Start == time.Second+2 && r.End == time.Second+98, "from %v to %v, its own requests from the third to the end of that", r.Start, r.End)
	if long.N != 4 || long.AtOnce() != 1 || chat.AtOnce() != 3 || l.AtOnce() != 4 {
		t.Errorf("%d, %d, %d and %d at once", long.N, long.AtOnce(), chat.AtOnce(), l.AtOnce())
	}
	if s := l.Rounds[0].Samples[0]; s.Workload != "production" || s.Part != "long" {
		t.Errorf("the mix's own request is now of %s, part %q", s.Workload, s.Part)
	}
}

func TestOfParts(t *testing.T) {
	for name, want := range map[string]bool{"ttft": true, "throughput": true, "success": true, "waiting": false, "power": false, "cost_per_hour": false, "synchrony": false} {
		must.Same(t, name, want, OfParts(MustLookup(name)))
	}
	v := mixture().Divided()[1].Value("preemptions", Steady, nil, nil)
	must.Hold(t, !v.OK, "a part has preemptions: %v", v)
}
