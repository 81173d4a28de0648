package sim

import (
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Meter returns a function for the readings of the power. Each call writes the mean power since the
// last call, in watts, into gauges. It also writes the energy used so far, in joules, into
// counters.
func (p Power) Meter() func(now time.Duration, s State, gauges, counters map[string]float64) {
	var at time.Duration
	energy := -1.0
	return func(now time.Duration, s State, gauges, counters map[string]float64) {
		was := energy
		energy = p.Idle*now.Seconds() + (p.Decode-p.Idle)*(s.Busy-s.Prefilling).Seconds() + (p.Prefill-p.Idle)*s.Prefilling.Seconds()
		gauges["power"], counters[metric.Energy] = p.Idle, energy
		if was >= 0 && now > at {
			// A step counts in full when it starts, although it may end after the reading. So the
			// power is limited to that of a prefilling GPU.
			gauges["power"] = min((energy-was)/(now-at).Seconds(), p.Prefill)
		}
		at = now
	}
}
