package sim

import (
	"math"
	"time"
)

// GPU is what the server's GPU reports of itself. How fast the server is does not follow from it:
// it is there to try what is required of a real one.
type GPU struct {
	ClockMHz float64 `json:"clock_mhz"`
	// ThrottledShare is the share of every ten seconds, at their end, in which heat halves the clock.
	ThrottledShare   float64 `json:"throttled_share,omitempty"`
	ForeignProcesses int     `json:"foreign_processes,omitempty"`
}

func (g *GPU) validate(say func(ok bool, format string, args ...any)) {
	if g != nil {
		say(finite(g.ClockMHz, 1, 1e5), "gpu.clock_mhz must be in [1, 1e5]: %v", g.ClockMHz)
		say(finite(g.ThrottledShare, 0, 1), "gpu.throttled_share must be in [0, 1]: %v", g.ThrottledShare)
		say(g.ForeignProcesses >= 0, "gpu.foreign_processes must not be negative: %d", g.ForeignProcesses)
	}
}

// At is what it reports at a time, by the names of metrics.
func (g GPU) At(now time.Duration) map[string]float64 {
	clock, throttled := g.ClockMHz*1e6, 0.0
	if math.Mod(now.Seconds(), 10) >= 10*(1-g.ThrottledShare) {
		clock, throttled = clock/2, 1
	}
	return map[string]float64{"gpu_clock": clock, "gpu_throttled": throttled, "gpu_power_capped": 0, "foreign_processes": float64(g.ForeignProcesses)}
}
