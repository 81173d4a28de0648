package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tokgate/tokgate/internal/must"
)

var near = cmpopts.EquateApprox(0, 1e-9)

func TestIsotonic(t *testing.T) {
	for _, tt := range []struct{ values, weights, want []float64 }{
		{nil, nil, []float64{}},
		{[]float64{1, 2, 3}, []float64{1, 1, 1}, []float64{1, 2, 3}},
		// If a value is below the previous value, both become their weighted mean. Here it is
		// (3·1 + 1·3)/4 = 1.5.
		{[]float64{0, 3, 1, 5}, []float64{1, 1, 3, 1}, []float64{0, 1.5, 1.5, 5}},
		// The fit pools 3 and 2 to 2.5, and then all three values to 2.
		{[]float64{3, 2, 1}, []float64{1, 1, 1}, []float64{2, 2, 2}},
	} {
		must.Same(t, fmt.Sprintf("isotonic(%v, %v) (-want +got)", tt.values, tt.weights), tt.want, isotonic(tt.values, tt.weights), near)
	}
}

func TestIsotonicInvariants(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		n := 1 + rng.IntN(20)
		values, weights := make([]float64, n), make([]float64, n)
		var sum, total float64
		for i := range n {
			values[i], weights[i] = rng.NormFloat64(), rng.Float64()+.1
			sum += values[i] * weights[i]
		}
		fit := isotonic(values, weights)
		for i, y := range fit {
			total += y * weights[i]
		}
		must.Need(t, slices.IsSorted(fit), "not ascending: %v", fit)
		must.Need(t, math.Abs(sum-total) <= 1e-9, "the weighted mean moved by %v", total-sum)
	}
}

func visit(n, requests int, margins ...Margin) Visit {
	return Visit{Probe: Probe{N: n}, Result: Result{N: n, Requests: requests, Margins: margins}}
}

func at(name string, log, half float64) Margin {
	return Margin{Threshold: name, Log: log, Low: log - half, High: log + half}
}

func TestCross(t *testing.T) {
	again := visit(16, 800, at("ttft", -.1, .1))
	fresh := visit(16, 800, at("ttft", .1, .1))
	fresh.Probe.Set = 1
	for _, tt := range []struct {
		name       string
		visits     []Visit
		pass, fail int
		want       Crossing
	}{
		{"nothing", nil, 0, 0, Crossing{}},
		{
			// The margin is −0.2 at level 16 and +0.2 at level 64, so it is zero halfway on a
			// logarithmic scale, at 32. The upper ends of the intervals, −0.1 and 0.3, are zero a
			// quarter of the way, at 16·4^¼. The lower ends are zero three quarters of the way, at
			// 16·4^¾.
			"halfway", []Visit{visit(16, 400, at("ttft", -.2, .1)), visit(64, 400, at("ttft", .2, .1))}, 16, 64,
			Crossing{N: 32, Low: 16 * math.Sqrt2, High: 32 * math.Sqrt2, Threshold: "ttft", OK: true},
		},
		{
			"without intervals the bracket is all there is",
			[]Visit{visit(16, 400, at("ttft", -.2, 0)), visit(64, 400, at("ttft", .2, 0))}, 16, 64,
			Crossing{N: 32, Low: 16, High: 64, Threshold: "ttft", OK: true},
		},
		{
			// On a logarithmic scale from level 16 to 64, speed reaches its limit a quarter of the
			// way, and ttft reaches its limit halfway.
			"the first of two thresholds", []Visit{
				visit(16, 400, at("ttft", -.2, 0), at("speed", -.1, 0)),
				visit(64, 400, at("ttft", .2, 0), at("speed", .3, 0)),
			}, 16, 64,
			Crossing{N: 16 * math.Sqrt2, Low: 16, High: 64, Threshold: "speed", OK: true},
		},
		{
			"the certified bracket cuts off what it excludes",
			[]Visit{visit(16, 400, at("ttft", -.2, .1)), visit(64, 400, at("ttft", .2, .1))}, 40, 42,
			Crossing{N: 40, Low: 40, High: 42, Threshold: "ttft", OK: true},
		},
		{"over everywhere", []Visit{visit(4, 400, at("ttft", .5, .1))}, 0, 4, Crossing{High: 4, Threshold: "ttft"}},
		{"nothing over", []Visit{visit(4, 400, at("ttft", -.5, .1))}, 4, 0, Crossing{Low: 4}},
		{
			// At level 16, extended samples replace the first samples, and fresh samples are added.
			// The mean margin there is (−0.1 + 0.1)/2 = 0, so the limit is at 16. The lower ends of
			// the intervals, −0.1 at level 16 and 0.1 at level 64, are zero at 32.
			"samples pool by level", []Visit{visit(16, 400, at("ttft", -9, .1)), again, fresh, visit(64, 800, at("ttft", .2, .1))}, 0, 64,
			Crossing{N: 16, Low: 0, High: 32, Threshold: "ttft", OK: true},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			must.Same(t, "(-want +got)", tt.want, cross(tt.visits, tt.pass, tt.fail), near)
		})
	}
}
