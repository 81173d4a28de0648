package telemetry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

// scripted returns a source for tests. The function answer returns the time that reading n takes; 0
// means that the reading never ends.
func scripted(c clock.Clock, asked *[]time.Duration, answer func(n int) (time.Duration, error)) Source {
	return func(ctx context.Context, done func(*Reading, error)) {
		n := len(*asked)
		*asked = append(*asked, c.Now())
		after, err := answer(n)
		if after == 0 {
			context.AfterFunc(ctx, func() { c.Post(func() { done(nil, ctx.Err()) }) })
			return
		}
		c.Timer(c.Now()+after, func() {
			if err != nil {
				done(nil, err)
				return
			}
			done(&Reading{Gauges: map[string]float64{"waiting": float64(n)}}, nil)
		})
	}
}

func sleep(t *testing.T, c clock.Clock, d time.Duration) {
	t.Helper()
	must.Do(t, clock.Sleep(t.Context(), c, d))
}

func TestWatchReadsAtAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewReal()
		var asked []time.Duration
		w := Watch{Clock: c, Server: scripted(c, &asked, func(n int) (time.Duration, error) {
			if n == 2 {
				return 40 * time.Millisecond, errors.New("500 Internal Server Error")
			}
			return 40 * time.Millisecond, nil
		}), NoGPU: "none"}
		sleep(t, c, time.Second)
		session := w.Begin(t.Context())
		sleep(t, c, 2500*time.Millisecond)
		if !session.Busy() {
			session.Read() // an additional reading at 3.5 s, between the regular ones
		}
		session.Read() // the last reading is still in progress, so this one begins when it ends
		sleep(t, c, 600*time.Millisecond)
		session.End()
		session.End()
		sleep(t, c, 5*time.Second)
		const ms = time.Millisecond
		want := []time.Duration{1000 * ms, 2000 * ms, 3000 * ms, 3500 * ms, 3540 * ms, 4000 * ms}
		must.Need(t, len(asked) == len(want), "asked at %v, want %v", asked, want)
		for i := range want {
			must.Need(t, asked[i] == want[i], "asked at %v, want %v", asked, want)
		}
		got := session.Over(1500*ms, 3530*ms)
		// A reading counts at the time halfway between its request and its response. Two readings
		// are in the window, at 2.02 s and 3.52 s. The third reading failed.
		if g := got.Gauges["waiting"]; g.N != 2 || g.Max != 3 || got.Failed != 1 || got.Reads != 6 {
			t.Errorf("got %+v, %+v", g, got)
		}
	})
}

// A server that does not answer a reading in time is read again. Its late answer is ignored.
func TestWatchGivesUpOnASlowAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewReal()
		var asked []time.Duration
		w := Watch{Clock: c, Server: scripted(c, &asked, func(n int) (time.Duration, error) {
			if n == 0 {
				return 0, nil
			}
			return time.Millisecond, nil
		})}
		session := w.Begin(t.Context())
		sleep(t, c, 4*time.Second)
		must.Hold(t, len(asked) == 1 && session.Busy(), "asked at %v", asked)
		sleep(t, c, 2500*time.Millisecond)
		session.End()
		got := session.Over(0, 7*time.Second)
		if len(asked) != 3 || got.Failed != 1 || !contains(got.Missing["kv_usage"], "reports no such value") ||
			got.Missing["waiting"] != "nothing was read for 5.001s of the window; a reading was due every 1s: it took longer than 5s" {
			t.Errorf("asked at %v, got %+v", asked, got)
		}
	})
}

// In virtual time, a source answers without delay.
func TestWatchInVirtualTime(t *testing.T) {
	c := clock.NewVirtual()
	n := 0.0
	w := Watch{Clock: c, Interval: 100 * time.Millisecond, Server: Direct(func() (*Reading, error) {
		n++
		return &Reading{Gauges: map[string]float64{"running": n}}, nil
	})}
	session := w.Begin(t.Context())
	sleep(t, c, time.Second+time.Millisecond)
	session.End()
	// The eleven readings from 0 to 1.0 s, 0.1 s apart, have the values 1 to 11.
	if g := session.Over(0, 2*time.Second).Gauges["running"]; g.N != 11 || g.Mean != 6 {
		t.Errorf("got %+v", g)
	}
}

func TestWatchIsBounded(t *testing.T) {
	c := clock.NewVirtual()
	w := Watch{Clock: c, Interval: 100 * time.Millisecond, Server: Direct(func() (*Reading, error) {
		return &Reading{Gauges: map[string]float64{"running": 1}}, nil
	})}
	session := w.Begin(t.Context())
	sleep(t, c, 20*time.Minute) // 12,000 readings, one every 0.1 s
	session.End()
	if n := len(session.server.kept.readings); n > mostReadings || n < mostReadings/4 {
		t.Errorf("%d readings are kept", n)
	}
	got := session.Over(0, 20*time.Minute)
	if points := len(got.Series[0].At); points > 500 || points < 250 {
		t.Errorf("%d points", points)
	}
}

// Two replicas are read until they rest, before the load and after it. The whole of each lasts from
// rest to rest: replica a makes 30 tokens of 2 requests in it, and b none. Neither the 5 tokens that
// a made before counts, nor what it still made when the load seemed to begin.
func TestReplicasFromRestToRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewReal()
		running, tokens, requests := 1.0, 5.0, 1.0
		page := func(running, tokens, requests *float64) Source {
			return Direct(func() (*Reading, error) {
				return &Reading{Gauges: map[string]float64{"running": *running, "waiting": 0}, Counters: map[string]float64{metric.GeneratedTokens: *tokens},
					Histograms: map[string]metric.Histogram{"server_e2e": {Counts: []float64{*requests}}}}, nil
			})
		}
		var none [3]float64
		w := Watch{Clock: c, NoGPU: "none", Replicas: []Replica{{"http://a", page(&running, &tokens, &requests)}, {"http://b", page(&none[0], &none[1], &none[2])}}}
		session := w.Begin(t.Context())
		session.Settle()
		sleep(t, c, 250*time.Millisecond)
		if session.Settled() {
			t.Fatal("a replica with a request in progress is at rest")
		}
		running, tokens = 0, 12 // its request ended
		sleep(t, c, 250*time.Millisecond)
		if !session.Settled() {
			t.Fatal("not at rest")
		}
		session.Load()
		from := c.Now()
		tokens, requests = 42, 3
		sleep(t, c, 3*time.Second)
		session.Settle()
		sleep(t, c, 250*time.Millisecond)
		got, by := session.Over(from, c.Now()), session.ByReplica(from, c.Now())
		session.End()
		gauges := map[string]metric.Gauge{}
		for i := range by {
			gauges, by[i].Gauges = by[i].Gauges, nil
		}
		must.Same(t, "replicas (-want +got)", []metric.Replica{
			{URL: "http://a", Added: map[string]float64{metric.GeneratedTokens: 30}, Requests: 2},
			{URL: "http://b", Added: map[string]float64{metric.GeneratedTokens: 0}},
		}, by)
		if gauges["running"].N == 0 || got.Gauges["running"].N != 2*gauges["running"].N {
			t.Errorf("gauges %v, of all %v", gauges, got.Gauges["running"])
		}
	})
}
