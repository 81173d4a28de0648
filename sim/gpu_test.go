package sim

import (
	"errors"
	"testing"
	"time"
)

// Of every ten seconds the last three are at half the clock.
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
	for _, bad := range []GPU{{}, {ClockMHz: 1980, ThrottledShare: 1.1}, {ClockMHz: 1980, ForeignProcesses: -1}} {
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
