package exec_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/telemetry"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// countedMetrics returns a source of server metrics, and a counter of its readings. The metrics are
// the counts of b's transport. If fail returns an error, the reading fails.
func countedMetrics(b *bench, fail func(n int) error) (*telemetry.Watch, *int) {
	n := 0
	return &telemetry.Watch{Clock: b.Config.Clock, NoGPU: "there is none", Server: telemetry.Direct(func() (*telemetry.Reading, error) {
		n++
		if fail != nil {
			if err := fail(n); err != nil {
				return nil, err
			}
		}
		b.transport.mu.Lock()
		defer b.transport.mu.Unlock()
		return &telemetry.Reading{
			Gauges:   map[string]float64{"running": float64(b.inFlight)},
			Counters: map[string]float64{metric.Preempted: float64(len(b.requests))},
		}, nil
	})}, &n
}

// TestInside checks the server's own metrics. Counters are reported as differences over the
// measured window. Gauges are reported from readings within the window.
func TestInside(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		// A request takes 2 s, and the 4 slots start half a second apart. So four requests begin
		// every 2 s.
		b := newBench(t, c, planOf(101, closedLoad(4, 80, 1, 2)), steady(s, 10*ms))
		b.target.Inside, _ = countedMetrics(b, nil)
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		for _, r := range run.Levels[0].Rounds {
			tm := r.Telemetry
			must.Need(t, tm != nil, "nothing was told")
			if (tm.From-r.WindowStart).Abs() > ms || (tm.To-r.WindowEnd).Abs() > ms {
				t.Errorf("read from %v to %v, the window is %v to %v", tm.From, tm.To, r.WindowStart, r.WindowEnd)
			}
			// Four requests begin every 2 s. Count those that began between the first and the last
			// reading.
			begun := 0.0
			for _, x := range r.Samples {
				if x.Sent > tm.From && x.Sent <= tm.To {
					begun++
				}
			}
			got := tm.Added[metric.Preempted]
			must.Hold(t, got >= begun-1 && got <= begun+1 && begun >= 30, "the server counted %v, the samples %v", got, begun)
			g := tm.Gauges["running"]
			seconds := int((r.WindowEnd - r.WindowStart) / s)
			must.Hold(t, g.N >= seconds && g.N <= seconds+3 && g.Max == 4 && g.Mean >= 3.9, "%d readings in %d s: %+v", g.N, seconds, g)
			must.Hold(t, tm.Missing["power"] == "there is none" && tm.Missing["kv_usage"] != "", "missing %v", tm.Missing)
		}
	})
}

// TestInsideOfABurst checks that the server's metrics are read before and after a burst, even if
// the burst is very short.
func TestInsideOfABurst(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		load := &plan.Load{Kind: metric.Burst, Seeds: []int64{1}, Warmup: plan.WarmupAuto, Levels: []plan.Level{{Name: "burst 8", N: 8, Requests: 16, Rounds: 2}}}
		b := newBench(t, c, planOf(11, load), steady(20*ms, ms))
		b.target.Inside, _ = countedMetrics(b, nil)
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		for _, r := range run.Levels[0].Rounds {
			got := r.Telemetry.Added[metric.Preempted]
			must.Hold(t, got == 8, "round %d: the server counted %v requests, want 8: %+v", r.Index, got, r.Telemetry)
		}
	})
}

// TestInsideFails checks that a failed scrape of the server's metrics costs no request and does not
// end the run. Its error is kept without the plan's secrets. If scrapes fail often, the metrics are
// not used at all.
func TestInsideFails(t *testing.T) {
	every := func(k int) func(int) error {
		return func(n int) error {
			if n%k == 7 {
				return errors.New("500 for sk-verysecret")
			}
			return nil
		}
	}
	for name, fail := range map[string]func(n int) error{
		"now and then": every(30), "often": every(8),
		"always": func(int) error { return errors.New("key sk-verysecret refused") },
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c clock.Clock) {
				p := planOf(101, closedLoad(4, 60, 42))
				p.Secrets = []string{"sk-verysecret"}
				b := newBench(t, c, p, steady(s, 10*ms))
				b.target.Inside, _ = countedMetrics(b, fail)
				run := must.Get(exec.Run(t.Context(), b.Config))(t)
				l := run.Levels[0]
				if l.Completed() != 60 || run.Servers[0].Error != "" {
					t.Fatalf("%d completed, %q", l.Completed(), run.Servers[0].Error)
				}
				g, why := l.Gauge("running")
				tm := l.Rounds[0].Telemetry
				switch name {
				case "now and then":
					must.Hold(t, why == "" && g.N >= 20 && tm.Failed >= 1 && tm.Added[metric.Preempted] != 0, "%+v, %q, %+v", g, why, tm)
				case "often":
					if !strings.HasSuffix(why, "readings failed: 500 for [redacted]") || tm.Failed < 3 || tm.Added[metric.Preempted] == 0 {
						t.Errorf("%+v, %q, %+v", g, why, tm)
					}
				default:
					must.Hold(t, g.N == 0 && strings.Contains(why, "key [redacted] refused"), "%+v, %q", g, why)
				}
			})
		})
	}
}

// TestInsideHangs checks that a metrics page that never arrives delays a round by at most a second.
func TestInsideHangs(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		b := newBench(t, c, planOf(101, closedLoad(4, 20, 42)), steady(s, 10*ms))
		begin := c.Now()
		must.Get(exec.Run(t.Context(), b.Config))(t)
		took := c.Now() - begin

		b = newBench(t, c, planOf(101, closedLoad(4, 20, 42)), steady(s, 10*ms))
		b.target.Inside = &telemetry.Watch{Clock: c, Server: func(context.Context, func(*telemetry.Reading, error)) {}}
		begin = c.Now()
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		more := c.Now() - begin - took
		must.Hold(t, more <= time.Second+10*ms, "it took %v more", more)
		why := run.Levels[0].Rounds[0].Telemetry.Missing["waiting"]
		must.Hold(t, strings.Contains(why, "longer than 5s"), "missing because %q", why)
	})
}
