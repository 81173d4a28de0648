package plan

import (
	"time"

	"github.com/hashicorp/hcl/v2"
)

// Telemetry sets how a server is observed from the inside while the load runs.
type Telemetry struct {
	Off      bool
	Interval time.Duration `plan:"interval"` // time between two readings; at least MinInterval
	URL      string        // URL of the server's metrics page; "" for the engine's usual place
	DCGM     string        // URL of a DCGM exporter's page; "" asks the vendor's tool instead
	// GPUs lists the server's GPUs by index or UUID. nil means the GPUs that tokgate
	// gave it; a server that tokgate did not start then has none.
	GPUs    []string `plan:"gpus"`
	Require Require
	Range   hcl.Range // zero when the server has no telemetry block
}

// Require holds conditions on the server's GPUs. A measured round that does not meet a
// condition is invalid. A nil field requires nothing, except that nil Throttled means
// MostThrottled.
type Require struct {
	// Throttled bounds the share of readings under thermal or hardware slowdown: in a round it
	// must be below Throttled. A value above 1 allows any share.
	Throttled *float64
	// ClockSpread is the share by which the mean clocks of the two legs of a round may differ;
	// they must differ by less.
	ClockSpread *float64
	// ForeignProcesses bounds the number of processes that compute on the GPUs and were not
	// started by the run.
	ForeignProcesses *int
}

// MostThrottled is the default of Require.Throttled.
const MostThrottled = 0.01
