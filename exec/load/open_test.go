package load_test

import (
	"math"
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// arrivals returns the times between n measured requests, in seconds.
func arrivals(o load.Open, n int) []float64 {
	o.Due = n
	s := o.Begin(0)
	last := s.Warm()
	var gaps []float64
	for range n {
		_, at := s.Next()
		gaps = append(gaps, (at - last).Seconds())
		last = at
	}
	return gaps
}

// The gaps have a gamma distribution of shape k, so their coefficient of variation cv is 1/√k. The
// mean of 20,000 gaps must be within 4·cv/√20000 of the true mean.
func TestGaps(t *testing.T) {
	const n = 20_000
	for _, tt := range []struct{ shape, cv float64 }{{1, 1}, {0.5, math.Sqrt2}, {4, 0.5}, {math.Inf(1), 0}} {
		gaps := arrivals(load.Open{Rate: 8, Shape: tt.shape, Seed: 7, Workload: "w", Level: "8 req/s"}, n)
		mean, square := 0.0, 0.0
		for _, g := range gaps {
			mean += g / n
			square += g * g / n
		}
		cv := math.Sqrt(max(square-mean*mean, 0)) / mean
		off := math.Abs(mean*8 - 1)
		must.Hold(t, off <= 4*tt.cv/math.Sqrt(n)+1e-6, "shape %v: mean gap %v s, want 1/8 s", tt.shape, mean)
		must.Hold(t, math.Abs(cv-tt.cv) <= 0.05*tt.cv+1e-4, "shape %v: coefficient of variation %v, want %v", tt.shape, cv, tt.cv)
	}
}

// The times of the measured requests do not depend on the duration of the warm-up. They differ for
// another seed, workload or level.
func TestScheduleDependsOnNothingElse(t *testing.T) {
	o := load.Open{Rate: 4, Shape: 1, Due: 50, Seed: 1, Workload: "chat", Level: "4 req/s"}
	measured := func(o load.Open, begin time.Duration, warmup int) (out []time.Duration) {
		s := o.Begin(begin)
		for i := range warmup {
			turn, _ := s.Next()
			must.Need(t, turn == (load.Ticket{Phase: metric.Warmup, Order: i}), "request %d of the warm-up is %+v", i, turn)
		}
		last := s.Warm()
		for i := range o.Due {
			turn, at := s.Next()
			must.Need(t, turn == (load.Ticket{Phase: metric.Measured, Order: i}), "measured request %d is %+v", i, turn)
			out = append(out, (at - last).Round(time.Microsecond))
			last = at
		}
		turn, at := s.Next()
		must.Need(t, turn == (load.Ticket{Phase: metric.Filler}) && at >= last, "after the last measured request comes %+v at %v", turn, at)
		return out
	}
	same := func(a, b []time.Duration) bool {
		for i := range a {
			if d := a[i] - b[i]; d > time.Microsecond || d < -time.Microsecond {
				return false
			}
		}
		return true
	}
	first := measured(o, 0, 0)
	must.Hold(t, same(first, measured(o, 3*time.Second, 17)), "a longer warm-up changed the measured arrivals")
	for name, change := range map[string]func(*load.Open){
		"seed":     func(o *load.Open) { o.Seed = 2 },
		"workload": func(o *load.Open) { o.Workload = "rag" },
		"level":    func(o *load.Open) { o.Level = "4.0 req/s" },
		"round":    func(o *load.Open) { o.Round = 10 },
	} {
		other := o
		change(&other)
		must.Hold(t, !same(first, measured(other, 0, 0)), "another %s has the same arrivals", name)
	}
}

// A warm-up is judged in stretches, each as long as a mean request. Requests take 2 s, so the
// stretches end at 2, 4 and 6 s. The warm-up may end only after three stretches.
func TestSteady(t *testing.T) {
	play := func(backlog func(second int) int, mean time.Duration, grows bool) int {
		s := load.NewSteady(0, grows)
		for i := 1; i <= 100; i++ {
			if s.Over(time.Duration(i)*time.Second, mean, backlog(i)) {
				return i
			}
		}
		return -1
	}
	for _, tt := range []struct {
		name    string
		backlog func(int) int
		mean    time.Duration
		grows   bool
		want    int
	}{
		{"at once", func(i int) int { return min(i, 2) }, 2 * time.Second, false, 6},
		{"nothing completed", func(i int) int { return i }, 0, false, -1},
		// Until 10 s the backlog doubles every 2 s. The warm-up ends when the mean backlog of a
		// stretch is at most 1.1 times that of the previous stretch, plus one request.
		{"still growing", func(i int) int { return 4 << min(i/2, 5) }, 2 * time.Second, false, 14},
		{"without end", func(i int) int { return i * i * i }, time.Second, false, 10},
		{"known to be without end", func(i int) int { return i * i * i }, time.Second, true, 3},
	} {
		got := play(tt.backlog, tt.mean, tt.grows)
		must.Hold(t, got == tt.want, "%s: the warm-up took %d s, want %d", tt.name, got, tt.want)
	}
}

// At a constant 2 req/s, the tenth request is due after 5 s. Then the rate rises from 1 to 3 req/s
// within 10 s, in which 20 requests are due. Afterwards it stays at 3 req/s.
func TestStages(t *testing.T) {
	o := load.Open{Shape: math.Inf(1), Due: 30, Stages: []load.Stage{{Due: 10, From: 2, To: 2}, {Due: 20, From: 1, To: 3}}}
	s := o.Begin(0)
	_, at := s.Next()
	must.Hold(t, at == 500*time.Millisecond, "a warm-up request is due at %v, want 0.5 s", at)
	begin := s.Warm()
	want := map[int]float64{0: 0.5, 9: 5, 14: 5 + 3.66025, 29: 15, 30: 15 + 1.0/3}
	for i := range 31 {
		turn, at := s.Next()
		due, ok := want[i]
		must.Hold(t, !ok || math.Abs((at-begin).Seconds()-due) <= 1e-4, "request %d (%s) is due at %v, want %v s", i, turn.Phase, at-begin, due)
	}
}

// On a ramp from 1 to 3 req/s the mean rate is 2 req/s, so 20,000 random arrivals should take about
// 10,000 s. Four standard deviations of their number are 4·√20000 arrivals. At 1 req/s or more,
// that number of arrivals takes at most 4·√20000 s.
func TestRamp(t *testing.T) {
	o := load.Open{Shape: 1, Due: 20_000, Seed: 3, Workload: "w", Level: "ramp", Stages: []load.Stage{{Due: 20_000, From: 1, To: 3}}}
	s := o.Begin(0)
	begin := s.Warm()
	var last time.Duration
	for range o.Due {
		_, last = s.Next()
	}
	off := (last - begin).Seconds() - 10_000
	must.Hold(t, math.Abs(off) <= 4*math.Sqrt(20_000), "20,000 requests from 1 to 3 req/s take %v", last-begin)
}
