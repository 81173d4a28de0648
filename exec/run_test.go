package exec_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

const s, ms = time.Second, time.Millisecond

func TestClosedLoop(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		// A request takes 2 s: 1 s to the first token, and 10 ms for each of the 100 after
		// it. There are two rounds of 30 measured requests on 4 slots.
		b := newBench(t, c, planOf(101, closedLoad(4, 60, 42, 123)), steady(s, 10*ms))
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		want := []string{
			"run", "starting fake: at once", "ready fake",
			"level fake chat 4 due 60", "round 4 0 complete true", "round 4 1 complete true",
			`level done 4 ""`, `done fake ""`, `run done ""`,
		}
		must.Same(t, "calls (-want +got)", want, b.calls)
		l := run.Levels[0]
		must.Need(t, len(l.Rounds) == 2 && l.Exact && l.N == 4 && l.Kind == metric.ClosedLoop, "level %+v", l)
		if b.closed != 1 || run.Servers[0].Error != "" || run.Servers[0].Fingerprint["model"] != "fake" {
			t.Errorf("closed %d times, server %+v", b.closed, run.Servers[0])
		}
		must.Hold(t, b.most == 4, "%d in flight at most, want 4", b.most)
		must.Hold(t, b.started == len(b.samples) && b.inFlight == 0, "%d requests started, %d ended, %d in flight at the end", b.started, len(b.samples), b.inFlight)
		for text, n := range b.transport.prompts {
			must.Hold(t, n <= 1, "prompt %q was sent %d times", text, n)
		}
		for i, r := range l.Rounds {
			measured := r.MeasuredSamples()
			must.Need(t, len(measured) == 30 && r.Due == 30 && r.Complete && r.Stopped == "", "round %d: %d measured, %+v", i, len(measured), r)
			must.Hold(t, r.Seed == []int64{42, 123}[i], "round %d has seed %d", i, r.Seed)
			must.Hold(t, r.Busy >= 1-1e-9, "round %d: busy %v, want 1", i, r.Busy)
			if r.WindowStart != r.Start || r.WindowEnd != r.End {
				t.Errorf("round %d: window %v to %v, want all of %v to %v", i, r.WindowStart, r.WindowEnd, r.Start, r.End)
			}
			// The last request ends after 0.5 + 8·2 = 16.5 s. It is the eighth of the second slot,
			// which started 0.5 s late, and each request takes 2 s.
			must.Same(t, fmt.Sprintf("round %d: took", i), 16500*ms, r.End-r.Start)
			for _, m := range measured {
				ttft, _ := m.Value("ttft")
				tpot, _ := m.Value("tpot")
				must.Need(t, ttft == 1 && tpot == 0.01 && m.Usage.Output == 101, "%v: ttft %v, tpot %v, usage %+v", m, ttft, tpot, m.Usage)
			}
			// The four slots start half a second apart.
			starts := []time.Duration{}
			for _, m := range measured[:4] {
				starts = append(starts, m.Sent-measured[0].Sent)
			}
			if want := []time.Duration{0, 500 * ms, s, 1500 * ms}; !slices.Equal(starts, want) {
				t.Errorf("round %d: the first four start %v apart, want %v", i, starts, want)
			}
		}
	})
}

// Warm-up requests that cannot be shared evenly among the slots come before the slots start. So no
// warm-up request runs beside measured requests.
func TestWarmUpComesFirst(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		// The 7 warm-up requests come before all measured requests. Three are sent together; the
		// other four are the first requests of the 4 slots.
		l := closedLoad(4, 8)
		l.Warmup, l.Stagger = 7, 100*ms
		b := newBench(t, c, planOf(1, l), steady(s, 0))
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		first := b.starts[0]
		want := []time.Duration{first, first, first}
		for wave := range 3 {
			for slot := range 4 {
				want = append(want, first+s+time.Duration(wave)*s+time.Duration(slot)*100*ms)
			}
		}
		must.Same(t, "starts (-want +got)", want, b.starts[:15])
		r := run.Levels[0].Rounds[0]
		n := len(r.MeasuredSamples())
		must.Hold(t, n == 8 && r.Complete, "%d measured, complete %v", n, r.Complete)
	})
}

// If a server refuses the warm-up requests, the warm-up goes on until ColdFailures(4) = 10 of them
// have failed.
func TestWarmUpThatFails(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		l := closedLoad(4, 8)
		l.Warmup = 2
		b := newBench(t, c, planOf(1, l), func(int, *client.Request) reply { return reply{status: errors.New("503 busy"), code: 503} })
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		r := run.Levels[0].Rounds[0]
		must.Hold(t, len(b.starts) == 10 && !r.Complete && strings.Contains(r.Stopped, "503 busy"), "%d requests, stopped %q", len(b.starts), r.Stopped)
	})
}

func TestPauseAndStagger(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		// Requests take 1 s, pauses take 3 s, and slots start 700 ms apart.
		l := closedLoad(3, 9)
		l.Warmup, l.Stagger, l.Pause = 0, 700*ms, 3*s
		b := newBench(t, c, planOf(1, l), steady(s, 0))
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		var want []time.Duration
		first := b.starts[0]
		for wave := range 3 {
			for slot := range 3 {
				want = append(want, first+time.Duration(wave)*4*s+time.Duration(slot)*700*ms)
			}
		}
		must.Same(t, "starts (-want +got)", want, b.starts)
		r := run.Levels[0].Rounds[0]
		// The window begins at 1.4 s, when the last slot starts. It ends at 10.4 s, with the last
		// request. A slot counts as busy during its pause. Slot 0 pauses from 9 s to 12 s, so it is
		// busy until the end.
		if got, want := r.WindowStart-first, 1400*ms; got != want {
			t.Errorf("the window begins at %v, want %v", got, want)
		}
		if got, want := r.WindowEnd-first, 10400*ms; got != want {
			t.Errorf("the window ends at %v, want %v", got, want)
		}
		must.Hold(t, r.Busy >= 1-1e-9, "busy is %v, want 1: the pauses are declared", r.Busy)
	})
}

func TestBurst(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		l := &plan.Load{
			Kind: metric.Burst, Seeds: []int64{1, 2}, Warmup: plan.WarmupAuto,
			Levels: []plan.Level{{Name: "burst 8", N: 8, Requests: 24, Rounds: 3}},
		}
		// The server answers the requests of a burst one after another, in 1 s each.
		b := newBench(t, c, planOf(1, l), func(n int, _ *client.Request) reply {
			return reply{ttft: time.Duration(n%8+1) * s}
		})
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		if got := len(b.requests); got != 8+24 { // "auto" warms up once
			t.Errorf("%d requests were sent, want 32", got)
		}
		rounds := run.Levels[0].Rounds
		if len(rounds) != 3 || rounds[2].Seed != 1 {
			t.Fatalf("%d rounds, the third with seed %d; want 3 and the first seed again", len(rounds), rounds[2].Seed)
		}
		for i, r := range rounds {
			measured := r.MeasuredSamples()
			if len(measured) != 8 || !r.Complete || r.Busy != 1 || r.WindowEnd-r.WindowStart != 8*s {
				t.Errorf("round %d: %d measured, %+v; want 8 over 8 s", i, len(measured), r)
			}
			for _, m := range measured {
				must.Hold(t, m.Sent == r.Start && m.Scheduled == r.Start, "%v was sent at %v, the burst was at %v", m, m.Sent, r.Start)
			}
		}
	})
}

// The last measured request takes ten times as long as the others. Until it ends, the other slots
// keep the load up with fillers, which are not measured.
func TestLateMeasuredRequestsMeetTheFullLoad(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		b := newBench(t, c, planOf(1, closedLoad(4, 8)), func(n int, r *client.Request) reply {
			if strings.Contains(r.Prompt.Text, "Phase:measured Order:7") {
				return reply{ttft: 20 * s}
			}
			return reply{ttft: 2 * s}
		})
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		r := run.Levels[0].Rounds[0]
		fillers, cancelled := 0, 0
		for _, x := range r.Samples {
			if x.Phase == metric.Filler {
				fillers++
				if x.Failure != nil && x.Failure.Kind == metric.FailCanceled {
					cancelled++
				}
			}
		}
		if !r.Complete || r.Busy < 1-1e-9 || fillers < 3*9 || cancelled > 3 {
			t.Errorf("complete %v, busy %v, %d fillers of which %d were cancelled; want a full load over 20 s", r.Complete, r.Busy, fillers, cancelled)
		}
	})
}

func TestJitterIsTheSameOnEveryServer(t *testing.T) {
	p := planOf(100, closedLoad(4, 40, 7, 8))
	other := &plan.Server{Name: "other"}
	p.Servers = append(p.Servers, other)
	p.Workloads[0].Servers = p.Servers
	p.Workloads[0].Output.Jitter = 0.1
	b := newBench(t, clock.NewVirtual(), p, steady(s, 10*ms))
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	lengths := func(l *metric.Level) (n []int) {
		for _, m := range l.MeasuredSamples() {
			n = append(n, m.OutputAsked)
		}
		return n
	}
	a, z := lengths(run.Levels[0]), lengths(run.Levels[1])
	must.Hold(t, len(a) == 40 && slices.Equal(a, z), "asked %v of one server and %v of the other", a, z)
	must.Hold(t, slices.Min(a) != slices.Max(a), "no jitter at all")
}

func TestVirtualRunsAreTheSame(t *testing.T) {
	play := func() []*metric.Sample {
		b := newBench(t, clock.NewVirtual(), planOf(50, closedLoad(8, 64, 1, 2)), func(n int, r *client.Request) reply {
			return reply{ttft: time.Duration(100+n%7*13) * ms, itl: time.Duration(5+n%3) * ms}
		})
		must.Get(exec.Run(t.Context(), b.Config))(t)
		return b.samples
	}
	must.Same(t, "two runs in virtual time differ", play(), play())
}

// TestOneHour runs a level with 64 requests in flight for an hour.
func TestOneHour(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		// The last request ends after 63·1.875 s + 29·120 s = 59 min 58 s. Each of 64 slots sends
		// 29 requests of 120 s, and the slots start 1.875 s apart.
		b := newBench(t, c, planOf(3, closedLoad(64, 64*29)), steady(118*s, s))
		b.tick = 15 * s
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		r := run.Levels[0].Rounds[0]
		took := r.End - r.Start
		must.Hold(t, r.Complete && took >= 59*time.Minute && took <= 61*time.Minute, "complete %v after %v, want an hour", r.Complete, took)
		must.Hold(t, b.most == 64 && r.Busy >= 1-1e-9, "%d in flight at most, busy %v; want 64 and 1", b.most, r.Busy)
	})
}

func TestThousandsOfLevels(t *testing.T) {
	l := closedLoad(1, 1)
	l.Levels = nil
	for i := range 2_000 {
		l.Levels = append(l.Levels, plan.Level{Name: fmt.Sprint(i), N: 1, Requests: 1, Rounds: 1})
	}
	b := newBench(t, clock.NewVirtual(), planOf(1, l), steady(s, 0))
	run, err := exec.Run(t.Context(), b.Config)
	if err != nil || len(run.Levels) != 2_000 || !run.Levels[1_999].Rounds[0].Complete {
		t.Errorf("%d levels, %v", len(run.Levels), err)
	}
}

func TestInterruptedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewReal()
		l := closedLoad(4, 400)
		l.Levels = append(l.Levels, plan.Level{Name: "8", N: 8, Requests: 8, Rounds: 1})
		b := newBench(t, c, planOf(1, l), steady(4*s, 0))
		drain, interrupt := context.WithCancel(t.Context())
		b.Drain = drain
		time.AfterFunc(61*s, interrupt)
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		r := run.Levels[0].Rounds[0]
		must.Hold(t, run.Stopped == "interrupted" && !r.Complete && r.Stopped == "interrupted", "stopped %q, round %+v", run.Stopped, r)
		for _, m := range r.MeasuredSamples() {
			must.Hold(t, m.Failure == nil, "%v was in flight and should have been waited for: %+v", m, m.Failure)
		}
		must.Hold(t, c.Now() <= 66*s && c.Now() >= 61*s, "the run ended at %v, want within one request of 61s", c.Now())
		if run.Levels[1].Skipped != "interrupted" || b.closed != 1 {
			t.Errorf("second level %+v, closed %d times", run.Levels[1], b.closed)
		}
		must.Same(t, "the last call", `run done "interrupted"`, b.calls[len(b.calls)-1])
		must.Hold(t, len(b.samples) == b.started, "%d of %d requests were handed on", len(b.samples), b.started)
	})
}

func TestInterruptedOnceIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewReal()
		b := newBench(t, c, planOf(1, closedLoad(2, 10)), func(n int, r *client.Request) reply {
			if strings.Contains(r.Prompt.Text, "measured") {
				return reply{} // for ever
			}
			return reply{ttft: s}
		})
		drain, interrupt := context.WithCancel(t.Context())
		b.Drain, b.DrainTimeout = drain, 20*s
		time.AfterFunc(10*s, interrupt)
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		now := c.Now()
		must.Hold(t, now >= 30*s && now <= 31*s, "ended at %v, want 10s + 20s", now)
		for _, m := range run.Levels[0].MeasuredSamples() {
			must.Hold(t, m.Failure != nil && m.Failure.Kind == metric.FailCanceled, "%v: %+v, want cancelled", m, m.Failure)
		}
	})
}

func TestInterruptedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewReal()
		b := newBench(t, c, planOf(1, closedLoad(2, 10)), steady(time.Hour, 0))
		b.tick = s
		ctx, now := context.WithCancel(t.Context())
		drain, interrupt := context.WithCancel(t.Context())
		b.Drain, b.DrainTimeout = drain, 10*time.Hour
		// The interrupt comes in the third hour. Before it, a probe and the warm-up take one hour
		// each.
		time.AfterFunc(140*time.Minute, interrupt)
		time.AfterFunc(141*time.Minute, now)
		run, err := exec.Run(ctx, b.Config)
		if err != nil || run.Stopped != "interrupted" || b.closed != 1 {
			t.Errorf("stopped %q, closed %d times, %v", run.Stopped, b.closed, err)
		}
		got := c.Now()
		must.Hold(t, got >= 141*time.Minute && got <= 141*time.Minute+s, "ended at %v, want 141m", got)
	})
}

func TestInterruptedBeforeItBegan(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		b := newBench(t, c, planOf(1, closedLoad(2, 10)), steady(s, 0))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		run, err := exec.Run(ctx, b.Config)
		if err != nil || run.Stopped != "interrupted" || len(b.requests) != 0 || run.Levels[0].Skipped != "interrupted" {
			t.Errorf("stopped %q after %d requests, %v", run.Stopped, len(b.requests), err)
		}
	})
}

func TestDeafTransport(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		b := newBench(t, c, planOf(1, closedLoad(1, 2)), func(n int, r *client.Request) reply {
			return reply{deaf: n == 2, ttft: s}
		})
		b.Budget = 30 * s
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		got := run.End
		must.Hold(t, got >= 40*s && got <= 41*s, "ended at %v, want the budget of 30s and 10s of patience", got)
		m := run.Levels[0].MeasuredSamples()
		must.Hold(t, len(m) == 2 && m[1].Failure != nil && m[1].Failure.Kind == metric.FailCanceled, "measured %v, want the second given up on", m)
	})
}

func TestBudget(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		p := planOf(1, closedLoad(2, 10), closedLoad(4, 4000), closedLoad(8, 8))
		p.Gate.Budget = time.Minute
		b := newBench(t, c, p, steady(s, 0))
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		must.Hold(t, run.Stopped == "budget" && run.End <= 61*s && b.closed == 1, "stopped %q at %v, closed %d times", run.Stopped, run.End, b.closed)
		must.Hold(t, run.Levels[0].Rounds[0].Complete, "the first level was done well before the budget")
		r := run.Levels[1].Rounds[0]
		must.Hold(t, !r.Complete && r.Stopped == "the budget of 1m0s was spent", "second level: %+v", r)
		must.Same(t, "third level skipped because", "the budget of 1m0s was spent", run.Levels[2].Skipped)
	})
}

// The run gives up on a server after 20 requests if none completes. On 4 slots these are five
// waves.
func TestNothingEverCompletes(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		load := closedLoad(4, 400)
		load.Timeout, load.Warmup = 10*s, 0
		b := newBench(t, c, planOf(1, load), func(n int, _ *client.Request) reply {
			return reply{status: &client.Error{Kind: metric.FailStatus, Status: 503, Message: "overloaded"}, code: 503}
		})
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		r := run.Levels[0].Rounds[0]
		want := "20 requests failed and none completed: overloaded"
		must.Hold(t, r.Stopped == want && !r.Complete, "stopped %q, complete %v; want %q", r.Stopped, r.Complete, want)
	})
}

func TestServerDies(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		p := planOf(1, closedLoad(4, 400), closedLoad(8, 80))
		b := newBench(t, c, p, func(n int, _ *client.Request) reply {
			if n < 100 {
				return reply{ttft: s}
			}
			return reply{refuse: errRefused}
		})
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		want := "10 connections in a row failed: connection refused"
		must.Same(t, "server error", want, run.Servers[0].Error)
		got := len(b.requests)
		must.Hold(t, got <= 120, "%d requests were sent to a server that died after 100", got)
		r := run.Levels[0].Rounds[0]
		must.Hold(t, !r.Complete && r.Stopped == want, "round %+v", r)
		must.Same(t, "second level skipped because", "the server could not be measured: "+want, run.Levels[1].Skipped)
		must.Hold(t, b.closed == 1 && run.Stopped == "", "closed %d times, stopped %q", b.closed, run.Stopped)
	})
}

// If a request cannot be sent because no local port is free, the measurement ends. The failure is
// not the server's, so it must not count.
func TestOutOfPorts(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		noPorts := &client.Error{Kind: metric.FailLocal, Message: "out of local ports"}
		b := newBench(t, c, planOf(1, closedLoad(4, 400)), func(n int, _ *client.Request) reply {
			if n == 100 {
				return reply{refuse: noPorts}
			}
			return reply{ttft: s}
		})
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		must.Same(t, "server error", noPorts.Message, run.Servers[0].Error)
		r := run.Levels[0].Rounds[0]
		must.Hold(t, !r.Complete && r.Stopped == noPorts.Message && len(b.requests) <= 110, "round %+v after %d requests", r, len(b.requests))
	})
}

// After each round the run asks whether the same server answers. If another does, the run loses the
// server.
func TestAnotherServerAnswers(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		b := newBench(t, c, planOf(1, closedLoad(1, 4, 1, 2)), func(int, *client.Request) reply { return reply{ttft: s} })
		b.Config.Plan.Workloads[0].Loads[0].Levels[0].Rounds = 4
		asked := 0
		b.target.Same = func(context.Context) error {
			if asked++; asked == 2 {
				return errors.New("another server answers")
			}
			return nil
		}
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		if got := run.Servers[0].Error; got != "another server answers" || asked != 2 || len(run.Levels[0].Rounds) != 2 {
			t.Errorf("error %q after %d questions and %d rounds; want it after 2 of each", got, asked, len(run.Levels[0].Rounds))
		}
	})
}

func TestServerExits(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		b := newBench(t, c, planOf(1, closedLoad(1, 400)), func(n int, _ *client.Request) reply {
			if n < 3 {
				return reply{ttft: s}
			}
			return reply{refuse: errRefused}
		})
		b.target.Err = func() error {
			if len(b.requests) > 3 {
				return &exec.ServerError{Err: errors.New("the process exited: signal: killed"), Log: "oom\n"}
			}
			return nil
		}
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		if got := run.Servers[0]; got.Error != "the process exited: signal: killed" || got.Log != "oom\n" || len(b.requests) != 4 {
			t.Errorf("server %+v after %d requests", got, len(b.requests))
		}
	})
}

func TestWarmupFails(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		for _, l := range []*plan.Load{
			closedLoad(8, 300, 1, 2),
			{Kind: metric.Burst, Seeds: []int64{1}, Warmup: plan.WarmupAuto, Levels: []plan.Level{{Name: "burst 8", N: 8, Requests: 80, Rounds: 10}}},
		} {
			b := newBench(t, c, planOf(1, l, closedLoad(1, 2)), func(n int, r *client.Request) reply {
				if strings.Contains(r.Prompt.Text, "Level:1 ") {
					return reply{ttft: s}
				}
				return reply{status: errBusy}
			})
			run := must.Get(exec.Run(t.Context(), b.Config))(t)
			r := run.Levels[0].Rounds[0]
			if r.Complete || r.Stopped != "every warm-up request failed: CUDA out of memory" || len(r.MeasuredSamples()) != 0 {
				t.Errorf("%s: round %+v with %d measured", l.Kind, r, len(r.MeasuredSamples()))
			}
			must.Hold(t, len(run.Levels[0].Rounds) == 1, "%s: %d rounds were tried", l.Kind, len(run.Levels[0].Rounds))
			// The failed warm-up of one level does not affect the next level.
			if run.Servers[0].Error != "" || !run.Levels[1].Rounds[0].Complete {
				t.Errorf("%s: server %+v, next level %+v", l.Kind, run.Servers[0], run.Levels[1])
			}
		}
	})
}

func TestMeasuredFailuresAreSamples(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		b := newBench(t, c, planOf(1, closedLoad(4, 100)), func(n int, r *client.Request) reply {
			if n%3 == 0 && strings.Contains(r.Prompt.Text, "measured") {
				return reply{status: errBusy}
			}
			return reply{ttft: s}
		})
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		r := run.Levels[0].Rounds[0]
		failed := 0
		for _, m := range r.MeasuredSamples() {
			if m.Failure != nil {
				failed++
			}
		}
		if !r.Complete || len(r.MeasuredSamples()) != 100 || failed < 25 || failed > 45 {
			t.Errorf("complete %v, %d measured, %d failed; want all 100, about a third of them failed", r.Complete, len(r.MeasuredSamples()), failed)
		}
	})
}

func TestRequestTimeout(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		l := closedLoad(1, 2)
		l.Timeout = 5 * s
		b := newBench(t, c, planOf(1, l), func(n int, r *client.Request) reply {
			if strings.Contains(r.Prompt.Text, "measured") {
				return reply{}
			}
			return reply{ttft: s}
		})
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		r := run.Levels[0].Rounds[0]
		for _, m := range r.MeasuredSamples() {
			if m.Failure == nil || m.Failure.Kind != metric.FailTimeout || m.End-m.Sent != 5*s {
				t.Errorf("%v: %+v after %v, want a time-out after 5s", m, m.Failure, m.End-m.Sent)
			}
		}
		must.Hold(t, r.Complete, "time-outs are answers: the round is complete")
	})
}

func TestObserverFails(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		b := newBench(t, c, planOf(1, closedLoad(4, 100), closedLoad(2, 10)), steady(s, 0))
		b.observer.fail = errDisk
		run, err := exec.Run(t.Context(), b.Config)
		must.Hold(t, errors.Is(err, errDisk), "error %v, want %v", err, errDisk)
		if b.closed != 1 || len(b.requests) > 8 || run.Levels[1].Skipped == "" {
			t.Errorf("closed %d times, %d requests, second level %+v", b.closed, len(b.requests), run.Levels[1])
		}
		last := b.calls[len(b.calls)-1]
		must.Hold(t, strings.HasPrefix(last, "run done"), "the last call was %q", last)
	})
}

func TestServerDoesNotStart(t *testing.T) {
	p := planOf(1, closedLoad(2, 10))
	other := &plan.Server{Name: "other"}
	p.Servers = append(p.Servers, other)
	p.Workloads[0].Servers = p.Servers
	b := newBench(t, clock.NewVirtual(), p, steady(s, 0))
	good := b.Launch
	b.Launch = func(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
		if s == other {
			return good(ctx, s, state)
		}
		return nil, &exec.ServerError{Err: errors.New("not ready after 20m0s: 503"), Log: "loading\n"}
	}
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	got := run.Servers[0]
	must.Hold(t, got.Error == "not ready after 20m0s: 503" && got.Log == "loading\n", "server %+v", got)
	if run.Levels[0].Skipped == "" || !run.Levels[1].Rounds[0].Complete {
		t.Errorf("levels %+v, %+v; want the first skipped and the second run", run.Levels[0], run.Levels[1])
	}
}

func TestAnotherServerAtTheEnd(t *testing.T) {
	b := newBench(t, clock.NewVirtual(), planOf(1, closedLoad(2, 10)), steady(s, 0))
	b.target.Check = func(context.Context) error { return errors.New("version was 0.19.1 and is 0.19.2") }
	run, _ := exec.Run(t.Context(), b.Config)
	must.Same(t, "server error", "version was 0.19.1 and is 0.19.2", run.Servers[0].Error)
}

func TestOnly(t *testing.T) {
	b := newBench(t, clock.NewVirtual(), planOf(1, closedLoad(2, 10), closedLoad(4, 10)), steady(s, 0))
	b.Only = func(c exec.Case) bool { return c.Level.Name == "4" }
	run, _ := exec.Run(t.Context(), b.Config)
	if run.Levels[0].Skipped != metric.SkippedOnly || !run.Levels[1].Rounds[0].Complete {
		t.Errorf("levels %+v, %+v", run.Levels[0], run.Levels[1])
	}
	b = newBench(t, clock.NewVirtual(), planOf(1, closedLoad(2, 10)), steady(s, 0))
	b.Only = func(exec.Case) bool { return false }
	run, _ = exec.Run(t.Context(), b.Config)
	if len(run.Servers) != 0 || run.Levels[0].Skipped != metric.SkippedOnly {
		t.Errorf("servers %v, level %+v; want nothing launched", run.Servers, run.Levels[0])
	}
}

func TestMeterAndCalibration(t *testing.T) {
	b := newBench(t, clock.NewVirtual(), planOf(1, closedLoad(2, 10, 1, 2)), steady(s, 0))
	running := 0
	b.Meter = func() func() metric.Health {
		running++
		return func() metric.Health { running--; return metric.Health{CPU: 0.25, Delay: 3 * ms} }
	}
	b.Calibrate = func(context.Context) (*metric.Calibration, error) { return &metric.Calibration{Streams: 64}, nil }
	run, _ := exec.Run(t.Context(), b.Config)
	for _, r := range run.Levels[0].Rounds {
		must.Hold(t, r.Health.CPU == 0.25 && r.Health.Delay == 3*ms, "health %+v", r.Health)
	}
	must.Hold(t, running == 0 && run.Calibration != nil && run.Calibration.Streams == 64, "%d meters still run, calibration %+v", running, run.Calibration)
	b = newBench(t, clock.NewVirtual(), planOf(1, closedLoad(2, 10)), steady(s, 0))
	if run, _ = exec.Run(t.Context(), b.Config); run.Levels[0].Rounds[0].Health.CPU != -1 || run.Calibration != nil {
		t.Errorf("without a meter: %+v, %+v; want unknown", run.Levels[0].Rounds[0].Health, run.Calibration)
	}
}

// The generator is calibrated once, while the first server starts. The calibration and the start do
// not delay each other, and the load begins after both.
func TestCalibrationBesideTheStart(t *testing.T) {
	for _, tt := range []struct{ start, calibration, load time.Duration }{
		{3 * s, 2 * s, 3 * s}, {3 * s, 5 * s, 5 * s},
	} {
		shared := &clock.Shared{Clock: clock.NewVirtual()}
		p := planOf(1, closedLoad(2, 10))
		p.Servers[0].Process = &plan.Process{}
		second := &plan.Server{Name: "second"}
		p.Servers = append(p.Servers, second)
		p.Workloads[0].Servers = p.Servers
		b := newBench(t, shared, p, steady(s, 0))
		launch, times := b.Launch, 0
		b.Launch = func(ctx context.Context, on *plan.Server, state func(string)) (*exec.Target, error) {
			if err := clock.Sleep(ctx, shared, tt.start); err != nil {
				return nil, err
			}
			return launch(ctx, on, state)
		}
		b.Calibrate = func(ctx context.Context) (*metric.Calibration, error) {
			times++
			return &metric.Calibration{Streams: 64}, clock.Sleep(ctx, shared, tt.calibration)
		}
		run, err := exec.Run(t.Context(), b.Config)
		if err != nil || times != 1 || run.Calibration == nil {
			t.Fatalf("%d calibrations, kept %+v, %v", times, run.Calibration, err)
		}
		for _, found := range run.Servers {
			x := found.Starts[0]
			must.Hold(t, x.Ready-x.At == tt.start, "the start took %v, want %v", x.Ready-x.At, tt.start)
		}
		first := run.Levels[0].Rounds[0].Samples[0]
		must.Same(t, "the load began after", tt.load, first.Sent-run.Servers[0].Starts[0].At)
	}
}

// If tokgate starts no server, the generator is calibrated after the load. If the budget ends
// during the calibration, only the calibration stops, and all measurements are complete.
func TestCalibrationAfterTheLoad(t *testing.T) {
	var whole time.Duration
	for _, budget := range []time.Duration{0, s / 2} { // time left after the load; 0: no budget
		shared := &clock.Shared{Clock: clock.NewVirtual()}
		b := newBench(t, shared, planOf(1, closedLoad(2, 10)), steady(s, 0))
		if budget > 0 {
			b.Plan.Gate.Budget = whole + budget
		}
		var began time.Duration
		b.Calibrate = func(ctx context.Context) (*metric.Calibration, error) {
			began = shared.Now()
			return &metric.Calibration{Streams: 64}, clock.Sleep(ctx, shared, s)
		}
		run, err := exec.Run(t.Context(), b.Config)
		if whole = run.End; err != nil || (run.Calibration == nil) != (budget > 0) || began < run.End || run.Stopped != "" {
			t.Errorf("budget %v: calibrated %+v at %v, the run ended at %v, stopped by %q, %v", budget, run.Calibration, began, run.End, run.Stopped, err)
		}
	}
}

func TestPromptsFail(t *testing.T) {
	b := newBench(t, clock.NewVirtual(), planOf(1, closedLoad(2, 10)), steady(s, 0))
	b.target.Prompts = func(context.Context, *plan.Workload, uint64) (exec.Prompts, error) {
		return nil, errors.New("the context holds 8192 tokens")
	}
	run, _ := exec.Run(t.Context(), b.Config)
	must.Same(t, "skipped because", "no prompts could be made: the context holds 8192 tokens", run.Levels[0].Skipped)
}

func TestSecretsStayHere(t *testing.T) {
	const key = "sk-verysecret"
	p := planOf(1, closedLoad(1, 4), closedLoad(2, 4))
	p.Secrets = []string{key}
	b := newBench(t, clock.NewVirtual(), p, func(n int, r *client.Request) reply {
		if n%2 == 1 {
			return reply{status: &client.Error{Kind: metric.FailStatus, Status: 401, Message: "no such key: " + key}}
		}
		return reply{ttft: s}
	})
	b.target.Fingerprint = metric.Fingerprint{"model": key}
	b.target.Check = func(context.Context) error { return errors.New("refused " + key) }
	b.target.Log = func() string { return "Authorization: Bearer " + key }
	launch := b.Launch
	b.Launch = func(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
		state("trying " + key)
		return launch(ctx, s, state)
	}
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	raw := must.Get(json.Marshal([]any{run, b.samples, b.calls}))(t)
	must.Hold(t, !strings.Contains(string(raw), key) && strings.Contains(string(raw), "Bearer [redacted]"), "the secret got out: %s", raw)
}

// Half of all requests fail, so all warm-up requests of some rounds fail. Such a round is still
// measured.
func TestFailingNowAndThen(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		for _, l := range []*plan.Load{
			closedLoad(2, 200, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
			{Kind: metric.Burst, Seeds: []int64{1}, Warmup: 1, Levels: []plan.Level{{Name: "burst 2", N: 2, Requests: 100, Rounds: 50}}},
		} {
			rng := rand.New(rand.NewPCG(3, 4))
			b := newBench(t, c, planOf(1, l), func(int, *client.Request) reply {
				if rng.IntN(2) == 0 {
					return reply{status: errBusy}
				}
				return reply{ttft: s}
			})
			run := must.Get(exec.Run(t.Context(), b.Config))(t)
			cold := 0 // rounds in which all warm-up requests failed
			for _, r := range run.Levels[0].Rounds {
				fine := slices.ContainsFunc(r.Samples, func(x *metric.Sample) bool { return x.Phase == metric.Warmup && x.Completed() })
				if !fine {
					cold++
				}
				must.Hold(t, r.Complete, "%s: round %d was cut short: %s", l.Kind, r.Index+1, r.Stopped)
			}
			if got := len(run.Levels[0].Rounds); got != l.Levels[0].Rounds || cold == 0 {
				t.Errorf("%s: %d rounds, in %d of them the whole warm-up failed; want all %d, and some", l.Kind, got, cold, l.Levels[0].Rounds)
			}
		}
	})
}

// A run notices if its own process stood still during requests, as after SIGSTOP.
func TestStall(t *testing.T) {
	for _, still := range []time.Duration{300 * ms, 700 * ms, 2 * s, 8 * s} {
		t.Run(still.String(), func(t *testing.T) { stalled(t, still) })
	}
}

func stalled(t *testing.T, still time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, clock.NewReal(), planOf(1, closedLoad(2, 10, 1, 2)), steady(s, 0))
		b.Meter = func() func() metric.Health { return func() metric.Health { return metric.Health{CPU: 0.5} } }
		asleep := time.Duration(0)
		b.onDone = func(x *metric.Sample) {
			if x.Round == 1 && x.Phase == metric.Measured && x.Order == 3 {
				asleep = x.End
				time.Sleep(still)
			}
		}
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		// One round was disturbed, and was measured again with another seed and other prompts.
		l := run.Levels[0]
		must.Need(t, len(l.Rounds) == 2 && len(l.Voided) == 1, "%d rounds and %d voided, want 2 and 1", len(l.Rounds), len(l.Voided))
		// The stall is measured from the next heartbeat that was due, which may be 10 ms later. The
		// test allows 100 ms.
		void := l.Voided[0]
		if got := void.Health; got.Stall < still-100*ms || got.Stall > still || got.CPU != 0.5 {
			t.Errorf("health %+v, want a stall of %v, or up to 100 ms less", got, still)
		} else if s := got.Standstills; len(s) != 1 || s[0].To-s[0].From != got.Stall || !got.StoodStill(asleep+still/2, asleep+still/2) {
			t.Errorf("standstills %v, want the one of %v from %v on", s, still, asleep)
		}
		if void.Index != 1 || void.Seed != 2 || !strings.HasPrefix(void.Void, "the generator stood still for ") || len(void.Samples) == 0 {
			t.Errorf("voided round %d, seed %d, %q with %d samples", void.Index, void.Seed, void.Void, len(void.Samples))
		}
		again := l.Rounds[1]
		must.Hold(t, again.Index == 2 && again.Due == void.Due && again.Void == "" && again.Health.Stall == 0, "measured again as %+v", again)
		got := l.Rounds[0].Health.Stall
		must.Hold(t, got == 0, "a round that ran on time has a stall of %v", got)
		if got := l.Rounds[0].Health.Standstills; got == nil || len(got) > 0 {
			t.Errorf("a round that ran on time has the standstills %#v; want an empty record", got)
		}
		for _, n := range b.transport.prompts {
			must.Hold(t, n == 1, "a prompt was sent %d times", n)
		}
	})
}

// If every round was disturbed, only a third of the rounds is measured again.
func TestVoidedAtMost(t *testing.T) {
	for _, c := range []struct{ rounds, voided int }{{1, 1}, {2, 1}, {5, 1}, {6, 2}, {10, 3}} {
		seeds := make([]int64, c.rounds)
		b := newBench(t, clock.NewVirtual(), planOf(1, closedLoad(2, 10*c.rounds, seeds...)), steady(s, 0))
		b.Meter = func() func() metric.Health { return func() metric.Health { return metric.Health{Delay: s} } }
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		if l := run.Levels[0]; len(l.Rounds) != c.rounds || len(l.Voided) != c.voided {
			t.Errorf("%d rounds: %d and %d voided, want %d", c.rounds, len(l.Rounds), len(l.Voided), c.voided)
		}
	}
}
