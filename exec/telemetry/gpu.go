package telemetry

import (
	"errors"
	"fmt"
	"math"

	"github.com/tokgate/tokgate/metric"
)

// card is what one GPU told, in base units; NaN is not told.
type card struct {
	power, busy, memory, temperature, clock float64
	energy                                  float64 // joules since some time
}

func unknownCard() card {
	n := math.NaN()
	return card{n, n, n, n, n, n}
}

// together is what the GPUs of one server tell: power, memory and energy are
// summed, the busy share is a mean, the temperature that of the hottest and
// the clock that of the slowest. What one of them does not tell is not told.
func together(tool string, cards []card) (*Reading, error) {
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
	} {
		all := of.take(cards[0])
		for _, c := range cards[1:] {
			all = of.join(all, of.take(c)) // NaN stays
		}
		switch {
		case !(all >= 0 && all <= biggest):
			r.None[of.name] = fmt.Sprintf("%s does not tell it of every GPU", tool)
		case of.name == metric.Energy:
			r.Counters[of.name] = all
		default:
			r.Gauges[of.name] = all
		}
	}
	if len(r.Gauges)+len(r.Counters) == 0 {
		return nil, errors.New(tool + " told nothing that is known")
	}
	return r, nil
}
