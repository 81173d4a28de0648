package exec_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// timedLoad returns a closed loop of n slots that lasts for the time d. It has one round for each
// seed.
func timedLoad(n int, d time.Duration, seeds ...int64) *plan.Load {
	l := closedLoad(n, n*len(seeds), seeds...)
	l.Levels[0].Duration = d
	return l
}

func TestRoundsByTime(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		// The 30 s are two rounds of 15 s. A request takes 1 s and 100 gaps of 10 ms, so a slot
		// starts one every 2 s. The 4 slots begin at 0, 0.5, 1 and 1.5 s, so they start 8 + 8 + 7 +
		// 7 requests in a round.
		b := newBench(t, c, planOf(101, timedLoad(4, 30*s, 1, 2)), steady(s, 10*ms))
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		got := len(run.Levels[0].Rounds)
		must.Need(t, got == 2, "%d rounds", got)
		for i, r := range run.Levels[0].Rounds {
			measured := r.MeasuredSamples()
			must.Hold(t, len(measured) == r.Due && r.Complete && r.Time == 15*s, "round %d: %d measured, %+v", i, len(measured), r)
			must.Hold(t, r.Due >= 30 && r.Due <= 31, "round %d: %d requests, want 30, or 31 where the last tick counts", i, r.Due)
			for _, x := range measured {
				must.Hold(t, x.Sent-r.Start <= 15*s, "round %d: one was sent after %v", i, x.Sent-r.Start)
			}
			must.Hold(t, r.Busy >= 1-1e-9, "round %d: busy %v", i, r.Busy)
		}
	})
}

// TestTimeIsTooShort checks that even a very short round has one request for each slot.
func TestTimeIsTooShort(t *testing.T) {
	b := newBench(t, clock.NewVirtual(), planOf(101, timedLoad(4, s, 1, 2)), steady(s, 10*ms))
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	for i, r := range run.Levels[0].Rounds {
		must.Hold(t, r.Due == 4 && r.Complete, "round %d: %+v", i, r)
	}
}

// TestTimeIsCutShort checks that an interrupted round does not count as complete.
func TestTimeIsCutShort(t *testing.T) {
	b := newBench(t, clock.NewVirtual(), planOf(101, timedLoad(4, 60*s, 1, 2)), steady(s, 10*ms))
	drain, end := context.WithCancel(t.Context())
	b.Drain = drain
	b.Clock.Timer(20*s, end)
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	rounds := run.Levels[0].Rounds
	if len(rounds) != 1 || rounds[0].Complete || rounds[0].Stopped == "" || len(rounds[0].MeasuredSamples()) != rounds[0].Due {
		t.Errorf("%d rounds, %+v", len(rounds), rounds[0])
	}
}

// TestLooksByTime checks that a level with a duration runs for all of it, unless it fails.
func TestLooksByTime(t *testing.T) {
	tens := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	fail, pass := exec.Judgement{Outcome: metric.Fail}, exec.Judgement{Outcome: metric.Pass}
	more := exec.Judgement{Outcome: metric.Inconclusive, Needs: 50}
	for _, tt := range []struct {
		name   string
		on     plan.OnInconclusive
		most   int
		script []exec.Judgement
		looks  []string // each look at the data: "rounds/planned share outcome"
		note   string
	}{
		{"a pass half-way does not end it", plan.Stop, 0, []exec.Judgement{pass}, []string{"5/10 0.00 inconclusive", "10/1 1.00 pending"}, ""},
		{"a failure does", plan.Stop, 0, []exec.Judgement{fail}, []string{"5/10 0.00 fail"}, "the level failed after 5 of 10 rounds and ended early"},
		{"extended", plan.Extend, 0, []exec.Judgement{more, more, pass}, []string{"5/30 0.00 inconclusive", "10/3 0.33 inconclusive", "20/3 0.67 pass"}, ""},
		{"max_requests", plan.Extend, 500, []exec.Judgement{more, more}, []string{"5/30 0.00 inconclusive", "10/3 0.33 inconclusive"}, "not extended: after 300"},
	} {
		p := gated(timedLoad(4, 150*s, tens...), tt.on)
		p.Workloads[0].Policy.MaxRequests = tt.most
		b := newBench(t, clock.NewVirtual(), p, steady(2*s, 0))
		var rounds []int
		b.Judge = func(_ *plan.Workload, l *metric.Level, look exec.Look) exec.Judgement {
			must.Hold(t, len(l.MeasuredSamples()) == look.Requests, "%s: a look at %d requests finds %d", tt.name, look.Requests, len(l.MeasuredSamples()))
			rounds = append(rounds, len(l.Rounds))
			return tt.script[len(rounds)-1]
		}
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		l := run.Levels[0]
		var looks []string
		for i, k := range l.Looks {
			n := len(l.Rounds)
			if i < len(rounds) {
				n = rounds[i]
			}
			looks = append(looks, fmt.Sprintf("%d/%d %.2f %s", n, k.Planned, k.Spent, k.Outcome))
		}
		must.Same(t, tt.name+": looks (-want +got)", tt.looks, looks)
		got := strings.Join(l.Notes, "; ")
		must.Hold(t, strings.HasPrefix(got, tt.note) && (tt.note != "" || got == ""), "%s: notes %q, want %q", tt.name, got, tt.note)
	}
}
