package exec_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// replayed replays a stretch of rows at the given speed, and returns the level.
func replayed(t *testing.T, c clock.Clock, rows []traffic.Recorded, s traffic.Stretch, speed float64, context int) *metric.Level {
	t.Helper()
	r := must.Get((&traffic.Trace{Path: "a.jsonl", Format: "mooncake", Block: 512, Rows: rows}).Replay(s))(t)
	load := rateLoad(r.Rate()*speed, r.Due, min(10, r.Due))
	load.Open.MaxInFlight, load.Open.Trace = 4096, r
	load.Levels[0].Name, load.Levels[0].Speedup = plan.TraceName(speed), speed
	b := newBench(t, c, planOf(3, load), steady(20*time.Millisecond, time.Millisecond))
	b.target.Context = context
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	if len(run.Levels) != 1 || run.Levels[0].Skipped != "" {
		t.Fatalf("%d levels: a trace has no saturation; %s", len(run.Levels), run.Levels[0].Skipped)
	}
	return run.Levels[0]
}

// The replay sends the requests that a trace has from 2 s to 8 s. It sends them at their recorded
// times and with their recorded lengths. The second before is the warm-up. Later requests do not
// count.
func TestReplay(t *testing.T) {
	for _, speed := range []float64{1, 2.5} {
		onBoth(t, func(t *testing.T, c clock.Clock) {
			random := rand.New(rand.NewPCG(1, 2))
			var rows []traffic.Recorded
			for at, i := time.Duration(0), 0; at < 10*time.Second; i++ {
				rows = append(rows, traffic.Recorded{Line: i + 1, At: at, Input: 1 + random.IntN(9000), Output: 1 + random.IntN(9), Parent: -1, Wait: -1})
				at += time.Duration(random.ExpFloat64() * 5e6)
			}
			const from, to = 2 * time.Second, 8 * time.Second
			l := replayed(t, c, rows, traffic.Stretch{From: from, To: to}, speed, 0)
			begin, before, after, judged := l.Rounds[0].WindowStart, 0, 0, map[string]bool{}
			for _, r := range l.Rounds {
				for _, s := range r.Samples {
					switch s.Phase {
					case metric.Warmup:
						before++
						continue
					case metric.Filler:
						after++
						continue
					}
					judged[fmt.Sprint(s.Scheduled-begin, s.InputAsked, s.OutputAsked)] = true
					lag := s.Sent - s.Scheduled
					must.Need(t, lag >= 0 && lag <= time.Millisecond, "sent %v after it was due", lag)
				}
			}
			want := map[string]bool{}
			for _, row := range rows {
				if row.At >= from && row.At < to {
					want[fmt.Sprint(time.Duration(float64(row.At-from)/speed), row.Input, row.Output)] = true
				}
			}
			must.Same(t, "", want, judged)
			must.Hold(t, len(l.Rounds) == 10 && before != 0 && after != 0, "%d rounds, %d requests before and %d after", len(l.Rounds), before, after)
		})
	}
}

// A replay sends each turn of a session only after the answer to the turn before. The second of the
// four turns starts 100 ms after the first answer, because its tool took so long. The third starts
// at its recorded time. The fourth was recorded before the answer to the third, but waits for it.
func TestReplaySessions(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		const ms = time.Millisecond
		row := func(line int, at time.Duration, parent int, wait time.Duration) traffic.Recorded {
			return traffic.Recorded{Line: line, At: at, Input: 10 * line, Output: 31, Parent: parent, Wait: wait, Session: 1}
		}
		l := replayed(t, c, []traffic.Recorded{
			row(1, 0, -1, -1), row(2, 70*ms, 0, 100*ms), row(3, 300*ms, 1, -1), row(4, 310*ms, 2, -1), row(5, 320*ms, -1, -1),
		}, traffic.Stretch{}, 1, 0)
		// The keys are the prompt lengths. An answer of 31 tokens takes 50 ms.
		want := map[int]time.Duration{10: 0, 20: 50*ms + 100*ms, 30: 300 * ms, 40: 350 * ms, 50: 320 * ms}
		got := map[int]time.Duration{}
		for _, r := range l.Rounds {
			for _, s := range r.MeasuredSamples() {
				got[s.InputAsked] = s.Scheduled - l.Rounds[0].WindowStart
			}
		}
		must.Same(t, "", want, got)
	})
}

// Two of three requests exceed a context of 100 tokens. They are cut to fit, and counted.
func TestReplayCut(t *testing.T) {
	rows := []traffic.Recorded{
		{Line: 1, Input: 90, Output: 10, Parent: -1, Wait: -1},
		{Line: 2, At: time.Second, Input: 900, Output: 10, Parent: -1, Wait: -1},
		{Line: 3, At: 2 * time.Second, Input: 80, Output: 90, Parent: -1, Wait: -1},
	}
	l := replayed(t, clock.NewVirtual(), rows, traffic.Stretch{Truncate: true}, 1, 100)
	var got [][2]int
	for _, r := range l.Rounds {
		for _, s := range r.MeasuredSamples() {
			got = append(got, [2]int{s.InputAsked, s.OutputAsked})
		}
	}
	must.Same(t, "", [][2]int{{90, 10}, {90, 10}, {50, 50}}, got)
	must.Same(t, "", []string{"replayed a.jsonl (mooncake), 3 requests", "2 of 3 requests were cut to the server's context of 100 tokens"}, l.Notes)
}

// In each of the four rounds of a comparison, both servers replay the same quarter of the recorded
// stretch. So each server gets every request of the stretch once, at the recorded intervals.
func TestReplayCompared(t *testing.T) {
	var rows []traffic.Recorded
	for i := range 60 {
		rows = append(rows, traffic.Recorded{Line: i + 1, At: time.Duration(i*i) * 10 * time.Millisecond, Input: 100 + i, Output: 2, Parent: -1, Wait: -1})
	}
	r := must.Get((&traffic.Trace{Path: "a.jsonl", Format: "columns", Rows: rows}).Replay(traffic.Stretch{From: rows[10].At, To: rows[50].At}))(t)
	d := newDuel(4, plan.RestartLeg, "a", "b")
	load := rateLoad(r.Rate(), r.Due, 4)
	load.Open.MaxInFlight, load.Open.Trace = 4096, r
	load.Levels[0].Name, load.Levels[0].Speedup = plan.TraceName(1), 1
	d.Workloads[0].Input, d.Workloads[0].Loads = 0, []*plan.Load{load}
	sent := map[string][]*metric.Sample{}
	d.observed = func(s *metric.Sample) {
		if s.Phase == metric.Measured {
			sent[s.Server] = append(sent[s.Server], s)
		}
	}
	d.run(t, nil)
	for server, got := range sent {
		slices.SortFunc(got, func(a, b *metric.Sample) int { return a.InputAsked - b.InputAsked })
		for i, s := range got {
			row := 10 + i
			if s.InputAsked != 100+row || s.Round != i/10 {
				t.Fatalf("%s: request %d has %d tokens in round %d, want row %d in round %d", server, i, s.InputAsked, s.Round, row, i/10)
			}
			if i%10 > 0 && s.Scheduled-got[i-1].Scheduled != rows[row].At-rows[row-1].At {
				t.Errorf("%s: row %d was due %v after the one before", server, row, s.Scheduled-got[i-1].Scheduled)
			}
		}
		must.Hold(t, len(got) == 40, "%s was sent %d requests of the stretch's 40", server, len(got))
	}
	must.Hold(t, len(sent) == 2, "%d servers were sent the stretch", len(sent))
}
