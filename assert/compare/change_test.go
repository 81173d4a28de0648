package compare

import (
	"slices"
	"testing"

	"github.com/tokgate/tokgate/metric"
)

// Rounds in which every request succeeded have a share of 1, not of almost 1.
func TestCenterOfEqualRounds(t *testing.T) {
	for n := 1; n <= 50; n++ {
		if got := center(slices.Repeat([]metric.Value{metric.Some(1)}, n), true); got != metric.Some(1) {
			t.Errorf("%d rounds: %v, want 1", n, got.V)
		}
	}
}
