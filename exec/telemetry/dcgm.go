package telemetry

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// dcgmNames are the exporter's series, in its default-counters.csv, and how its
// units become ours.
var dcgmNames = map[string]struct {
	unit float64
	of   func(*card) *float64
}{
	"DCGM_FI_DEV_POWER_USAGE":              {1, func(c *card) *float64 { return &c.power }},
	"DCGM_FI_DEV_GPU_UTIL":                 {0.01, func(c *card) *float64 { return &c.busy }},
	"DCGM_FI_DEV_FB_USED":                  {1 << 20, func(c *card) *float64 { return &c.memory }},
	"DCGM_FI_DEV_GPU_TEMP":                 {1, func(c *card) *float64 { return &c.temperature }},
	"DCGM_FI_DEV_SM_CLOCK":                 {1e6, func(c *card) *float64 { return &c.clock }},
	"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": {1e-3, func(c *card) *float64 { return &c.energy }},
}

// ParseDCGM reads the page of a DCGM exporter for the GPUs with these indexes
// or UUIDs; nil: all of the page. Slices of a GPU are left out: what they tell
// is in the whole.
func ParseDCGM(page []byte, gpus []string) (*Reading, error) {
	if len(page) == 0 || page[len(page)-1] != '\n' {
		return nil, errors.New("the page was cut off")
	}
	cards := map[string]*card{}
	for name, rest := range series(page) {
		what, ok := dcgmNames[string(name)]
		if !ok {
			continue
		}
		labels, rest, err := cutLabels(rest)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		gpu, _, err1 := label(labels, "gpu")
		uuid, _, err2 := label(labels, "UUID")
		slice, sliced, err3 := label(labels, "GPU_I_ID")
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if sliced && slice != "" || len(gpus) > 0 && !slices.Contains(gpus, gpu) && !slices.Contains(gpus, uuid) {
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
		if !math.IsInf(v, 0) {
			*what.of(c) = v * what.unit
		}
	}
	if len(gpus) > 0 && len(cards) < len(gpus) {
		return nil, fmt.Errorf("the DCGM exporter tells of %d of the %d GPUs", len(cards), len(gpus))
	}
	list := make([]card, 0, len(cards))
	for _, c := range cards {
		list = append(list, *c)
	}
	return together("the DCGM exporter", list)
}
