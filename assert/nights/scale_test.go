package nights

import (
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// The metric backlog_growth is a share that is negative if the backlog shrinks. All other shares
// are at least 0.
func TestScaleOfGrowth(t *testing.T) {
	for name, want := range map[string]bool{"backlog_growth": true, "success": false} {
		s := scaleOf(metric.MustLookup(name))
		got := s.takes(-0.002)
		must.Hold(t, got == want && (!want || s.within(-0.002) == -0.002), "%s: takes -0.002: %v, want %v", name, got, want)
	}
}
