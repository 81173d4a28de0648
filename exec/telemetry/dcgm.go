package telemetry

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

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
	for name, rest := range series(page) {
		set, ok := dcgmNames[string(name)]
		if !ok {
			continue
		}
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
		v, err := number(string(rest))
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
			set(c, v)
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
