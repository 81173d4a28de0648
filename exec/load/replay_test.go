package load_test

import (
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
)

// Of the six requests of a replay, two come before the window, three are measured, and one comes
// after it. Index finds each request from its turn, and returns -1 for a turn that no phase has.
func TestReplayIndex(t *testing.T) {
	r := load.Replay{At: make([]time.Duration, 6), Warm: 2, Due: 3}
	for i := range r.At {
		if turn := r.Turn(i); r.Index(turn.Phase, turn.Order) != i {
			t.Errorf("request %d is %+v, whose place is %d", i, turn, r.Index(turn.Phase, turn.Order))
		}
	}
	for phase, n := range map[metric.Phase]int{metric.Warmup: 2, metric.Measured: 3, metric.Filler: 1} {
		if got := r.Index(phase, n); got != -1 {
			t.Errorf("%s request %d, of %d, is at %d", phase, n, n, got)
		}
	}
}
