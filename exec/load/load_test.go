package load_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/quick"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
)

const s = time.Second

func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		total, rounds int
		want          []int
	}{
		{300, 5, []int{60, 60, 60, 60, 60}},
		{10, 4, []int{3, 3, 2, 2}}, // 10 = 2·4 + 2, so two slots get a third request
		{2, 3, []int{1, 1, 0}},
		{0, 2, []int{0, 0}},
		{7, 1, []int{7}},
	} {
		if got := load.Split(tt.total, tt.rounds); !slices.Equal(got, tt.want) {
			t.Errorf("Split(%d, %d) = %v, want %v", tt.total, tt.rounds, got, tt.want)
		}
	}
	sums := func(total, rounds uint16) bool {
		shares := load.Split(int(total), int(rounds%1000)+1)
		sum := 0
		for _, n := range shares {
			sum += n
		}
		return sum == int(total) && shares[0]-shares[len(shares)-1] <= 1
	}
	if err := quick.Check(sums, nil); err != nil {
		t.Error(err)
	}
}

func TestLengthsRange(t *testing.T) {
	for _, tt := range []struct {
		mean      int
		jitter    float64
		low, high int
	}{
		{1024, 0.05, 973, 1075}, // 972.8 up, 1075.2 down
		{1024, 0, 1024, 1024},
		{10, 0.1, 9, 11},   // binary rounding gives the bounds 9.000…02 and 11.000…02
		{10, 0.04, 10, 10}, // 9.6 up, 10.4 down
		{1, 0.9, 1, 1},
		{3, 0.99, 1, 5}, // 0.03 up, 5.97 down
	} {
		low, high := load.Lengths{Mean: tt.mean, Jitter: tt.jitter}.Range()
		if low != tt.low || high != tt.high {
			t.Errorf("%d ± %g: got %d to %d, want %d to %d", tt.mean, tt.jitter, low, high, tt.low, tt.high)
		}
	}
}

func TestLengths(t *testing.T) {
	l := load.Lengths{Mean: 1000, Jitter: 0.1, Seed: 42, Workload: "chat", Level: "30"}
	a, b := l.Measured(60), l.Measured(60)
	if !slices.Equal(a, b) {
		t.Error("the same fields drew different lengths")
	}
	other := l
	other.Round, other.Seed = 1, 43
	c := other.Measured(60)
	if slices.Equal(a, c) {
		t.Error("another round drew the same order")
	}
	sorted := func(x []int) []int { x = slices.Clone(x); slices.Sort(x); return x }
	if diff := cmp.Diff(sorted(a), sorted(c)); diff != "" {
		t.Errorf("rounds of one size hold different amounts of work:\n%s", diff)
	}
	sum := 0
	for _, n := range a {
		sum += n
	}
	// The 60 lengths divide the range from 900 to 1100 evenly, so their mean is 1000. Each length
	// is rounded down by less than one token.
	if mean := float64(sum) / 60; math.Abs(mean-1000) > 1 {
		t.Errorf("the mean length is %g, want 1000 within a token", mean)
	}
	if got := (load.Lengths{Mean: 7}).Measured(3); !slices.Equal(got, []int{7, 7, 7}) {
		t.Errorf("without jitter got %v, want 7, 7, 7", got)
	}
}

func TestLengthsStayInRange(t *testing.T) {
	check := func(mean uint16, jitter float64, seed int64, n uint8) bool {
		l := load.Lengths{Mean: int(mean) + 1, Jitter: math.Mod(math.Abs(jitter), 1), Seed: seed}
		low, high := l.Range()
		lengths := append(l.Measured(int(n)), l.At(metric.Warmup, int(n)), l.At(metric.Filler, int(n)))
		return low >= 1 && slices.Min(lengths) >= low && slices.Max(lengths) <= high &&
			l.At(metric.Filler, int(n)) == lengths[len(lengths)-1]
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}

// play drives a loop with requests of given durations and returns the turns in order
// of start. A negative duration means that the request fails after that time.
func play(t *testing.T, c load.Closed, duration func(load.Turn) time.Duration) (turns []load.Turn, starts, ends []time.Duration, l *load.Loop) {
	t.Helper()
	type due struct {
		at   time.Duration
		slot int
		end  int // index of the turn that ends at this time; -1 if the slot is free to start one
	}
	l = c.Begin()
	var queue []due
	for slot := range c.Slots {
		queue = append(queue, due{c.First(slot), slot, -1})
	}
	var held []int
	for steps := 0; len(queue) > 0 && !l.Over() && !l.Doomed(); steps++ {
		if steps > 100_000 {
			t.Fatal("the loop does not end")
		}
		slices.SortStableFunc(queue, func(a, b due) int { return int(a.at - b.at) })
		d := queue[0]
		queue = queue[1:]
		if d.end >= 0 {
			failed := duration(turns[d.end]) < 0
			queue = append(queue, due{d.at + l.Ended(turns[d.end], failed), d.slot, -1})
			for _, slot := range held {
				queue = append(queue, due{d.at, slot, -1})
			}
			held = nil
			continue
		}
		turn, decision := l.Next(d.slot)
		switch decision {
		case load.Send:
			took := duration(turn)
			turns, starts, ends = append(turns, turn), append(starts, d.at), append(ends, d.at+max(took, -took))
			queue = append(queue, due{ends[len(ends)-1], d.slot, len(turns) - 1})
			for _, slot := range held {
				queue = append(queue, due{d.at, slot, -1})
			}
			held = nil
		case load.Hold:
			held = append(held, d.slot)
		}
	}
	return turns, starts, ends, l
}

func TestClosedRound(t *testing.T) {
	// Two slots start 1 s apart, a request takes 2 s, and 3 requests are measured. The numbers are
	// seconds; w is the warm-up, m is measured, f is filler:
	//
	//	slot 0  w0 0–2  m0 2–4  m2 4–6
	//	slot 1     w1 1–3  m1 3–5  f0 5–
	turns, starts, _, l := play(t,
		load.Closed{Slots: 2, Due: 3, Warmup: 2, Fill: true, Stagger: s},
		func(load.Turn) time.Duration { return 2 * s })
	want := []load.Turn{
		{0, metric.Warmup, 0}, {1, metric.Warmup, 1},
		{0, metric.Measured, 0}, {1, metric.Measured, 1}, {0, metric.Measured, 2},
		{1, metric.Filler, 0},
	}
	if diff := cmp.Diff(want, turns); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
	if want := []time.Duration{0, s, 2 * s, 3 * s, 4 * s, 5 * s}; !slices.Equal(starts, want) {
		t.Errorf("starts %v, want %v", starts, want)
	}
	if _, decision := l.Next(0); decision != load.Rest {
		t.Errorf("after the last measured request a slot is told %v, want Rest", decision)
	}
}

func TestClosedPause(t *testing.T) {
	// A request takes 2 s, and a pause of 3 s follows, so one slot starts a request every 5 s.
	_, starts, _, _ := play(t, load.Closed{Slots: 1, Due: 2, Warmup: 1, Pause: 3 * s},
		func(load.Turn) time.Duration { return 2 * s })
	if want := []time.Duration{0, 5 * s, 10 * s}; !slices.Equal(starts, want) {
		t.Errorf("starts %v, want %v", starts, want)
	}
}

func TestNothingIsMeasuredOnTheRamp(t *testing.T) {
	// Requests take 1 s, and the slots start 3 s apart: slot 0 warms up three times before
	// slot 1 starts.
	turns, starts, _, _ := play(t, load.Closed{Slots: 2, Due: 1, Warmup: 2, Fill: true, Stagger: 3 * s},
		func(load.Turn) time.Duration { return s })
	for i, turn := range turns {
		if turn.Phase == metric.Measured && starts[i] < 3*s {
			t.Errorf("measured request at %v, before slot 1 started at 3s", starts[i])
		}
	}
	// At 3 s both slots are due. Slot 1 was due first, so it starts before slot 0 sends the
	// measured request.
	want := []load.Turn{{0, metric.Warmup, 0}, {0, metric.Warmup, 1}, {0, metric.Warmup, 2}, {1, metric.Warmup, 3}, {0, metric.Measured, 0}}
	if diff := cmp.Diff(want, turns[:5]); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
}

func TestExplicitWarmupIsSentExactly(t *testing.T) {
	for _, warmup := range []int{0, 1, 3, 4, 9} {
		turns, _, _, _ := play(t, load.Closed{Slots: 4, Due: 8, Warmup: warmup, Stagger: 300 * time.Millisecond},
			func(turn load.Turn) time.Duration { return s })
		n := 0
		for _, turn := range turns {
			if turn.Phase == metric.Warmup {
				n++
			}
		}
		if n != warmup {
			t.Errorf("warmup = %d: %d were sent", warmup, n)
		}
	}
}

func TestDoomed(t *testing.T) {
	all := func(load.Turn) time.Duration { return -s / 100 }
	for _, tt := range []struct {
		slots, warmup, want int
	}{
		{8, 8, 16},  // two failed requests for each slot
		{2, 2, 10},  // at least ten
		{8, 20, 16}, // a larger Warmup changes nothing
		{4, 1, 10},  // slot 0 sends all warm-up requests, at least ten
	} {
		turns, _, _, l := play(t, load.Closed{Slots: tt.slots, Due: 300, Warmup: tt.warmup, Fill: tt.warmup == tt.slots, Stagger: s / 10}, all)
		if !l.Doomed() {
			t.Errorf("%d slots: every warm-up failed, and the level is not given up", tt.slots)
		}
		for _, turn := range turns {
			if turn.Phase == metric.Measured {
				t.Fatalf("%d slots: %+v was sent", tt.slots, turn)
			}
		}
		// When the last failure comes, each other slot may have one more request in flight.
		if len(turns) < tt.want || len(turns) >= tt.want+tt.slots {
			t.Errorf("%d slots: given up after %d requests, want about %d", tt.slots, len(turns), tt.want)
		}
	}
	_, _, _, l := play(t, load.Closed{Slots: 8, Due: 30, Warmup: 8, Fill: true, Stagger: s, Proven: true}, all)
	if l.Doomed() || !l.Over() {
		t.Errorf("requests completed before: doomed %v, over %v, want false, true", l.Doomed(), l.Over())
	}
	allButOne := func(turn load.Turn) time.Duration {
		if turn.Phase == metric.Warmup && turn.Slot != 5 {
			return -s / 100
		}
		return s
	}
	turns, starts, _, l := play(t, load.Closed{Slots: 8, Due: 30, Warmup: 8, Fill: true, Stagger: s}, allButOne)
	if l.Doomed() || !l.Over() {
		t.Errorf("one warm-up completed: doomed %v, over %v, want false, true", l.Doomed(), l.Over())
	}
	for i, turn := range turns {
		if turn.Phase == metric.Measured && starts[i] < 6*s {
			t.Errorf("measured request at %v, before a warm-up completed at 6s", starts[i])
		}
	}
	none := func(load.Turn) time.Duration { return -s }
	if _, _, _, l := play(t, load.Closed{Slots: 2, Due: 4}, none); l.Doomed() || !l.Over() {
		t.Error("a round without warm-up must send what is due")
	}
}

// TestClosedInvariants runs random rounds. Each due request is sent once, in order, and at most
// Slots are in flight. If Fill is set, without pauses and failures, exactly Slots are in flight
// from the first measured start to the last measured end.
func TestClosedInvariants(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	for range 300 {
		c := load.Closed{
			Slots: 1 + rng.IntN(12), Due: 1 + rng.IntN(60), Fill: true,
			Stagger: time.Duration(rng.IntN(2000)) * time.Millisecond,
		}
		c.Warmup = c.Slots
		took := map[load.Turn]time.Duration{}
		turns, starts, ends, _ := play(t, c, func(turn load.Turn) time.Duration {
			if _, ok := took[turn]; !ok {
				took[turn] = time.Duration(1 + rng.IntN(3000)*int(time.Millisecond))
			}
			return took[turn]
		})
		var measured []int
		first, last := time.Duration(math.MaxInt64), time.Duration(0)
		for i, turn := range turns {
			if turn.Phase == metric.Measured {
				measured = append(measured, turn.Order)
				first, last = min(first, starts[i]), max(last, ends[i])
			}
		}
		if len(measured) != c.Due || !slices.IsSorted(measured) {
			t.Fatalf("%+v: measured orders %v, want 0 to %d in order", c, measured, c.Due-1)
		}
		for i := range turns { // the number of requests in flight changes only at starts and ends
			if starts[i] < first || starts[i] >= last {
				continue
			}
			n := 0
			for j := range turns {
				if starts[j] <= starts[i] && starts[i] < ends[j] {
					n++
				}
			}
			if n != c.Slots {
				t.Fatalf("%+v: %d in flight at %v, want %d (measured from %v to %v)", c, n, starts[i], c.Slots, first, last)
			}
		}
	}
}

func req(slot int, phase metric.Phase, sent, end time.Duration) *metric.Sample {
	return &metric.Sample{Slot: slot, Phase: phase, Scheduled: sent, Sent: sent, End: end}
}

func TestClosedWindow(t *testing.T) {
	m, w, f := metric.Measured, metric.Warmup, metric.Filler
	for _, tt := range []struct {
		name    string
		samples []*metric.Sample
		n       int
		pause   time.Duration
		want    load.Window
	}{
		// Both slots are busy from 3 s to 7 s. Their requests are measured (m), except the last
		// request of slot 1. It is a filler (f), which is cancelled at 7 s. The warm-up (w) does
		// not count.
		{"full", []*metric.Sample{
			req(0, w, 1*s, 3*s), req(0, m, 3*s, 5*s), req(0, m, 5*s, 7*s),
			req(1, w, 2*s, 4*s), req(1, m, 4*s, 6*s), req(1, f, 6*s, 7*s),
		}, 2, 0, load.Window{Start: 3 * s, End: 7 * s, Busy: 1}},
		// Slot 1 ends first, without a filler request. So the window ends at 6 s, and the last
		// second of slot 0 is the drain.
		{"drain", []*metric.Sample{
			req(0, w, 1*s, 3*s), req(0, m, 3*s, 5*s), req(0, m, 5*s, 7*s),
			req(1, w, 2*s, 4*s), req(1, m, 4*s, 6*s),
		}, 2, 0, load.Window{Start: 3 * s, End: 6 * s, Busy: 1}},
		// Without a warm-up, the ramp is the time between the first requests of the slots. They
		// begin at 1 s and at 2 s.
		{"ramp", []*metric.Sample{
			req(0, m, 1*s, 4*s), req(1, m, 2*s, 4*s),
		}, 2, 0, load.Window{Start: 2 * s, End: 4 * s, Busy: 1}},
		// No pause is declared, so the second between the two requests counts as idle.
		{"gap", []*metric.Sample{
			req(0, m, 1*s, 3*s), req(0, m, 4*s, 6*s),
		}, 1, 0, load.Window{Start: 1 * s, End: 6 * s, Busy: 0.8}},
		// The gap between the requests is as long as the declared pause.
		{"pause", []*metric.Sample{
			req(0, m, 1*s, 3*s), req(0, m, 4*s, 6*s),
		}, 1, s, load.Window{Start: 1 * s, End: 6 * s, Busy: 1}},
		// The gap is 1 s, but the declared pause is only 0.5 s: the slot is busy for 2 + 0.5 + 2 s
		// of 5 s.
		{"late after the pause", []*metric.Sample{
			req(0, m, 1*s, 3*s), req(0, m, 4*s, 6*s),
		}, 1, s / 2, load.Window{Start: 1 * s, End: 6 * s, Busy: 0.9}},
		// Slot 1 never started, so the slots were at no time all busy.
		{"a slot missing", []*metric.Sample{
			req(0, m, 1*s, 3*s),
		}, 2, 0, load.Window{Start: 1 * s, End: 1 * s}},
		// Slot 1 started after slot 0 had stopped.
		{"never together", []*metric.Sample{
			req(0, m, 1*s, 3*s), req(1, m, 4*s, 5*s),
		}, 2, 0, load.Window{Start: 4 * s, End: 4 * s}},
		{"warm-up only", []*metric.Sample{req(0, w, 1*s, 3*s)}, 1, 0, load.Window{}},
		{"nothing", nil, 3, 0, load.Window{}},
		// The request could not be sent, but it kept the slot busy from 1 s to 3 s.
		{"unsent", []*metric.Sample{
			{Slot: 0, Phase: m, Scheduled: 1 * s, End: 3 * s}, req(0, m, 3*s, 5*s),
		}, 1, 0, load.Window{Start: 1 * s, End: 5 * s, Busy: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := load.ClosedWindow(tt.samples, tt.n, tt.pause); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			reversed := slices.Clone(tt.samples)
			slices.Reverse(reversed)
			if got := load.ClosedWindow(reversed, tt.n, tt.pause); got != tt.want {
				t.Errorf("in another order of completion got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestBurstWindow(t *testing.T) {
	samples := []*metric.Sample{
		req(0, metric.Warmup, 1*s, 2*s),
		req(0, metric.Measured, 3*s, 5*s), req(1, metric.Measured, 3*s, 9*s),
		{Slot: 2, Phase: metric.Measured, Scheduled: 3 * s, End: 4 * s}, // never sent
	}
	if got, want := load.BurstWindow(samples, 4), (load.Window{Start: 3 * s, End: 9 * s, Busy: 0.5}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := load.BurstWindow(nil, 4); got != (load.Window{}) {
		t.Errorf("of nothing got %+v", got)
	}
}

// TestByTime checks that a round with a duration goes on after Due requests. It goes on until Close
// is called, and ends when all requests have ended.
func TestByTime(t *testing.T) {
	l := load.Closed{Slots: 3, Due: 3, For: time.Minute}.Begin()
	next := func(slot int) load.Turn {
		turn, decision := l.Next(slot)
		if decision != load.Send {
			t.Fatalf("slot %d: %v", slot, decision)
		}
		return turn
	}
	turns := []load.Turn{next(0), next(1), next(2)}
	l.Ended(turns[0], false)
	fourth := next(0)
	if fourth.Phase != metric.Measured || fourth.Order != 3 || l.Over() {
		t.Errorf("the fourth is %+v, over %v", fourth, l.Over())
	}
	l.Close()
	l.Ended(turns[1], false)
	if filler := next(1); filler.Phase != metric.Filler || l.Due() != 4 || l.Over() {
		t.Errorf("after its time: %+v, %d due, over %v", filler, l.Due(), l.Over())
	}
	l.Ended(turns[2], false)
	l.Ended(fourth, true)
	if !l.Over() {
		t.Error("not over")
	}
	// A round that is closed after its first request still sends Due requests.
	l = load.Closed{Slots: 3, Due: 3, For: time.Minute}.Begin()
	first := next(0)
	l.Close()
	l.Ended(first, false)
	if l.Over() || next(0).Phase != metric.Measured || l.Due() != 3 {
		t.Errorf("over after one of three, %d due", l.Due())
	}
	// Each wave takes 2 s, and a pause of 1 s follows. So a minute has 20 waves, and the wave that
	// is running when the minute ends completes.
	c := load.Closed{Slots: 3, Due: 3, For: time.Minute, Pause: time.Second}
	if got := c.Requests(2 * time.Second); got != 63 {
		t.Errorf("%d requests, want 63", got)
	}
	if c.Requests(0) != 3 || c.Time(0) != time.Minute {
		t.Errorf("of an unknown duration %d in %v", c.Requests(0), c.Time(0))
	}
}

func TestEstimates(t *testing.T) {
	failed := req(0, metric.Measured, 0, 100*s)
	failed.Failure = &metric.Failure{Kind: metric.FailTimeout}
	samples := []*metric.Sample{
		req(0, metric.Measured, 1*s, 3*s), req(0, metric.Measured, 1*s, 5*s), failed, req(0, metric.Warmup, 1*s, 50*s),
	}
	if got, ok := load.Duration(samples, metric.Measured); got != 3*s || !ok { // mean of 2 and 4 s
		t.Errorf("Duration gave %v, %v, want 3s", got, ok)
	}
	if _, ok := load.Duration(samples, metric.Filler); ok {
		t.Error("Duration of no request is a value")
	}
	if got := load.Stagger(9*s, s, 5); got != 2*s { // (9 s + 1 s) / 5 slots
		t.Errorf("Stagger gave %v, want 2s", got)
	}
	if got := load.Stagger(0, s, 5); got != 0 {
		t.Errorf("Stagger of an unknown duration gave %v, want 0", got)
	}
	// 4 slots start 1 s apart, so the ramp takes 3 s. One wave of warm-up and ⌈10/4⌉ = 3
	// waves of measured requests take 4 s each.
	c := load.Closed{Slots: 4, Due: 10, Warmup: 4, Stagger: s}
	if got := c.Time(4 * s); got != 19*s {
		t.Errorf("Time gave %v, want 19s", got)
	}
	if got := c.Time(0); got != 0 {
		t.Errorf("Time of an unknown duration gave %v, want 0", got)
	}
}
