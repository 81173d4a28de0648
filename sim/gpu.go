package sim

import (
	"math"
	"time"
)

// GPU holds the metrics of all GPUs of the server together. A test uses them to try conditions on
// GPUs and to fill reports. They do not change the server's speed.
type GPU struct {
	ClockMHz float64 `json:"clock_mhz,omitempty"` // 0: not reported
	// ThrottledShare is the share of time in which heat halves the clock of the GPUs. It is the
	// last part of every ten seconds.
	ThrottledShare   float64 `json:"throttled_share,omitempty"`
	ForeignProcesses int     `json:"foreign_processes,omitempty"`
	Power            *Power  `json:"power,omitempty"` // nil: not reported
}

// Power is the power of all GPUs in watts. Idle is for idle GPUs, Decode for steps that only
// decode, and Prefill for steps that prefill. The values must not decrease in this order.
type Power struct {
	Idle    float64 `json:"idle_w"`
	Decode  float64 `json:"decode_w"`
	Prefill float64 `json:"prefill_w"`
}

func (g *GPU) validate(say func(ok bool, format string, args ...any)) {
	if g == nil {
		return
	}
	say(finite(g.ClockMHz, 1, 1e5) || g.ClockMHz == 0 && g.Power != nil, "gpu.clock_mhz must be in [1, 1e5]: %v", g.ClockMHz)
	say(finite(g.ThrottledShare, 0, 1), "gpu.throttled_share must be in [0, 1]: %v", g.ThrottledShare)
	say(g.ForeignProcesses >= 0, "gpu.foreign_processes must not be negative: %d", g.ForeignProcesses)
	if p := g.Power; p != nil {
		say(finite(p.Idle, 0, p.Decode) && finite(p.Decode, 0, p.Prefill) && finite(p.Prefill, 0, 1e6),
			"gpu.power must have 0 ≤ idle_w ≤ decode_w ≤ prefill_w ≤ 1e6: %v, %v, %v", p.Idle, p.Decode, p.Prefill)
	}
}

// At returns the metrics at the time now, by name. The power is not among them; see Power.Meter.
func (g GPU) At(now time.Duration) map[string]float64 {
	told := map[string]float64{"gpu_throttled": 0, "gpu_power_capped": 0, "foreign_processes": float64(g.ForeignProcesses)}
	if g.ClockMHz == 0 {
		return told
	}
	told["gpu_clock"] = g.ClockMHz * 1e6
	if math.Mod(now.Seconds(), 10) >= 10*(1-g.ThrottledShare) {
		told["gpu_clock"] /= 2
		told["gpu_throttled"] = 1
	}
	return told
}
