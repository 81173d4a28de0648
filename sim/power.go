package sim

import (
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Meter returns a function that reads the power. In each call it writes the mean power since the
// last call into gauges, in watts, and the energy so far into counters, in joules.
func (p Power) Meter() func(now time.Duration, s State, gauges, counters map[string]float64) {
	var at time.Duration
	energy := -1.0
	return func(now time.Duration, s State, gauges, counters map[string]float64) {
		was := energy
		energy = p.Idle*now.Seconds() + (p.Decode-p.Idle)*(s.Busy-s.Prefilling).Seconds() + (p.Prefill-p.Idle)*s.Prefilling.Seconds()
		gauges["power"], counters[metric.Energy] = p.Idle, energy
		if was >= 0 && now > at {
			// A step counts in full when it starts, but may end after this reading. So limit the
			// mean to the maximum, the power of a prefilling GPU.
			gauges["power"] = min((energy-was)/(now-at).Seconds(), p.Prefill)
		}
		at = now
	}
}
