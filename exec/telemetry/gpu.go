package telemetry

import (
	"errors"
	"fmt"
	"math"

	"github.com/tokgate/tokgate/metric"
)

type card struct {
	power, busy, memory, temperature, clock float64
	energy                                  float64 // joules since some time
	throttled, capped                       float64 // 1 if clocks are reduced, otherwise 0: throttled by heat or hardware, capped by a power limit
	ecc                                     float64 // uncorrectable errors since the driver was loaded
	xid                                     float64 // number of the last Xid error; 0: none
}

func unknownCard() card {
	n := math.NaN()
	return card{n, n, n, n, n, n, n, n, n, n}
}

// These bits say why NVML reports reduced clocks (nvml.h, nvmlClocksEventReason…): a software power
// cap, or the hardware or its heat.
const (
	reasonPowerCap = 0x4
	reasonHardware = 0x8 | 0x40 | 0x80 // bits of slowdown, thermal slowdown and power brake
	reasonThermal  = 0x20              // software thermal slowdown
)

// held sets throttled and capped. reasons is NVML's bit mask of the reasons why clocks are reduced.
func (c *card) held(reasons uint64) {
	c.throttled, c.capped = 0, 0
	if reasons&(reasonHardware|reasonThermal) != 0 {
		c.throttled = 1
	}
	if reasons&reasonPowerCap != 0 {
		c.capped = 1
	}
}

// combine combines the GPUs of one server. Power, memory and energy are summed, and the busy share
// is averaged. The temperature is the highest and the clock the lowest. One throttled GPU makes the
// server throttled. If any GPU does not report a value, the combined value is missing.
func combine(tool string, cards []card) (*Reading, error) {
	if len(cards) == 0 {
		return nil, errors.New(tool + " told of no GPU")
	}
	r := &Reading{Gauges: map[string]float64{}, Counters: map[string]float64{}, None: map[string]string{}}
	sum := func(a, b float64) float64 { return a + b }
	for _, of := range []struct {
		name string
		take func(card) float64
		join func(a, b float64) float64
	}{
		{"power", func(c card) float64 { return c.power }, sum},
		{"gpu_utilization", func(c card) float64 { return c.busy / float64(len(cards)) }, sum},
		{"gpu_memory", func(c card) float64 { return c.memory }, sum},
		{"gpu_temperature", func(c card) float64 { return c.temperature }, math.Max},
		{"gpu_clock", func(c card) float64 { return c.clock }, math.Min},
		{metric.Energy, func(c card) float64 { return c.energy }, sum},
		{"gpu_throttled", func(c card) float64 { return c.throttled }, math.Max},
		{"gpu_power_capped", func(c card) float64 { return c.capped }, math.Max},
		{metric.ECCErrors, func(c card) float64 { return c.ecc }, sum},
		{metric.LastXID, func(c card) float64 { return c.xid }, math.Max},
	} {
		all := of.take(cards[0])
		for _, c := range cards[1:] {
			all = of.join(all, of.take(c)) // NaN stays
		}
		switch {
		case !(all >= 0 && all <= biggest):
			r.None[of.name] = fmt.Sprintf("%s does not report it for every GPU", tool)
		case of.name == metric.Energy, of.name == metric.ECCErrors:
			r.Counters[of.name] = all
		default:
			r.Gauges[of.name] = all
		}
	}
	if len(r.Gauges)+len(r.Counters) == 0 {
		return nil, errors.New(tool + " reported nothing known")
	}
	return r, nil
}
