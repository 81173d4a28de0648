package nights

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tokgate/tokgate/internal/must"
)

// alternating returns n values with mean 100 and, for an even n, the sample variance n/(n−1).
func alternating(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 101 - 2*float64(i%2)
	}
	return out
}

func one(values ...float64) column { return column{values: values, worse: +1} }

func TestRobust(t *testing.T) {
	// The ten values are 99 and 101 in turn, with the variance 10/9. Neighbouring values deviate in
	// opposite directions, so the correlation is −9/10, or −1.16 after a correction for its bias.
	want := moments{N: 10, Mean: 100, Sigma: 1.0541, Correlation: -1.16}
	near := cmpopts.EquateApprox(0, 0.0001)
	must.Same(t, "", want, robust(alternating(10), 0, 0), near)
	want.Outliers = 1
	// The night with the value 150 is left out, because it is too far from the median, 101. Half of
	// all nights are at most 2 from it, so the robust standard deviation is 2/0.6745 = 2.97, and
	// the largest allowed distance is 2.97·4.5·(1 + 3/11) = 17.0.
	must.Same(t, "", want, robust(append(alternating(10), 150), 0, 0), near)
	// Six nights at one value and five at another form two groups. No night in them is an outlier.
	m := robust(alternating(11), 0, 0)
	must.Hold(t, m.N == 11, "%d of 11 are left", m.N)
}

func TestPredict(t *testing.T) {
	// inflation for 3 nights with a correlation of 0.5 between neighbours: 1 + 2·(2/3·0.5 +
	// 1/3·0.25) = 1.8333
	got := inflation(0.5, 3)
	must.Hold(t, math.Abs(got-1.8333) <= 0.0001, "inflation %v", got)
	// The mean of four nights is compared with 20 earlier nights, whose standard deviation is 2. If
	// nights are independent, the standard error is 2·√(1/4 + 1/20) = 1.0954. There are 0.8·20 − 1
	// = 15 degrees of freedom.
	p := moments{N: 20, Mean: 7, Sigma: 2}.predict(4, 0)
	must.Same(t, "", prediction{7, 2, 1.0954, 15}, p, cmpopts.EquateApprox(0, 0.0001))
	// The mean lies 3 standard errors from the center. For t with 15 degrees of freedom P(t ≥ 3) =
	// 0.0045.
	if got := p.upperTail(7+3*1.09545, 0, 1); math.Abs(got-0.00449) > 0.0001 {
		t.Errorf("P %v", got)
	}
	if got := p.lowerTail(7-3*1.09545, 0, 1); math.Abs(got-0.00449) > 0.0001 {
		t.Errorf("P %v", got)
	}
	// Ten nights with a correlation of 0.9 have only 0.8·10·(1 − 0.81)/(1 + 0.81) − 1 = −0.2
	// degrees of freedom, so there is no prediction.
	if p := (moments{N: 10, Mean: 7, Sigma: 2}).predict(1, 0.9); p.Freedom >= 1 || p.upperTail(100, 0, 1) != 1 {
		t.Errorf("%+v", p)
	}
}

// The first bad night is suspect, and the second raises the alarm. It lasts until at least three
// nights in a row are back to normal. Nights during an alarm do
// not join the reference.
func TestWatchLatches(t *testing.T) {
	series := append(alternating(20), 110, 110, 101, 110, 110)
	series = append(series, alternating(6)...)
	nights := watch([]column{one(series...)})[0]
	for i, n := range nights {
		red := i >= 21 && i < 27 // night 22 alone does not end the alarm; nights 25 to 27 do
		must.Hold(t, n.Changed == red && n.Suspect == (i == 20) && (!red || n.Worse && n.From == 20) && n.Back == (i == 27), "night %d: %+v", i, n)
	}
	// The reference has the 20 nights before the change, and nights 25 to 27. Nights 20 to 24 are
	// not in it, not even night 22, which was normal.
	n := nights[28]
	must.Hold(t, n.Reference == 20+3, "after it: %+v", n)
}

// The reference keeps the first nights of a series. No night after a change joins it, however many
// there are. So a slow drift is found too.
func TestWatchKeepsItsReference(t *testing.T) {
	series := alternating(mostReference)
	for i := range 100 {
		series = append(series, 100+0.05*float64(i))
	}
	nights := watch([]column{one(series...)})[0]
	n := nights[len(nights)-1]
	must.Hold(t, n.Reference <= mostReference && n.Changed, "a drift of 5 %% in 100 nights is not found: %+v", n)
}

// Later nights do not change the result of an earlier night.
func TestWatchForgetsNothing(t *testing.T) {
	series := append(alternating(15), 105, 100, 104, 104, 99, 101, 100, 100, 103, 101)
	gap := append([]float64{}, series...)
	gap[3], gap[17] = math.NaN(), math.NaN()
	whole := watch([]column{one(series...), one(gap...)})
	for i := range series {
		part := watch([]column{one(series[:i+1]...), one(gap[:i+1]...)})
		for k := range part {
			must.Same(t, fmt.Sprintf("series %d, night %d", k, i), whole[k][i], part[k][i], cmpopts.EquateNaNs())
		}
	}
}

// The more series a plan has, the stronger the evidence for an alarm must be.
func TestWatchManySeries(t *testing.T) {
	many := make([]column, 100)
	for i := range many {
		many[i] = one(append(alternating(20), 100, 100)...)
	}
	series := append(alternating(20), 105, 105)
	many[7] = one(series...)
	n := watch([]column{one(series...)})[0][21]
	must.Hold(t, n.Changed, "alone: %+v", n)
	// Each of the last two nights counts as 3 standard deviations, so their mean is 3/√(1/2 + 1/20) =
	// 4.05 standard errors above. With 15 degrees of freedom the p-value is 0.0005, or 0.0012 after
	// division by 0.45, the share of two-night windows. In a plan with a hundred series only
	// 0.007/100 is allowed, so there is no alarm.
	if n := watch(many)[7][21]; n.Changed {
		t.Errorf("among a hundred: %+v", n)
	}
}

// A change of all series together is found also soon after the first ten nights, although they then
// say the same of the noise: that it is correlated and skewed.
func TestWatchTogether(t *testing.T) {
	for _, from := range []int{10, 11, 14} {
		const plans = 20
		found := 0
		for plan := range plans {
			rng := rand.New(rand.NewPCG(7, uint64(plan)))
			shared, series := make([]float64, from+3), make([]column, 7)
			for i := range shared {
				shared[i] = rng.NormFloat64()
			}
			for k := range series {
				values := make([]float64, len(shared))
				for i := range values {
					values[i] = sigma*(0.9*shared[i]+math.Sqrt(1-0.81)*rng.NormFloat64()) + step(0.1, from)(i)
				}
				series[k] = column{values: values, worse: +1, floor: leastNoise}
			}
			if slices.ContainsFunc(watch(series), func(of []night) bool { return of[from+2].Changed && of[from+2].Worse }) {
				found++
			}
		}
		must.Hold(t, found >= plans*7/10, "+10 %% from night %d in seven series: red within three nights in %d of %d plans", from, found, plans)
	}
}

// The values of a series are rounded, so a constant series may jump by the last digit. A jump below
// the rounding floor must not raise an alarm.
func TestWatchFloor(t *testing.T) {
	series := make([]float64, 32)
	for i := range series {
		series[i] = 1
	}
	series[30], series[31] = 1.001, 1.001
	for floor, changed := range map[float64]bool{0.0001: true, 0.002: false} {
		n := watch([]column{{values: series, worse: 1, floor: floor}})[0][31]
		must.Hold(t, n.Changed == changed, "floor %v: %+v", floor, n)
	}
}
