// Package telemetry watches a server from the inside while the load runs: it
// reads the server's page of metrics and its GPUs now and then, and makes of
// the readings what a round records of itself, a metric.Telemetry.
//
//   - page.go reads the Prometheus text format, as far as names.go asks for it;
//   - nvidia.go and amd.go read the GPUs' own tools, dcgm.go an exporter's page;
//   - watch.go reads at an interval, and when it is told to;
//   - window.go takes the differences over the measured window.
//
// What cannot be read is no value, with the reason; it never ends a run.
package telemetry

import (
	"context"

	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/metric"
)

// Reading is what one source reported at one time, under our names and in base units. A nil map is
// an empty one.
type Reading struct {
	Gauges   map[string]float64
	Counters map[string]float64
	// Histograms are as the server counts them: since it was started.
	Histograms map[string]metric.Histogram
	// None has the reasons for values that are missing.
	None map[string]string
}

// Source reads once and calls done with the result, from the loop of the run's clock, before or
// after it returns. It ends with an error when ctx does.
type Source func(ctx context.Context, done func(*Reading, error))

// Fetch is a source that takes time: read works in a goroutine of its own.
func Fetch(c clock.Clock, read func(context.Context) (*Reading, error)) Source {
	return func(ctx context.Context, done func(*Reading, error)) {
		go func() {
			r, err := read(ctx)
			c.Post(func() { done(r, err) })
		}()
	}
}

// Direct is a source that answers at once, such as a simulated server in
// virtual time. It is called from the loop.
func Direct(read func() (*Reading, error)) Source {
	return func(_ context.Context, done func(*Reading, error)) { done(read()) }
}
