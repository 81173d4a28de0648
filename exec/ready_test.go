package exec_test

import (
	"context"
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

// warmed is a transport that records how many connections Warm should open.
type warmed struct {
	*transport
	conns []int
}

func (w *warmed) Prepare(r *client.Request) client.Prompt { return r.Prompt }
func (w *warmed) Warm(_ context.Context, n int)           { w.conns = append(w.conns, n) }

// A load with a rate opens connections before its first request. Their number is the rate times the
// duration of a request, which is taken as 4 s while it is unknown.
func TestConnectionsAhead(t *testing.T) {
	rates := rateLoad(2, 40, 4)
	rates.Levels = append(rates.Levels, plan.Level{Name: plan.RateName(5), Rate: 5, Requests: 40, Rounds: 4})
	stage := func(rate float64, most int) *plan.Load {
		l := rateLoad(rate, 10, 1)
		l.Levels[0].Stage = &metric.Stage{From: rate, To: rate}
		l.Open.Warmup, l.Open.MaxInFlight = 0, most
		return l
	}
	for name, tt := range map[string]struct {
		load *plan.Load
		want []int
	}{
		"rates":                       {rates, []int{8, 6}},            // rate · time: 2/s · 4 s, 5/s · 1.2 s
		"a rate, few in flight":       {stage(10, 20), []int{20}},      // 40, but at most 20
		"a rate, many in flight":      {stage(1000, 5000), []int{256}}, // 4,000, but at most 256
		"users":                       {people(8, 8*time.Second, 1), []int{8}},
		"users that take long":        {func() *plan.Load { l := people(8, 8*time.Second, 1); l.People.RampUp = 16 * time.Second; return l }(), []int{2}},
		"users that come all at once": {func() *plan.Load { l := people(8, 8*time.Second, 1); l.People.RampUp = 0; return l }(), []int{8}},
	} {
		synctest.Test(t, func(t *testing.T) { // a bubble waits until all goroutines have ended
			c := clock.NewReal()
			p := planOf(3, tt.load)
			if tt.load.People != nil {
				p = chat(tt.load)
			}
			b := newBench(t, c, p, steady(400*time.Millisecond, 400*time.Millisecond))
			b.target.Prompts = func(_ context.Context, w *plan.Workload, _ uint64) (exec.Prompts, error) {
				return talkers{prompts{w.Address()}}, nil
			}
			server := &warmed{transport: b.transport}
			b.target.Transport = server
			must.Get(exec.Run(t.Context(), b.Config))(t)
			must.Same(t, name, tt.want, server.conns)
		})
	}
}
