package exec_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

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
				Plan: planOf(3, l), Clock: c, Observer: idle{},
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
			if err != nil {
				b.Fatal(err)
			}
			if n := len(run.Levels[0].MeasuredSamples()); n != requests {
				b.Fatalf("%s: %d requests", l.Kind, n)
			}
		}
	}
	b.ReportMetric(float64(took[1])/float64(took[0]), "open/closed")
	b.ReportMetric(float64(took[1].Nanoseconds())/requests, "ns/request")
	b.ReportMetric(0, "ns/op")
}

// idle observes nothing.
type idle struct{}

func (idle) RunStarted(*metric.Run) error                         { return nil }
func (idle) ServerStarting(string, string)                        {}
func (idle) ServerReady(*metric.ServerRun) error                  { return nil }
func (idle) ServerDone(*metric.ServerRun) error                   { return nil }
func (idle) LevelStarted(*metric.Level, int, time.Duration) error { return nil }
func (idle) RequestStarted(*metric.Level, metric.Phase)           {}
func (idle) SampleDone(*metric.Sample) error                      { return nil }
func (idle) RoundDone(*metric.Level, *metric.Round) error         { return nil }
func (idle) LevelDone(*metric.Level) error                        { return nil }
func (idle) RunDone(*metric.Run) error                            { return nil }
