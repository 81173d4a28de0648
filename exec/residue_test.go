package exec_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/telemetry"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// What a server keeps is observed after a first part of the load, in which nobody leaves. On an
// endpoint it has no value if others use the server, or may.
func TestResidue(t *testing.T) {
	type page struct {
		gauges  map[string]float64
		answers float64 // that the server began; −1: it does not count them
	}
	for _, tt := range []struct {
		name     string
		endpoint bool
		engine   string
		burst    bool
		page     func(of page, level int) page // changes what is reported after so many requests of the level
		fails    func(reading int) bool        // whether a reading fails
		why      string
		after    metric.Occupied
	}{
		{name: "nothing is left"},
		{name: "a burst", burst: true, after: metric.Occupied{AtOnce: 256}},
		{name: "a slot", page: func(p page, level int) page { p.gauges["running"] += float64(min(level, 2)); return p }, after: metric.Occupied{Running: metric.Some(2)}},
		{name: "KV cache", page: func(p page, level int) page { p.gauges["kv_usage"] = float64(min(level, 5)) / 100; return p }, after: metric.Occupied{KV: metric.Some(0.05)}},
		{name: "KV cache of an engine that counts cached blocks", engine: "llama.cpp",
			page: func(p page, level int) page { p.gauges["kv_usage"] = float64(min(level, 5)) / 100; return p }, after: metric.Occupied{KV: metric.None("the engine counts cached blocks too")}},
		{name: "a slot, where two of three readings fail", fails: func(reading int) bool { return reading%3 < 2 },
			page: func(p page, level int) page { p.gauges["running"] += float64(min(level, 2)); return p }, after: metric.Occupied{Running: metric.Some(2)}},
		{name: "no gauge", page: func(p page, _ int) page { delete(p.gauges, "running"); return p }, after: metric.Occupied{Running: metric.None("the server does not report it")}},
		{name: "an idle endpoint", endpoint: true},
		{name: "an endpoint that works for others", endpoint: true, page: func(p page, _ int) page { p.gauges["running"]++; return p }, why: "others use the server"},
		{name: "others asked meanwhile", endpoint: true, page: func(p page, level int) page { p.answers += float64(3 * level); return p },
			why: "others use the server: it began more answers than tokgate asked for"},
		{name: "answers are not counted", endpoint: true, page: func(p page, _ int) page { p.answers = -1; return p }, why: "others may use the server: its page does not count answers"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c clock.Clock) {
				p := planOf(20, closedLoad(4, 40, 1))
				p.Servers[0].Engine = tt.engine
				p.Workloads[0].Residue = &plan.Residue{Settle: 5 * time.Second, Burst: tt.burst, Severity: plan.SeverityError}
				if tt.endpoint {
					p.Servers[0].Endpoint = &plan.Endpoint{}
				}
				level, readings, before := 0, 0, []string{}
				b := newBench(t, c, p, func(_ int, r *client.Request) reply {
					if strings.Contains(r.Prompt.Text, "Phase:measured") {
						level++
					} else if level == 0 {
						before = append(before, r.Prompt.Text)
					}
					return reply{ttft: 20 * ms, itl: 10 * ms}
				})
				b.target.Inside = &telemetry.Watch{Clock: c, Server: telemetry.Direct(func() (*telemetry.Reading, error) {
					b.transport.mu.Lock()
					defer b.transport.mu.Unlock()
					if readings++; tt.fails != nil && tt.fails(readings-1) {
						return nil, errors.New("planted")
					}
					is := page{map[string]float64{"running": float64(b.inFlight), "waiting": 0, "kv_usage": 0}, float64(len(b.requests))}
					if tt.page != nil {
						is = tt.page(is, level)
					}
					out := &telemetry.Reading{Gauges: is.gauges, Counters: map[string]float64{metric.GeneratedTokens: float64(20 * level)}}
					if is.answers >= 0 {
						out.Histograms = map[string]metric.Histogram{"server_ttft": {Counts: []float64{is.answers}}}
					}
					return out, nil
				})}
				run := must.Get(exec.Run(t.Context(), b.Config))(t)
				r := run.Levels[0].Residue
				if r == nil {
					t.Fatal("not observed")
				}
				if first := strings.Count(strings.Join(before, ""), "Phase:first"); first != map[bool]int{false: 4, true: plan.ResidueBurst}[tt.burst] {
					t.Errorf("%d requests of the first part: %q", first, before)
				}
				if r.Why != tt.why {
					t.Fatalf("why %q, want %q", r.Why, tt.why)
				}
				if tt.why != "" {
					return
				}
				want := metric.Occupied{Running: metric.Some(0), Waiting: metric.Some(0), KV: metric.Some(0), Alone: 20 * ms, AtOnce: tt.after.AtOnce}
				if tt.after.Running != (metric.Value{}) {
					want.Running = tt.after.Running
				}
				if tt.after.KV != (metric.Value{}) {
					want.KV = tt.after.KV
				}
				if r.After != want {
					t.Errorf("after %+v, want %+v", r.After, want)
				}
				if kept := want.Running.V+want.KV.V > 0; kept != (r.Settled >= 5*time.Second) {
					t.Errorf("waited %v", r.Settled)
				}
				// 40 measured requests of 20 tokens each, fillers, and one request alone.
				if r.Made.V != 20*float64(level) || r.Taken < 800 {
					t.Errorf("made %+v, taken %v", r.Made, r.Taken)
				}
			})
		})
	}
}
