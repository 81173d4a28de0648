package plan

import (
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/metric"
)

// Telemetry says how tokgate reads the metrics of a server and its GPUs during the load.
type Telemetry struct {
	Off      bool
	Interval time.Duration `plan:"interval"`    // time between two readings; at least MinInterval
	URL      string        `plan:"metrics_url"` // URL of the server's metrics page; "" means the engine's usual page
	DCGM     string        `plan:"dcgm_url"`    // URL of a DCGM exporter's page; "" for the GPU vendor's tool
	// GPUs lists the server's GPUs by index or UUID. nil means the GPUs that tokgate gave to the
	// server. A server that tokgate did not start then has none.
	GPUs    []string `plan:"gpus"`
	Require Require
	// Prometheus is asked about the server too; nil if none is.
	Prometheus *Prometheus `plan:"prometheus"`
	Range      hcl.Range   // place in the plan; zero without a telemetry block
}

// Prometheus is a Prometheus server that is asked about a server while the load runs.
type Prometheus struct {
	URL     string            `plan:"url"`
	Headers map[string]string `plan:"headers"` // sent with every query
	Stale   time.Duration     `plan:"stale"`   // older samples are no value
	Series  []Query
	Range   hcl.Range
}

// Query is one figure from a Prometheus server. Def is its definition as a metric.
type Query struct {
	Def    metric.Def
	PromQL string
}

// Defs returns the definitions of the series; nil if p is nil.
func (p *Prometheus) Defs() (out []metric.Def) {
	if p != nil {
		for _, s := range p.Series {
			out = append(out, s.Def)
		}
	}
	return out
}

// Require holds conditions on the server's GPUs. A measured round that does not meet a
// condition is invalid. A nil field requires nothing, except that nil Throttled means
// MostThrottled.
type Require struct {
	// Throttled is the limit on the share of readings under thermal or hardware slowdown. In each
	// round the share must be below it. A value above 1 allows any share.
	Throttled *float64
	// ClockSpread limits how much the mean clocks of the control's and the candidate's GPUs may
	// differ, as a share. A difference of this size is already too large.
	ClockSpread *float64
	// ForeignProcesses is the largest allowed number of processes on the GPUs that the run did not
	// start.
	ForeignProcesses *int
}

// MostThrottled is the default of Require.Throttled.
const MostThrottled = 0.01
