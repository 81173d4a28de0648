package nights

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// alternating has mean 100 and, of an even number of nights n, the sample
// variance n/(n−1).
func alternating(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 101 - 2*float64(i%2)
	}
	return out
}

func TestWatch(t *testing.T) {
	near := cmpopts.EquateApprox(0, 0.005)
	// Ten nights: s = √(10/9) = 1.054, t(9, 1−0.00105) = 4.264:
	// 4.264·1.054·√(1 + 1/10) = 4.714.
	tests := []struct {
		name   string
		series []float64
		ignore float64
		want   night
	}{
		{"the first night", []float64{100}, 0, night{Mean: math.NaN(), Sigma: math.NaN(), Low: math.Inf(-1), High: math.Inf(1), Shift: math.NaN()}},
		{"within", append(alternating(10), 104), 0, night{10, 100, 1.054, 95.286, 104.714, 0, 4}},
		{"beyond", append(alternating(10), 105), 0, night{10, 100, 1.054, 95.286, 104.714, 1, 5}},
		{"beyond, below", append(alternating(10), 95), 0, night{10, 100, 1.054, 95.286, 104.714, 1, -5}},
		{"too small to be told", append(alternating(10), 105), 5.5, night{10, 100, 1.054, 95.286, 104.714, 0, 5}},
		{"too few", append(alternating(8), 150), 0, night{8, 100, 1.069, 94.622, 105.378, 0, 50}},
		// Each alone is within, together they are not: with ten nights known,
		// t(9, 1−0.0007) = 4.543, 4.543·1.054·√(1/2 + 1/10) = 3.709. The last
		// night alone is held against eleven: the mean of 1000 and 104, and
		// t(10, 1−0.00105)·1.567·√(1 + 1/11) = 6.731.
		{"two nights together", append(alternating(10), 104, 104), 0, night{11, 100.364, 1.567, 93.633, 107.094, 2, 4}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			nights := watch(tt.series, 0, tt.ignore)
			got := nights[len(nights)-1]
			if d := cmp.Diff(tt.want, got, near, cmpopts.EquateNaNs()); d != "" {
				t.Error(d)
			}
		})
	}
}

// A change is no reference for the nights after it, however many.
func TestWatchKeepsItsReference(t *testing.T) {
	series := alternating(20)
	for range 40 {
		series = append(series, 110)
	}
	nights := watch(series, 0, 0)
	for i := 20; i < len(nights); i++ {
		if nights[i].Alarm == 0 || nights[i].Reference != 20 {
			t.Fatalf("night %d: %+v", i, nights[i])
		}
	}
	// Nor does one that comes slowly: the reference stays the first nights.
	series = alternating(mostReference)
	for i := range 100 {
		series = append(series, 100+0.05*float64(i))
	}
	nights = watch(series, 0, 0)
	last := nights[len(nights)-1]
	if last.Reference != mostReference || last.Alarm == 0 {
		t.Errorf("a drift of 5 %% in 100 nights is not found: %+v", last)
	}
}

// A series that never moved is as sure as its digits, no more.
func TestWatchFloor(t *testing.T) {
	series := make([]float64, 30)
	for i := range series {
		series[i] = 1
	}
	series = append(series, 0.999)
	if n := watch(series, 0, 0)[30]; n.Alarm != 1 {
		t.Errorf("without a floor: %+v", n)
	}
	if n := watch(series, 0.002, 0)[30]; n.Alarm != 0 {
		t.Errorf("with a floor: %+v", n)
	}
}

// The characteristics: noise of one standard deviation, a reference of n
// nights, a shift for good. Two percent of noise make 3, 5 and 10 percent 1.5,
// 2.5 and 5 deviations.
func TestLongCharacteristics(t *testing.T) {
	const trials = 1000
	rng := rand.New(rand.NewPCG(1, 2))
	noise := func(n int, shift float64) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = rng.NormFloat64() + shift
		}
		return out
	}
	found := func(shift float64, within int) float64 {
		hits := 0
		for range trials {
			nights := watch(append(noise(mostReference, 0), noise(within, shift)...), 0, 0)
			for _, n := range nights[mostReference:] {
				if n.Alarm > 0 {
					hits++
					break
				}
			}
		}
		return float64(hits) / trials
	}
	for _, tt := range []struct {
		percent float64
		within  int
		least   float64
	}{{3, 3, 0.35}, {5, 2, 0.65}, {10, 1, 0.95}} {
		got := found(tt.percent/2, tt.within)
		t.Logf("%2.0f %% found within %d nights: %.1f %%", tt.percent, tt.within, 100*got)
		// Two standard errors of the simulation are left to it.
		if slack := 2 * math.Sqrt(tt.least*(1-tt.least)/trials); got < tt.least-slack {
			t.Errorf("a shift of %v %% is found in %.3f, want %v", tt.percent, got, tt.least)
		}
	}
	alarms, nights := 0, 0
	for range 400 {
		for _, n := range watch(noise(mostReference+100, 0), 0, 0)[leastReference:] {
			nights++
			if n.Alarm > 0 {
				alarms++
			}
		}
	}
	t.Logf("one false alarm in %.0f nights", float64(nights)/float64(alarms))
	if rate := float64(alarms) / float64(nights); rate > perNight*1.1 {
		t.Errorf("one false alarm in %.0f nights, want one in %.0f", 1/rate, 1/perNight)
	}
}

func TestLongDivisive(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	noise := func(n int, level float64) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = level + 0.02*rng.NormFloat64()
		}
		return out
	}
	constant := make([]float64, 40)
	tests := []struct {
		name   string
		series []float64
		want   []int
	}{
		{"nothing", nil, nil},
		{"constant", constant, nil},
		{"noise", noise(60, 0), nil},
		{"too few", noise(9, 0), nil},
		{"one step", append(noise(30, 0), noise(20, 0.1)...), []int{30}},
		{"there and back", append(append(noise(25, 0), noise(15, -0.2)...), noise(25, 0)...), []int{25, 40}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var at []int
			changes := divisive(tt.series)
			for _, c := range changes {
				at = append(at, c.Night)
			}
			if d := cmp.Diff(tt.want, at); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(changes, divisive(tt.series)); d != "" {
				t.Errorf("not the same again:\n%s", d)
			}
		})
	}
	c := divisive(append(noise(30, 1), noise(30, 1.1)...))[0]
	if got := fmt.Sprintf("%.2f %.2f", c.Before, c.After); got != "1.00 1.10" {
		t.Errorf("the sides of the step are %s", got)
	}
}

// Of series without a change about one in a hundred is split; each split is
// tested at that level once.
func TestLongDivisiveFalse(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	split := 0
	const trials = 200
	for range trials {
		series := make([]float64, 40)
		for i := range series {
			series[i] = rng.NormFloat64()
		}
		if len(divisive(series)) > 0 {
			split++
		}
	}
	if split > 8 { // P(more than 8 of 200 at 1 %) < 0.001
		t.Errorf("%d of %d series without a change are split", split, trials)
	}
}
