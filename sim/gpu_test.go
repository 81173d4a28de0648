package sim

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// In the last three of every ten seconds, heat halves the clock of the GPU.
func TestGPUAt(t *testing.T) {
	g := GPU{ClockMHz: 1980, ThrottledShare: 0.3, ForeignProcesses: 2}
	for at, want := range map[time.Duration][2]float64{0: {1.98e9, 0}, 6900 * time.Millisecond: {1.98e9, 0}, 7 * time.Second: {9.9e8, 1}, 19 * time.Second: {9.9e8, 1}, 20 * time.Second: {1.98e9, 0}} {
		got := g.At(at)
		if got["gpu_clock"] != want[0] || got["gpu_throttled"] != want[1] || got["foreign_processes"] != 2 {
			t.Errorf("at %v: %v, want %v", at, got, want)
		}
	}
	if got := (GPU{ClockMHz: 1980}).At(9999 * time.Millisecond); got["gpu_throttled"] != 0 {
		t.Errorf("a healthy one: %v", got)
	}
	if got := (GPU{Power: &Power{60, 300, 500}}).At(0); len(got) != 3 {
		t.Errorf("of one that reports no clock: %v", got)
	}
	for _, bad := range []GPU{{}, {Power: &Power{60, 50, 500}}, {Power: &Power{60, 300, math.NaN()}}, {ClockMHz: 1980, ThrottledShare: 1.1}, {ClockMHz: 1980, ForeignProcesses: -1}} {
		var err error
		bad.validate(func(ok bool, _ string, _ ...any) {
			if !ok {
				err = errors.New("refused")
			}
		})
		if err == nil {
			t.Errorf("%+v is valid", bad)
		}
	}
}

// The meter reports the mean power between two readings, ten seconds apart here. Four seconds idle
// at 60 W, five of decoding at 300 W and one of prefill at 500 W are 2240 J, or 224 W.
func TestPowerMeter(t *testing.T) {
	read := Power{60, 300, 500}.Meter()
	gauges, counters := map[string]float64{}, map[string]float64{}
	read(20*time.Second, State{Busy: time.Second}, gauges, counters)
	before := counters[metric.Energy]
	if gauges["power"] != 60 {
		t.Errorf("the first reading tells %v W", gauges["power"])
	}
	read(30*time.Second, State{Busy: 7 * time.Second, Prefilling: time.Second}, gauges, counters)
	if energy := counters[metric.Energy] - before; math.Abs(energy-2240) > 1e-9 || math.Abs(gauges["power"]-224) > 1e-9 {
		t.Errorf("%v J and %v W, want 2240 and 224", energy, gauges["power"])
	}
	// A step of five seconds starts just before this reading, and counts at once. But the reported
	// power must not exceed its maximum.
	read(31*time.Second, State{Busy: 12 * time.Second, Prefilling: 6 * time.Second}, gauges, counters)
	if gauges["power"] != 500 {
		t.Errorf("%v W, want 500", gauges["power"])
	}
}
