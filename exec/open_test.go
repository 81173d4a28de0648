package exec_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// rateLoad is a load of one rate with constant arrivals.
func rateLoad(rate float64, requests, rounds int) *plan.Load {
	return &plan.Load{
		Kind: metric.OpenLoop, Seeds: []int64{1}, Timeout: 10 * time.Minute,
		Open:   &plan.Open{Arrivals: plan.Constant, MaxInFlight: 20, Warmup: plan.OpenWarmupAuto},
		Levels: []plan.Level{{Name: plan.RateName(rate), Rate: rate, Requests: requests, Rounds: rounds}},
	}
}

func playRate(t *testing.T, c clock.Clock, l *plan.Load, script func(int, *client.Request) reply) (*bench, *metric.Level) {
	t.Helper()
	n := 0
	b := newBench(t, c, planOf(3, l), func(_ int, r *client.Request) reply {
		if strings.Contains(r.Prompt.Text, metric.SaturationName) {
			return reply{ttft: 1200 * time.Millisecond, itl: 1200 * time.Millisecond}
		}
		n++
		return script(n-1, r)
	})
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	return b, run.Levels[0]
}

// Two requests arrive per second, and each takes 1.2 s. So two or three requests are always in
// flight.
func TestOpenLoop(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		b, l := playRate(t, c, rateLoad(2, 40, 4), steady(400*time.Millisecond, 400*time.Millisecond))
		must.Need(t, len(l.Rounds) == 4 && l.Cut == "" && l.Rate == 2 && l.N == 0, "%d rounds, cut %q, rate %v, n %d", len(l.Rounds), l.Cut, l.Rate, l.N)
		for i, r := range l.Rounds {
			measured := r.MeasuredSamples()
			if !r.Complete || r.Index != i || r.Due != 10 || len(measured) != 10 || r.WindowEnd-r.WindowStart != 5*time.Second {
				t.Errorf("round %d: index %d, complete %v, %d of %d, window %v", i, r.Index, r.Complete, len(measured), r.Due, r.WindowEnd-r.WindowStart)
			}
			if i > 0 && r.WindowStart != l.Rounds[i-1].WindowEnd {
				t.Errorf("round %d begins %v after the one before", i, r.WindowStart-l.Rounds[i-1].WindowEnd)
			}
			for k, s := range measured {
				due := r.WindowStart + time.Duration(k+1)*500*time.Millisecond
				must.Hold(t, s.Scheduled == due && s.Order == k && s.FromDue, "round %d, request %d: due at %v, order %d, want %v", i, k, s.Scheduled, s.Order, due)
			}
		}
		// In the saturation, 20 requests are in flight. Each takes 3 tokens · 1.2 s = 3.6 s, so the
		// server completes 20/3.6 = 5.6 requests per second.
		n := len(l.Saturation)
		must.Hold(t, n == 10 && l.Saturation[0] >= 5 && l.Saturation[0] <= 6.1, "saturation %v, want ten times about 5.6", l.Saturation)
		must.Same(t, "", []string{"round saturation 0 complete true", "round 2 req/s 0 complete true", "round 2 req/s 1 complete true", "round 2 req/s 2 complete true", "round 2 req/s 3 complete true"}, slices.DeleteFunc(slices.Clone(b.calls), func(s string) bool { return !strings.HasPrefix(s, "round") }))
		// The warm-up takes at least 3.6 s, so it ends with the arrival at 4 s or later.
		//
		// Fillers keep up the load until the last measured request has ended. Two of them are due
		// in that time.
		count := map[metric.Phase]int{}
		for _, r := range l.Rounds {
			for _, s := range r.Samples {
				count[s.Phase]++
			}
		}
		must.Hold(t, count[metric.Warmup] >= 8 && count[metric.Measured] == 40 && count[metric.Filler] == 2, "sent %v", count)
		// Requests are due every 0.5 s and take 1.2 s. So in each half second, two requests are in
		// flight for 0.3 s and three for 0.2 s: 2.4 on average.
		p := l.Passages()
		must.Hold(t, len(p) == 1 && p[0].Arrivals == 40 && p[0].Max == 3 && p[0].Mean >= 2.39 && p[0].Mean <= 2.41 && p[0].Begin == p[0].End, "passages %+v", p)
		if v := l.Value("throughput", metric.Steady, nil, nil); !v.OK || v.V != 6 { // 2 req/s of 3 tokens
			t.Errorf("throughput %+v, want 6 tok/s", v)
		}
	})
}

// The last request of a window is sent 1.2 s before it ends. A standstill in this time, the drain,
// belongs to the record of the last round.
func TestStandstillInDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, clock.NewReal(), planOf(3, rateLoad(2, 40, 4)), steady(400*ms, 400*ms))
		b.Meter = func() func() metric.Health { return func() metric.Health { return metric.Health{CPU: 0.5} } }
		b.onDone = func(x *metric.Sample) {
			if x.Round == 3 && x.Phase == metric.Measured && x.Order == 8 {
				time.Sleep(300 * ms)
			}
		}
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		for i, r := range run.Levels[0].Rounds {
			held, ok := r.Health.Held()
			if all := r.Health.Standstills; !ok || i < 3 && len(all) > 0 || i == 3 && (len(all) != 1 || all[0].From < r.WindowEnd || held < 0.29 || held > 0.3) {
				t.Errorf("round %d: standstills %v, held for %v s; want one of 300 ms at the end of the last round", i, all, held)
			}
		}
	})
}

// The latencies of a request count from its due time. If a stalled loop sends it a second late,
// TTFT and end-to-end time include this second. The lag is then one second.
func TestOpenLoopClock(t *testing.T) {
	s := &metric.Sample{FromDue: true, Scheduled: 10 * time.Second, Sent: 11 * time.Second, First: 12 * time.Second, Last: 13 * time.Second, End: 13 * time.Second}
	for name, want := range map[string]float64{"ttft": 2, "e2e": 3, "lag": 1} {
		got, ok := s.Value(name)
		must.Hold(t, ok && got == want, "%s %v, want %v", name, got, want)
	}
}

// The server takes 1 s for each request, one request at a time. Three requests arrive per second,
// so the backlog grows by two per second. After about 10 s it reaches the limit of 20 requests in
// flight.
func TestOpenLoopFull(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		var free time.Duration
		load := rateLoad(3, 60, 10)
		load.Open.Warmup = 0
		_, l := playRate(t, c, load, func(int, *client.Request) reply {
			free = max(free, c.Now()) + time.Second
			return reply{ttft: free - c.Now() - 2*time.Millisecond, itl: time.Millisecond}
		})
		must.Need(t, l.Cut == metric.CutFull, "cut %q", l.Cut)
		unfinished, due := 0, 0
		for i, r := range l.Rounds {
			must.Hold(t, r.Complete, "round %d is not complete: %s", i, r.Stopped)
			due += r.Due
			for _, s := range r.MeasuredSamples() {
				if s.Failure != nil && s.Failure.Kind == metric.FailUnfinished {
					unfinished++
				}
			}
		}
		must.Hold(t, unfinished == 20 && due >= 28 && due <= 32, "%d of %d requests unfinished, want 20 of about 30", unfinished, due)
		g, ok := l.Growth()
		must.Hold(t, ok && g.Share >= 0.6 && g.Share <= 0.7, "growth %+v, want about 2/3", g)
	})
}

// From the tenth request on, no request is answered. The level must end one minute after the last
// token that a client received.
func TestOpenLoopStalled(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		load := rateLoad(1, 300, 10)
		load.Open.Warmup, load.Open.MaxInFlight = 0, 70 // more than the 60 requests of a minute
		_, l := playRate(t, c, load, func(n int, _ *client.Request) reply {
			if n >= 10 {
				return reply{}
			}
			return reply{ttft: 100 * time.Millisecond, itl: 100 * time.Millisecond}
		})
		must.Need(t, l.Cut == metric.CutStalled, "cut %q", l.Cut)
		last := time.Duration(0)
		for _, s := range l.MeasuredSamples() {
			last = max(last, s.Last)
		}
		// The loop checks for new tokens once a second, so it may end up to 2 s late.
		after := l.Rounds[len(l.Rounds)-1].WindowEnd - last
		must.Hold(t, after >= time.Minute && after <= 62*time.Second, "it ended %v after the last token", after)
	})
}

// The server sends the first token of each request after 10 s. Such a server counts as stalled only
// after 100 s of silence, ten times as long.
func TestOpenLoopStalledSlowly(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		load := rateLoad(1, 300, 10)
		load.Open.Warmup, load.Open.MaxInFlight = 0, 200
		_, l := playRate(t, c, load, func(n int, _ *client.Request) reply {
			if n >= 10 {
				return reply{}
			}
			return reply{ttft: 10 * time.Second, itl: 100 * time.Millisecond}
		})
		last := time.Duration(0)
		for _, s := range l.MeasuredSamples() {
			last = max(last, s.Last)
		}
		after := l.Rounds[len(l.Rounds)-1].WindowEnd - last
		must.Hold(t, l.Cut == metric.CutStalled && after >= 100*time.Second && after <= 102*time.Second, "cut %q %v after the last token, want 100 s", l.Cut, after)
	})
}

// If a server never sends a token, the level is given up after the time-out of a request.
func TestOpenLoopSilent(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		load := rateLoad(0.1, 30, 10)
		load.Timeout = 2 * time.Minute
		load.Open.Warmup = 0
		_, l := playRate(t, c, load, func(int, *client.Request) reply { return reply{} })
		end := l.Rounds[len(l.Rounds)-1].WindowEnd
		must.Hold(t, l.Cut != "" || len(l.Rounds) <= 0 || end <= 4*time.Minute, "cut %q after %v", l.Cut, end)
	})
}

// If no request completes, the level is given up during its warm-up.
func TestOpenLoopFails(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		_, l := playRate(t, c, rateLoad(5, 100, 10), func(int, *client.Request) reply { return reply{status: errBusy} })
		must.Need(t, len(l.Rounds) == 1 && !l.Rounds[0].Complete && l.Rounds[0].Stopped != "", "%d rounds, %+v", len(l.Rounds), l.Rounds)
		n := len(l.Rounds[0].Samples)
		must.Hold(t, n >= 10 && n <= 12, "%d requests were sent to a server that refuses all", n)
	})
}

// There are never more requests in flight than max_in_flight, however many are due. This bounds the
// memory.
func TestOpenLoopIsBounded(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		load := rateLoad(1000, 1000, 10)
		load.Open.Warmup = 0
		b, l := playRate(t, c, load, func(int, *client.Request) reply { return reply{ttft: time.Hour} })
		must.Hold(t, b.most == 20 && l.Cut == metric.CutFull, "%d in flight, cut %q, want 20, full", b.most, l.Cut)
	})
}

// A slow server and a fast server get the same requests at the same times.
func TestOpenLoopArrivalsAreTheSame(t *testing.T) {
	due := func(ttft time.Duration) (out []string) {
		c := clock.NewVirtual()
		load := rateLoad(5, 100, 5)
		load.Open.Arrivals = plan.Poisson
		_, l := playRate(t, c, load, steady(ttft, 10*time.Millisecond))
		begin := l.Rounds[0].WindowStart
		for _, s := range l.MeasuredSamples() {
			out = append(out, fmt.Sprint((s.Scheduled-begin).Round(10*time.Microsecond), s.OutputAsked))
		}
		return out
	}
	must.Same(t, "a slower server got other requests", due(100*time.Millisecond), due(900*time.Millisecond))
}

// BenchmarkOpenLoop compares the cost of a request in an open loop and in a closed loop. Both loops
// run 10,000 requests of 100 ms: at 200 req/s, or with 20 in flight. The server and the clock cost
// nothing. The metric open/closed is the ratio of the fastest runs.
func BenchmarkOpenLoop(b *testing.B) {
	const requests = 10_000
	closed := closedLoad(20, requests, 1)
	// A stage skips the measurement of the server's largest rate, which would come first otherwise.
	open := rateLoad(200, requests, 1)
	open.Levels[0].Stage = &metric.Stage{From: 200, To: 200}
	open.Open.Warmup, open.Open.MaxInFlight = time.Second, 1000
	var took [2]time.Duration
	for range b.N {
		for i, l := range []*plan.Load{closed, open} {
			c := clock.NewVirtual()
			x := &transport{clock: c, tick: 100 * time.Millisecond, script: steady(98*ms, ms)}
			runtime.GC() // collect the garbage of the previous run
			begin := time.Now()
			run, err := exec.Run(b.Context(), exec.Config{
				Plan: planOf(3, l), Clock: c, Observer: func(metric.Event) error { return nil },
				Launch: func(context.Context, *plan.Server, func(string)) (*exec.Target, error) {
					return &exec.Target{
						Transport: x, Model: "fake", Fingerprint: metric.Fingerprint{"model": "fake"},
						Prompts: func(_ context.Context, w *plan.Workload, _ uint64) (exec.Prompts, error) {
							return prompts{w.Address()}, nil
						},
						Close: func() error { return nil },
					}, nil
				},
			})
			if d := time.Since(begin); took[i] == 0 || d < took[i] {
				took[i] = d
			}
			must.Do(b, err)
			n := len(run.Levels[0].MeasuredSamples())
			must.Need(b, n == requests, "%s: %d requests", l.Kind, n)
		}
	}
	b.ReportMetric(float64(took[1])/float64(took[0]), "open/closed")
	b.ReportMetric(float64(took[1].Nanoseconds())/requests, "ns/request")
	b.ReportMetric(0, "ns/op")
}

// In each round both servers of a comparison get requests at the same times, even if requests fail.
// The times differ between rounds.
func TestTurnsOfRates(t *testing.T) {
	d := newDuel(6, plan.RestartLeg, "a", "b")
	d.Workloads[0].Loads = []*plan.Load{{
		Kind: metric.OpenLoop, Seeds: []int64{1, 2, 3}, Timeout: time.Minute,
		Open:   &plan.Open{Arrivals: plan.Poisson, MaxInFlight: 100, Warmup: 2 * time.Second},
		Levels: []plan.Level{{Name: plan.RateName(4), Rate: 4, Requests: 120, Rounds: 6}},
	}}
	run := d.run(t, nil)
	arrivals := map[string][][]time.Duration{}
	for _, l := range run.Levels {
		for _, r := range l.Rounds {
			var due []time.Duration
			for _, s := range r.MeasuredSamples() {
				due = append(due, s.Scheduled-r.WindowStart)
			}
			arrivals[l.Server] = append(arrivals[l.Server], due)
		}
	}
	n := len(arrivals["server.a"]) + len(arrivals["a"])
	must.Need(t, n == 6, "%d rounds, want 6", n)
	var sides [][][]time.Duration
	for _, x := range arrivals {
		sides = append(sides, x)
	}
	must.Need(t, len(sides) == 2, "%d sides", len(sides))
	must.Same(t, "", sides[0], sides[1])
	must.Hold(t, !cmp.Equal(sides[0][0], sides[0][1]), "two rounds got the same arrivals")
}
