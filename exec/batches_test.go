package exec_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// batched returns a closed loop whose level is one window of batches.
func batched(n, requests, batches int) *plan.Load {
	l := closedLoad(n, requests, 1, 2, 3)
	l.Levels[0].Batches, l.Levels[0].Rounds = true, batches
	return l
}

// TestWindowOfBatches runs four slots and ten batches of eight requests. Each request takes a second.
func TestWindowOfBatches(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		b := newBench(t, c, planOf(1, batched(4, 80, 10)), steady(s, 0))
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		l := run.Levels[0]
		if !l.Batches || len(l.Rounds) != 10 || l.Due() != 80 {
			t.Fatalf("batches %v, %d of them with %d requests; want 10 with 80", l.Batches, len(l.Rounds), l.Due())
		}
		warm, fillers := 0, 0
		for i, r := range l.Rounds {
			must.Hold(t, r.Index == i && r.Complete && r.Stopped == "" && r.Due == 8 && r.Seed == int64(1+i%3) && r.Busy >= 0.999, "batch %d: %+v", i, r)
			if i > 0 && r.WindowStart != l.Rounds[i-1].WindowEnd {
				t.Errorf("batch %d begins at %v, and the one before ends at %v", i, r.WindowStart, l.Rounds[i-1].WindowEnd)
			}
			// Eight requests of four slots take two seconds.
			d := r.WindowEnd - r.WindowStart
			must.Hold(t, d >= 2*s-100*time.Millisecond && d <= 2*s+100*time.Millisecond, "batch %d lasts %v, want 2s", i, d)
			for j, x := range r.MeasuredSamples() {
				must.Hold(t, x.Order == j && x.Round == i && !x.FromDue, "batch %d, request %d: %+v", i, j, x)
			}
			for _, x := range r.Samples {
				switch x.Phase {
				case metric.Warmup:
					warm++
				case metric.Filler:
					fillers++
				}
			}
		}
		// The probe and one wave of warm-up; at most a wave of fillers at the end.
		must.Hold(t, warm >= 5 && warm <= 9 && fillers <= 4, "%d warm-up requests and %d fillers for 80 measured ones", warm, fillers)
		must.Hold(t, b.most == 4, "%d requests in flight at most, want 4", b.most)
	})
}

// The load goes on while the level is judged, and no ramp is paid again. When a look decides, what
// is in flight is cancelled.
func TestLooksIntoAWindow(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		p := gated(batched(4, 200, 20), plan.Extend)
		b := newBench(t, c, p, steady(s, 0))
		var seen []int
		b.Judge = func(w *plan.Workload, l *metric.Level, look exec.Look) exec.Judgement {
			got := len(l.MeasuredSamples())
			must.Hold(t, got == look.Requests && l.Rounds[len(l.Rounds)-1].Complete, "a look at %d requests finds %d", look.Requests, got)
			if seen = append(seen, look.Requests); look.Requests == 400 {
				return exec.Judgement{Outcome: metric.Pass}
			}
			return exec.Judgement{Outcome: metric.Inconclusive, Needs: 50}
		}
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		l := run.Levels[0]
		must.Hold(t, slices.Equal(seen, []int{50, 70, 100, 140, 200, 400}), "looks at %v requests", seen)
		warm := phases(l)[metric.Warmup]
		must.Hold(t, warm <= 9, "%d warm-up requests, want one ramp", warm)
		for i, r := range l.Rounds {
			must.Hold(t, r.Index == i && r.Complete, "batch %d: index %d, complete %v, stopped %q", i, r.Index, r.Complete, r.Stopped)
		}
		// The window went on across the looks on the way. After the last planned batch there were only
		// fillers until the level was extended.
		for i, r := range l.Rounds[:20] {
			must.Hold(t, i <= 0 || r.WindowStart == l.Rounds[i-1].WindowEnd, "a gap before batch %d", i)
		}
	})
}

func phases(l *metric.Level) map[metric.Phase]int {
	out := map[metric.Phase]int{}
	for _, r := range l.Rounds {
		for _, x := range r.Samples {
			out[x.Phase]++
		}
	}
	return out
}

// A look that decides ends the window at once. The batches that had begun stay in the recording.
func TestAWindowEndsEarly(t *testing.T) {
	p := gated(batched(4, 200, 20), plan.Stop)
	b := newBench(t, clock.NewVirtual(), p, steady(s, 0))
	b.Judge = func(_ *plan.Workload, _ *metric.Level, look exec.Look) exec.Judgement {
		if look.Requests < 100 {
			return exec.Judgement{Outcome: metric.Inconclusive}
		}
		return exec.Judgement{Outcome: metric.Fail}
	}
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	l := run.Levels[0]
	must.Need(t, len(l.Looks) == 3 && l.Looks[2].Requests == 100 && l.Looks[2].Outcome == metric.Fail, "looks %+v", l.Looks)
	n := len(l.Rounds)
	must.Need(t, n >= 11 && n <= 12, "%d batches, want the ten that were judged and what had begun", n)
	for i, r := range l.Rounds {
		judged := i < 10
		must.Hold(t, r.Complete == judged && (r.Stopped == "the level ended early") != judged, "batch %d: complete %v, stopped %q", i, r.Complete, r.Stopped)
	}
	must.Hold(t, len(b.requests) <= 100+5+4+8, "%d requests were sent for 100 that count", len(b.requests))
}

// A disturbance voids every batch that had a request in flight meanwhile, and others are measured at
// the end in their place.
func TestDisturbedBatches(t *testing.T) {
	p := gated(batched(4, 80, 10), plan.Stop)
	b := newBench(t, clock.NewVirtual(), p, steady(s, 0))
	begun := 0
	b.Meter = func() func() metric.Health {
		begun++
		health := metric.Health{CPU: -1}
		if begun == 5 || begun == 6 { // the first meter is that of the warm-up
			health.GCPause = s
		}
		return func() metric.Health { return health }
	}
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	l := run.Levels[0]
	var counted, voided []int
	for _, r := range l.Rounds {
		counted = append(counted, r.Index)
	}
	for _, r := range l.Voided {
		voided = append(voided, r.Index)
	}
	if !slices.Equal(voided, []int{3, 4}) || !slices.Equal(counted, []int{0, 1, 2, 5, 6, 7, 8, 9, 10, 11}) {
		t.Errorf("batches %v count, and %v are void", counted, voided)
	}
	for _, r := range append(l.Rounds, l.Voided...) {
		if !r.Complete || r.Due != 8 || (r.Void != "") != slices.Contains(voided, r.Index) {
			t.Errorf("batch %d: %d requests, complete %v, void %q", r.Index, r.Due, r.Complete, r.Void)
		}
	}
}

// TestBatchesByTime divides 20 s of load into ten batches.
func TestBatchesByTime(t *testing.T) {
	load := batched(4, 40, 10)
	load.Levels[0].Duration = 20 * s
	b := newBench(t, clock.NewVirtual(), planOf(1, load), steady(s, 0))
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	l := run.Levels[0]
	must.Need(t, len(l.Rounds) == 10, "%d batches, want 10", len(l.Rounds))
	for i, r := range l.Rounds {
		if !r.Complete || r.Due < 7 || r.Due > 9 || r.Time != 2*s {
			t.Errorf("batch %d: %d requests in %v, complete %v, %q", i, r.Due, r.Time, r.Complete, r.Stopped)
		}
	}
	d := l.Rounds[9].WindowEnd - l.Rounds[0].WindowStart
	must.Hold(t, d >= 20*s && d <= 21*s, "the window lasts %v, want 20s", d)
}

// A window that is cut short has the batches that had begun.
func TestAWindowIsCutShort(t *testing.T) {
	b := newBench(t, clock.NewVirtual(), planOf(1, batched(4, 80, 10)), steady(s, 0))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.Clock.Timer(9*s, cancel)
	run := must.Get(exec.Run(ctx, b.Config))(t)
	l := run.Levels[0]
	for i, r := range l.Rounds {
		if last := i >= len(l.Rounds)-2; !last && !r.Complete || i == len(l.Rounds)-1 && (r.Complete || r.Stopped != exec.StoppedInterrupted) {
			t.Errorf("batch %d: complete %v, stopped %q", i, r.Complete, r.Stopped)
		}
	}
	must.Hold(t, len(l.Rounds) >= 3 && len(l.Rounds) <= 5, "%d batches began", len(l.Rounds))
}
