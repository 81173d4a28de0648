// Package exec runs a plan. It starts every server that the plan declares, and runs every level of
// every workload on it. It passes its observations on as they happen, and never judges them.
package exec

import "github.com/tokgate/tokgate/metric"

// Observer receives the events of a run. All calls come from one goroutine. An error ends the
// run, because an observation that cannot be recorded does not count.
type Observer func(metric.Event) error
