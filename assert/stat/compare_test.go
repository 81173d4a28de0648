package stat

import (
	"math"
	"slices"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

func TestWelch(t *testing.T) {
	// The means are 3 and 5, and the variances 2.5 and 4. So Welch's test has se² = 2.5/5 + 4/3 =
	// 1.8333 and df = 1.8333²/(0.5²/4 + 1.3333²/2) = 3.533.
	diff, low, high, ok := Welch([]float64{1, 2, 3, 4, 5}, []float64{3, 5, 7}, 0.05)
	se, df := math.Sqrt(0.5+4.0/3), 1.8333333*1.8333333/(0.25/4+16.0/9/2)
	half := StudentQuantile(0.95, df) * se
	must.Hold(t, ok && diff == 2 && math.Abs(low-(2-half)) <= 1e-6 && math.Abs(high-(2+half)) <= 1e-6, "%v %v %v, want 2 ± %v", diff, low, high, half)
	if _, low, high, ok := Welch([]float64{1, 1}, []float64{2, 2}, 0.05); !ok || low != 1 || high != 1 {
		t.Errorf("without variance: %v %v", low, high)
	}
	for _, bad := range [][2][]float64{{{1}, {1, 2}}, {nil, nil}, {{1, math.Inf(1)}, {1, 2}}, {{1, math.NaN()}, {1, 2}}} {
		if _, _, _, ok := Welch(bad[0], bad[1], 0.05); ok {
			t.Errorf("%v is no interval", bad)
		}
	}
}

// The expected intervals are printed in Newcombe (1998), table II, method 10. They are two-sided
// with 95 % confidence; the first is for 56/70 minus 48/80.
func TestShareDifference(t *testing.T) {
	low, high, ok := ShareDifference(48, 80, 56, 70, 0.025)
	must.Hold(t, ok && math.Abs(low-0.0524) <= 5e-5 && math.Abs(high-0.3339) <= 5e-5, "%v to %v", low, high)
	// Newcombe's interval of 10/10 minus 20/20 is −0.2775 to 0.1611.
	low, high, _ = ShareDifference(20, 20, 10, 10, 0.025)
	must.Hold(t, math.Abs(low+0.2775) <= 5e-5 && math.Abs(high-0.1611) <= 5e-5, "%v to %v", low, high)
	if _, _, ok := ShareDifference(0, 0, 1, 2, 0.05); ok {
		t.Error("nothing was observed")
	}
}

func TestHolm(t *testing.T) {
	for _, row := range []struct {
		p    []float64
		want []bool
	}{
		// Holm's limits for the three ascending p-values are 0.05/3, 0.05/2 and 0.05. Only 0.01 and
		// 0.02 are within theirs.
		{[]float64{0.06, 0.01, 0.02}, []bool{false, true, true}},
		// The smallest p-value, 0.02, is above its limit 0.05/3, so no p-value is significant.
		{[]float64{0.02, 0.02, 0.03}, []bool{false, false, false}},
		{[]float64{0.04}, []bool{true}},
		{[]float64{math.NaN(), 0.001}, []bool{false, true}},
		{nil, []bool{}},
	} {
		got := Holm(row.p, 0.05)
		must.Hold(t, slices.Equal(got, row.want), "%v: %v, want %v", row.p, got, row.want)
	}
}
