package plan

import (
	"time"

	"github.com/hashicorp/hcl/v2"
)

// Telemetry says how a server is watched from the inside while the load runs.
type Telemetry struct {
	Off      bool
	Interval time.Duration `plan:"interval"` // between two readings; at least MinInterval
	URL      string        // of the server's metrics page; "": where the engine has it
	DCGM     string        // URL of a DCGM exporter's page; "": the GPUs' own tool is asked
	// GPUs are those of the server, by index or UUID; nil: those that it was
	// given, or none for a server that was not started by tokgate.
	GPUs    []string `plan:"gpus"`
	Require Require
	Range   hcl.Range // zero when the server has no telemetry block
}

// Require is what a server's GPUs must show while a round is measured, or it is not valid. nil
// is not required, but for Throttled: MostThrottled.
type Require struct {
	// Throttled is the share of readings under thermal or hardware slowdown that a round must
	// stay below; above 1: any will do.
	Throttled *float64
	// ClockSpread is by what share the mean clocks of the two legs of a round of a comparison must
	// differ less.
	ClockSpread *float64
	// ForeignProcesses is how many processes may compute on the GPUs that the run did not start.
	ForeignProcesses *int
}

// MostThrottled is what Require.Throttled is where a plan does not say.
const MostThrottled = 0.01
