package load_test

import (
	"math"
	"slices"
	"testing"
	"testing/quick"
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/internal/must"
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
		got := load.Split(tt.total, tt.rounds)
		must.Hold(t, slices.Equal(got, tt.want), "Split(%d, %d) = %v, want %v", tt.total, tt.rounds, got, tt.want)
	}
	sums := func(total, rounds uint16) bool {
		shares := load.Split(int(total), int(rounds%1000)+1)
		sum := 0
		for _, n := range shares {
			sum += n
		}
		return sum == int(total) && shares[0]-shares[len(shares)-1] <= 1
	}
	err := quick.Check(sums, nil)
	must.Hold(t, err == nil, "%v", err)
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
		must.Hold(t, low == tt.low && high == tt.high, "%d ± %g: got %d to %d, want %d to %d", tt.mean, tt.jitter, low, high, tt.low, tt.high)
	}
}

func TestLengths(t *testing.T) {
	l := load.Lengths{Mean: 1000, Jitter: 0.1, Seed: 42, Workload: "chat", Level: "30"}
	a, b := l.Measured(60), l.Measured(60)
	must.Hold(t, slices.Equal(a, b), "the same fields drew different lengths")
	other := l
	other.Round, other.Seed = 1, 43
	c := other.Measured(60)
	must.Hold(t, !slices.Equal(a, c), "another round drew the same order")
	for _, lengths := range [][]int{a, c} {
		lengths = slices.Clone(lengths)
		slices.Sort(lengths)
		for i, n := range lengths { // each sixtieth of the 201 lengths from 900 to 1100 has one
			low, high := 900+201*i/60, 900+201*(i+1)/60
			must.Hold(t, n >= low && n <= high, "length %d of 60 is %d, want one from %d to %d", i+1, n, low, high)
		}
	}
	sum := 0
	for _, n := range a {
		sum += n
	}
	// The 60 lengths divide the range from 900 to 1100 evenly, so their mean is 1000. Each length
	// is rounded down by less than one token.
	mean := float64(sum) / 60
	must.Hold(t, math.Abs(mean-1000) <= 1, "the mean length is %g, want 1000 within a token", mean)
	got := (load.Lengths{Mean: 7}).Measured(3)
	must.Hold(t, slices.Equal(got, []int{7, 7, 7}), "without jitter got %v, want 7, 7, 7", got)
}

func TestLengthsStayInRange(t *testing.T) {
	check := func(mean uint16, jitter float64, seed int64, n uint8) bool {
		l := load.Lengths{Mean: int(mean) + 1, Jitter: math.Mod(math.Abs(jitter), 1), Seed: seed}
		low, high := l.Range()
		lengths := append(l.Measured(int(n)), l.At(metric.Warmup, int(n)), l.At(metric.Filler, int(n)))
		return low >= 1 && slices.Min(lengths) >= low && slices.Max(lengths) <= high &&
			l.At(metric.Filler, int(n)) == lengths[len(lengths)-1]
	}
	err := quick.Check(check, nil)
	must.Hold(t, err == nil, "%v", err)
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
			got := load.ClosedWindow(tt.samples, tt.n, tt.pause)
			must.Hold(t, got == tt.want, "got %+v, want %+v", got, tt.want)
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
	got, want := load.BurstWindow(samples, 4), (load.Window{Start: 3 * s, End: 9 * s, Busy: 0.5})
	must.Hold(t, got == want, "got %+v, want %+v", got, want)
	if got := load.BurstWindow(nil, 4); got != (load.Window{}) {
		t.Errorf("of nothing got %+v", got)
	}
}

func TestDuration(t *testing.T) {
	failed := req(0, metric.Measured, 0, 100*s)
	failed.Failure = &metric.Failure{Kind: metric.FailTimeout}
	samples := []*metric.Sample{
		req(0, metric.Measured, 1*s, 3*s), req(0, metric.Measured, 1*s, 5*s), failed, req(0, metric.Warmup, 1*s, 50*s),
	}
	if got, ok := load.Duration(samples, metric.Measured); got != 3*s || !ok { // mean of 2 and 4 s
		t.Errorf("Duration gave %v, %v, want 3s", got, ok)
	}
	_, ok := load.Duration(samples, metric.Filler)
	must.Hold(t, !ok, "Duration of no request is a value")
}
