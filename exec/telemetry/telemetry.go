// Package telemetry observes a server while the load runs. It reads the server's metrics page and
// its GPUs at intervals, and summarises the readings of a round as a metric.Telemetry.
//
//   - page.go reads the Prometheus text format, for the names of package engine; labels.go the labels of a
//     line.
//   - nvidia.go and amd.go run the tools of the GPU makers. gpu.go reads an exporter's page.
//   - watch.go takes readings, at an interval and on request.
//   - window.go takes the differences over the measured window.
//
// If a value cannot be read, the telemetry has the reason instead. A missing value never ends a
// run.
package telemetry

import (
	"context"
	"slices"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/metric"
)

// Reading holds what one source reported at one time, under tokgate's names and in base units. A
// nil map counts as empty.
type Reading struct {
	Gauges   map[string]float64
	Counters map[string]float64
	// Histograms are cumulative since the start of the server, as the server reports them.
	Histograms map[string]metric.Histogram
	// The map None has the reason for each missing value.
	None map[string]string
}

// Source takes one reading and calls done with the result. It calls done from the loop of the run's
// clock, before or after it returns. If ctx ends, the reading fails.
type Source func(ctx context.Context, done func(*Reading, error))

// Fetch returns a Source from a function that takes long to read. The function runs in a goroutine
// of its own.
func Fetch(c clock.Clock, read func(context.Context) (*Reading, error)) Source {
	return func(ctx context.Context, done func(*Reading, error)) {
		go func() {
			r, err := read(ctx)
			c.Post(func() { done(r, err) })
		}()
	}
}

// Direct returns a Source that answers at once, such as a simulated server in virtual time. The
// function read is called from the loop.
func Direct(read func() (*Reading, error)) Source {
	return func(_ context.Context, done func(*Reading, error)) { done(read()) }
}

// Tells reports whether the metrics page of an engine may have a server metric, in any known
// version of the engine. For a plain OpenAI server it returns true, because its page is unknown.
func Tells(name, wanted string) bool {
	sources := map[string][]string{
		"accept_rate":   {"accept_rate", metric.AcceptedTokens},
		"accept_length": {"accept_length", metric.AcceptedTokens},
		"preemptions":   {metric.Preempted},
	}[wanted]
	if sources == nil {
		sources = []string{wanted}
	}
	series := engine.Of(name).Series
	return len(series) == 0 || slices.ContainsFunc(series, func(s engine.Series) bool { return slices.Contains(sources, s.Ours) })
}
