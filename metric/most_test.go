package metric

import (
	"math"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// A part of a whole is at most 1. Growth and efficiency are ratios that may be larger, and all other
// metrics have no largest value.
func TestMost(t *testing.T) {
	for name, want := range map[string]float64{"cache_hit_rate": 1, "success": 1, "kv_usage": 1, "accept_rate": 1,
		"backlog_growth": math.Inf(1), "scaling_efficiency": math.Inf(1), "ttft": math.Inf(1), "throughput": math.Inf(1)} {
		must.Same(t, name, want, MustLookup(name).Most())
	}
}
