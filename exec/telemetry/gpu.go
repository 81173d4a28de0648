package telemetry

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tokgate/tokgate/metric"
)

type card struct {
	power, busy, memory, temperature, clock float64
	energy                                  float64 // joules since some time
	throttled, capped                       float64 // 1 if clocks are reduced by heat or hardware, or by a power limit; otherwise 0
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

// dcgmNames maps the series of the DCGM exporter to fields of a card, in base units. The names are
// those in the exporter's default-counters.csv. The reasons for reduced clocks have two names, a
// newer and an older one. A page has them only if the exporter's list of counters includes one of
// the names.
var dcgmNames = map[string]func(c *card, v float64){
	"DCGM_FI_DEV_POWER_USAGE":              func(c *card, v float64) { c.power = v },
	"DCGM_FI_DEV_GPU_UTIL":                 func(c *card, v float64) { c.busy = v / 100 },
	"DCGM_FI_DEV_FB_USED":                  func(c *card, v float64) { c.memory = v * (1 << 20) },
	"DCGM_FI_DEV_GPU_TEMP":                 func(c *card, v float64) { c.temperature = v },
	"DCGM_FI_DEV_SM_CLOCK":                 func(c *card, v float64) { c.clock = v * 1e6 },
	"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": func(c *card, v float64) { c.energy = v * 1e-3 },
	"DCGM_FI_DEV_XID_ERRORS":               func(c *card, v float64) { c.xid = v },
	"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL":        func(c *card, v float64) { c.ecc = v },
	"DCGM_FI_DEV_CLOCKS_EVENT_REASONS":     func(c *card, v float64) { c.held(uint64(max(v, 0))) },
	"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS":   func(c *card, v float64) { c.held(uint64(max(v, 0))) },
}

// ParseDCGM reads the page of a DCGM exporter. The GPUs are given by index or UUID; nil means all.
// Slices of a GPU (MIG) are ignored, because the values of the whole GPU include them.
func ParseDCGM(page []byte, gpus []string) (*Reading, error) {
	if len(page) == 0 || page[len(page)-1] != '\n' {
		return nil, errors.New("the page was cut off")
	}
	cards := map[string]*card{}
	var told labels
	for name, rest := range series(page, func(name []byte) bool { return dcgmNames[string(name)] != nil }) {
		text, rest, err := cutLabels(rest)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if told, err = told[:0].read(text); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		gpu, uuid := told.value("gpu"), told.value("UUID")
		if told.value("GPU_I_ID") != "" || len(gpus) > 0 && !slices.Contains(gpus, gpu) && !slices.Contains(gpus, uuid) {
			continue
		}
		v, err := number(rest)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		c := cards[gpu+" "+uuid]
		if c == nil {
			if len(cards) == maxGPUs {
				continue
			}
			u := unknownCard()
			c = &u
			cards[gpu+" "+uuid] = c
		}
		if math.Abs(v) < biggest {
			dcgmNames[name](c, v)
		}
	}
	if len(gpus) > 0 && len(cards) < len(gpus) {
		return nil, fmt.Errorf("the DCGM exporter reports %d of the %d GPUs", len(cards), len(gpus))
	}
	list := make([]card, 0, len(cards))
	for _, c := range cards {
		list = append(list, *c)
	}
	return combine("the DCGM exporter", list)
}
