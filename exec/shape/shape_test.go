package shape

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

const s = time.Second

// played is what a shape sent, in order of start.
type played struct {
	turns        []load.Ticket
	starts, ends []time.Duration
	last         Step // Over, GiveUp, or the Wait after which nothing comes
}

// play walks a shape from the time 1 s on, with requests of given durations. A negative duration
// means that the request fails after that time. Starts and ends count from the beginning.
func play(t *testing.T, shape Shape, duration func(load.Ticket) time.Duration) (out played) {
	t.Helper()
	type flight struct {
		turn  Due
		start time.Duration
		end   time.Duration
	}
	var flying []flight
	now := s
	for range 200_000 {
		step := shape.Next(now)
		switch step.Do {
		case Send:
			took := duration(step.Due.Ticket)
			f := flight{step.Due, now, now + max(took, -took)}
			out.turns, out.starts, out.ends = append(out.turns, f.turn.Ticket), append(out.starts, now-s), append(out.ends, f.end-s)
			flying = append(flying, f)
			slices.SortStableFunc(flying, func(a, b flight) int { return cmp.Compare(a.end, b.end) })
		case Over, GiveUp:
			out.last = step
			return out
		case Wait:
			if len(flying) == 0 && step.At == 0 {
				out.last = step
				return out
			}
			if len(flying) > 0 && (step.At == 0 || flying[0].end <= step.At) {
				f := flying[0]
				flying, now = flying[1:], f.end
				x := &metric.Sample{Slot: f.turn.Slot, Phase: f.turn.Phase, Scheduled: f.start, Sent: f.start, End: f.end}
				if duration(f.turn.Ticket) < 0 {
					x.Failure = &metric.Failure{Kind: metric.FailTimeout, Message: "too slow"}
				}
				shape.Ended(now, f.turn, x)
			} else {
				now = step.At
			}
		}
	}
	t.Fatal("the load does not end")
	return out
}

// loop returns a unit of a closed loop whose earlier requests took a known time.
func loop(c cycle) *closed {
	return newClosed(Env{Case: Case{Load: &plan.Load{}, Level: plan.Level{N: c.slots}}}, c)
}

func ended(p played) bool { return p.last.Do == Over }

func TestClosedRound(t *testing.T) {
	// Two slots start 1 s apart, a request takes 2 s, and 3 requests are measured. The numbers are
	// seconds; w is the warm-up, m is measured, f is filler:
	//
	//	slot 0  w0 0–2  m0 2–4  m2 4–6
	//	slot 1     w1 1–3  m1 3–5  f0 5–
	p := play(t, loop(cycle{slots: 2, due: 3, warmup: 2, fill: true, stagger: s}), always(2*s))
	want := []load.Ticket{
		turn(0, metric.Warmup, 0), turn(1, metric.Warmup, 1),
		turn(0, metric.Measured, 0), turn(1, metric.Measured, 1), turn(0, metric.Measured, 2),
		turn(1, metric.Filler, 0),
	}
	must.Same(t, "turns (-want +got):\n", "", diff.Diff(want, p.turns))
	if want := []time.Duration{0, s, 2 * s, 3 * s, 4 * s, 5 * s}; !slices.Equal(p.starts, want) {
		t.Errorf("starts %v, want %v", p.starts, want)
	}
	must.Hold(t, ended(p), "after the last measured request: %+v, want Over", p.last)
}

func turn(slot int, p metric.Phase, order int) load.Ticket {
	return load.Ticket{Slot: slot, Phase: p, Order: order}
}

func always(d time.Duration) func(load.Ticket) time.Duration {
	return func(load.Ticket) time.Duration { return d }
}

func TestClosedPause(t *testing.T) {
	// A request takes 2 s, and a pause of 3 s follows, so one slot starts a request every 5 s.
	p := play(t, loop(cycle{slots: 1, due: 2, warmup: 1, fill: true, pause: 3 * s}), always(2*s))
	want := []time.Duration{0, 5 * s, 10 * s}
	must.Hold(t, slices.Equal(p.starts, want), "starts %v, want %v", p.starts, want)
}

func TestNothingIsMeasuredOnTheRamp(t *testing.T) {
	// Requests take 1 s, and the slots start 3 s apart: slot 0 warms up three times before
	// slot 1 starts.
	p := play(t, loop(cycle{slots: 2, due: 1, warmup: 2, fill: true, stagger: 3 * s}), always(s))
	for i, turn := range p.turns {
		if turn.Phase == metric.Measured && p.starts[i] < 3*s {
			t.Errorf("measured request at %v, before slot 1 started at 3s", p.starts[i])
		}
	}
	// At 3 s both slots are due. Slot 1 was due first, so it starts before slot 0 sends the
	// measured request.
	want := []load.Ticket{turn(0, metric.Warmup, 0), turn(0, metric.Warmup, 1), turn(0, metric.Warmup, 2), turn(1, metric.Warmup, 3), turn(0, metric.Measured, 0)}
	must.Same(t, "turns (-want +got):\n", "", diff.Diff(want, p.turns[:5]))
}

func TestExplicitWarmupIsSentExactly(t *testing.T) {
	for _, warmup := range []int{0, 1, 3, 4, 9} {
		p := play(t, loop(cycle{slots: 4, due: 8, warmup: warmup, stagger: 300 * time.Millisecond}), always(s))
		n := 0
		for _, turn := range p.turns {
			if turn.Phase == metric.Warmup {
				n++
			}
		}
		must.Hold(t, n == warmup, "warmup = %d: %d were sent", warmup, n)
	}
}

func TestDoomed(t *testing.T) {
	all := always(-s / 100)
	for _, tt := range []struct {
		slots, warmup, want int
	}{
		{8, 8, 16},  // two failed requests for each slot
		{2, 2, 10},  // at least ten
		{8, 20, 16}, // a larger warm-up changes nothing
		{4, 1, 10},  // slot 0 sends all warm-up requests, at least ten
	} {
		p := play(t, loop(cycle{slots: tt.slots, due: 300, warmup: tt.warmup, fill: tt.warmup == tt.slots, stagger: s / 10}), all)
		if p.last.Do != GiveUp || p.last.Why != "every warm-up request failed: too slow" {
			t.Errorf("%d slots: every warm-up failed, and the level is not given up: %+v", tt.slots, p.last)
		}
		for _, turn := range p.turns {
			must.Need(t, turn.Phase != metric.Measured, "%d slots: %+v was sent", tt.slots, turn)
		}
		// When the last failure comes, each other slot may have one more request in flight.
		if len(p.turns) < tt.want || len(p.turns) >= tt.want+tt.slots {
			t.Errorf("%d slots: given up after %d requests, want about %d", tt.slots, len(p.turns), tt.want)
		}
	}
	ramp := cycle{slots: 8, due: 30, warmup: 8, fill: true, stagger: s}
	proven := loop(ramp)
	proven.proven = true
	if p := play(t, proven, all); !ended(p) {
		t.Errorf("requests completed before: %+v, want Over", p.last)
	}
	p := play(t, loop(ramp), func(turn load.Ticket) time.Duration {
		if turn.Phase == metric.Warmup && turn.Slot != 5 {
			return -s / 100
		}
		return s
	})
	must.Hold(t, ended(p), "one warm-up completed: %+v, want Over", p.last)
	for i, turn := range p.turns {
		if turn.Phase == metric.Measured && p.starts[i] < 6*s {
			t.Errorf("measured request at %v, before a warm-up completed at 6s", p.starts[i])
		}
	}
	if p := play(t, loop(cycle{slots: 2, due: 4}), always(-s)); !ended(p) {
		t.Error("a round without warm-up must send what is due")
	}
}

// TestClosedInvariants runs random rounds. Each due request is sent once, in order, and at most
// all slots are in flight. With fill, without pauses and failures, exactly all slots are in flight
// from the first measured start to the last measured end.
func TestClosedInvariants(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	for range 300 {
		c := cycle{
			slots: 1 + rng.IntN(12), due: 1 + rng.IntN(60), fill: true,
			stagger: time.Duration(rng.IntN(2000)) * time.Millisecond,
		}
		c.warmup = c.slots
		took := map[load.Ticket]time.Duration{}
		p := play(t, loop(c), func(turn load.Ticket) time.Duration {
			if _, ok := took[turn]; !ok {
				took[turn] = time.Duration(1 + rng.IntN(3000)*int(time.Millisecond))
			}
			return took[turn]
		})
		var measured []int
		first, last := time.Duration(math.MaxInt64), time.Duration(0)
		for i, turn := range p.turns {
			if turn.Phase == metric.Measured {
				measured = append(measured, turn.Order)
				first, last = min(first, p.starts[i]), max(last, p.ends[i])
			}
		}
		must.Need(t, len(measured) == c.due && slices.IsSorted(measured), "%+v: measured orders %v, want 0 to %d in order", c, measured, c.due-1)
		for i := range p.turns { // the number of requests in flight changes only at starts and ends
			if p.starts[i] < first || p.starts[i] >= last {
				continue
			}
			n := 0
			for j := range p.turns {
				if p.starts[j] <= p.starts[i] && p.starts[i] < p.ends[j] {
					n++
				}
			}
			if n != c.slots {
				t.Fatalf("%+v: %d in flight at %v, want %d (measured from %v to %v)", c, n, p.starts[i], c.slots, first, last)
			}
		}
	}
}

// TestByTime checks that a unit with a duration goes on after the requests due. It ends when its
// time is over and all its requests have ended.
func TestByTime(t *testing.T) {
	for _, tt := range []struct {
		time time.Duration
		want int
	}{
		{5 * s, 9}, // three waves begin at 0, 2 and 4 s
		{s, 6},     // two waves, to have the six requests due
	} {
		c := loop(cycle{slots: 3, due: 6, lasts: tt.time})
		p := play(t, c, always(2*s))
		u := c.Units(0, nil)[0]
		must.Hold(t, ended(p) && u.Due == tt.want && !u.Open, "%v: %d due, open %v, %+v; want %d due", tt.time, u.Due, u.Open, p.last, tt.want)
	}
	// A look while requests are in flight: the unit is open.
	c := loop(cycle{slots: 3, due: 3, lasts: 5 * s})
	for c.Next(s).Do != Wait {
	}
	u := c.Units(s, nil)[0]
	must.Hold(t, u.Open && u.Due == 3, "in flight: %+v, want an open unit of 3", u)
	// Each wave takes 2 s, and a pause of 1 s follows. So a minute has 20 waves, and the wave that
	// is running when the minute ends completes.
	of := cycle{slots: 3, due: 3, lasts: time.Minute, pause: s}
	got := of.requests(2 * s)
	must.Hold(t, got == 63, "%d requests, want 63", got)
	if of.requests(0) != 3 || of.takes(0) != time.Minute {
		t.Errorf("of an unknown duration %d in %v", of.requests(0), of.takes(0))
	}
}

func TestEstimates(t *testing.T) {
	c := cycle{slots: 5, pause: s}
	if got := c.spread(9 * s); got != 2*s { // (9 s + 1 s) / 5 slots
		t.Errorf("spread gave %v, want 2s", got)
	}
	got := c.spread(0)
	must.Hold(t, got == 0, "spread of an unknown duration gave %v, want 0", got)
	// 4 slots start 1 s apart, so the ramp takes 3 s. One wave of warm-up and ⌈10/4⌉ = 3
	// waves of measured requests take 4 s each.
	c = cycle{slots: 4, due: 10, warmup: 4, stagger: s}
	must.Same(t, "takes gave", 19*s, c.takes(4*s))
	if got := c.takes(0); got != 0 {
		t.Errorf("takes of an unknown duration gave %v, want 0", got)
	}
}

// The shapes of all kinds of load are known, for runs and for searches.
func TestKinds(t *testing.T) {
	for _, k := range []metric.LoadKind{metric.ClosedLoop, metric.Burst, metric.Users, metric.OpenLoop} {
		kind := Of(Case{Load: &plan.Load{Kind: k}})
		must.Hold(t, kind != nil && kind.Windowed == k.Windowed(), "%s: %+v", k, kind)
	}
	for _, k := range []metric.LoadKind{metric.ClosedLoop, metric.Burst, metric.Users, metric.OpenLoop, metric.Speedup} {
		must.Hold(t, SearchOver(k).Load != nil, "%s cannot be searched", k)
	}
}

// A probe of a search ends once more than a hundredth of its 2,000 requests were sent so late that its
// rate is lost. The limit is 20 ms, or a tenth of the slowest TTFT.
func TestProbeBreaksOffWhenItsRateIsLost(t *testing.T) {
	for _, tt := range []struct {
		name  string
		probe bool
		lag   time.Duration
		ttft  time.Duration
		after int // late requests; 0: never
	}{
		{"late", true, 50 * time.Millisecond, 100 * time.Millisecond, 21},
		{"in time", true, 15 * time.Millisecond, 100 * time.Millisecond, 0},
		{"a slow server", true, 50 * time.Millisecond, s, 0},
		{"a level of the plan", false, 50 * time.Millisecond, 100 * time.Millisecond, 0},
	} {
		w := &window{Env: Env{Probe: tt.probe, Parts: []int{1000, 1000}}, arrivals: &schedule{of: load.Open{Rate: 10}}, pending: 2000}
		after := 0
		for i := range 2000 {
			x := &metric.Sample{Scheduled: time.Duration(i) * s, Sent: time.Duration(i)*s + tt.lag}
			x.First = x.Scheduled + tt.ttft
			w.Ended(x.First, Due{Ticket: load.Ticket{Phase: metric.Measured}}, x)
			if step, ok := w.steps.next(); ok {
				if after = i + 1; step.Do != GiveUp || step.Why != "21 of 2000 requests were sent late" {
					t.Errorf("%s: %+v", tt.name, step)
				}
				break
			}
		}
		if after != tt.after {
			t.Errorf("%s: it ends after %d requests, want %d", tt.name, after, tt.after)
		}
	}
}
