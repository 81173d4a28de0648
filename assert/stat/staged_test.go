package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// The errors of the looks of a comparison, by independent simulation: looks after 3, 4 … starts a
// side, for the smallest of m p-values.
func TestBoundary(t *testing.T) {
	for _, row := range []struct {
		first, last, changes int
		want                 float64
	}{
		{3, 12, 1, 0.0120}, {3, 12, 2, 0.0054}, {3, 12, 3, 0.0033}, {3, 12, 5, 0.0019},
		{3, 8, 1, 0.0163}, {3, 8, 2, 0.0073}, {3, 8, 3, 0.0046}, {3, 8, 5, 0.0027},
		{3, 16, 1, 0.0105}, {3, 16, 3, 0.0031},
	} {
		var looks []int
		for n := row.first; n <= row.last; n++ {
			looks = append(looks, n)
		}
		got := Groups.Boundary(looks, 0.05/float64(row.changes))
		// Both are counts of about 5000/m of 100,000 draws, so each has a standard error of √(m/5000).
		if off := math.Abs(got/row.want - 1); off > 4*math.Sqrt(float64(row.changes)/5000)+0.00005/row.want {
			t.Errorf("looks %d to %d, %d changes: %.4f, want %.4f", row.first, row.last, row.changes, got, row.want)
		}
	}
	for _, looks := range [][]int{nil, {1, 2}, {3, 3}, {4, 3}} {
		got := Groups.Boundary(looks, 0.05)
		must.Hold(t, got == 0, "%v: %v, want 0", looks, got)
	}
	must.Same(t, "one look", 0.05, Groups.Boundary([]int{8}, 0.05))
}

// With many changes the draws are too few. Then the looks divide the error evenly, which is safe.
func TestBoundaryOfManyChanges(t *testing.T) {
	const alpha = 0.05 / 4000
	got := Groups.Boundary([]int{3, 4, 5, 6, 7, 8}, alpha)
	must.Hold(t, got >= alpha/6 && got <= alpha, "%v, want between %v and %v", got, alpha/6, alpha)
}

// Values 1 2 3 on one side and 3 4 8 on the other, at the times 0 3 4 and 1 2 5 of the order A B B A
// A B. Means 2 and 5, mean times 7/3 and 8/3. About the means: squares of values 2 and 14, of times
// 26/3 and 26/3, products 4 and 11. So slope = 15 / (52/3) = 45/52, the difference is 3 − 45/52 · 1/3
// = 141/52, and the squares left are 16 − 15²/(52/3) = 157/52 with 3 degrees of freedom.
func TestDrifting(t *testing.T) {
	a := Timed{[]float64{1, 2, 3}, []float64{0, 3, 4}}
	b := Timed{[]float64{3, 4, 8}, []float64{1, 2, 5}}
	d, ok := Groups.Drifting(a, b)
	spread := math.Sqrt(157.0 / 52 / 3)
	se := spread * math.Sqrt(2.0/3+1.0/9/(52.0/3))
	if !ok || math.Abs(d.Diff-141.0/52) > 1e-12 || math.Abs(d.Spread-spread) > 1e-12 || math.Abs(d.SE-se) > 1e-12 || d.DF != 3 {
		t.Errorf("%+v %v, want %v ± %v", d, ok, 141.0/52, se)
	}
	// With two values a side there is no slope: means 1.5 and 3.5, squares left 0.5 + 0.5.
	d, ok = Groups.Drifting(Timed{a.Values[:2], a.At[:2]}, Timed{b.Values[:2], b.At[:2]})
	must.Hold(t, ok && d.Diff == 2 && math.Abs(d.SE-math.Sqrt(0.5)) <= 1e-12 && d.DF == 2, "%+v %v, want 2 ± √½", d, ok)
	if _, ok := Groups.Drifting(Timed{[]float64{1}, []float64{0}}, b); ok {
		t.Error("one value on a side has no error")
	}
	if _, ok := Groups.Drifting(Timed{[]float64{1, math.Inf(1), 2}, []float64{0, 3, 4}}, b); ok {
		t.Error("an infinite value has no mean")
	}
	low, high := d.Bounds(d.Above(1.5))
	must.Hold(t, math.Abs(low-1.5) <= 1e-9 && math.Abs(high-2.5) <= 1e-9, "at the p-value of 1.5 the bounds are %v and %v, want 1.5 and 2.5", low, high)
}

// The same values in pairs: the differences 2 2 5 at the distances 1 -1 1 in time. The means are 3 and
// 1/3; about them, squares of differences 6, of distances 8/3, products 2. So slope = 3/4, the change
// is 3 − 3/4 · 1/3 = 11/4, and the squares left are 6 − 3/4 · 2 = 9/2 with 1 degree of freedom.
func TestDriftingInPairs(t *testing.T) {
	a := Timed{[]float64{1, 2, 3}, []float64{0, 3, 4}}
	b := Timed{[]float64{3, 4, 8}, []float64{1, 2, 5}}
	d, ok := Pairs.Drifting(a, b)
	se := math.Sqrt(9.0 / 2 * (1.0/3 + 1.0/9/(8.0/3)))
	if !ok || math.Abs(d.Diff-11.0/4) > 1e-12 || math.Abs(d.Spread-1.5) > 1e-12 || math.Abs(d.SE-se) > 1e-12 || d.DF != 1 {
		t.Errorf("%+v %v, want %v ± %v", d, ok, 11.0/4, se)
	}
	// Side by side both legs of a pair have the same time, so there is no slope.
	d, ok = Pairs.Drifting(Timed{a.Values, []float64{0, 1, 2}}, Timed{b.Values, []float64{0, 1, 2}})
	must.Hold(t, ok && d.Diff == 3 && math.Abs(d.SE-1) <= 1e-12 && d.DF == 2, "%+v %v, want 3 ± 1", d, ok)
	if _, ok := Pairs.Drifting(Timed{a.Values[:2], a.At[:2]}, b); ok {
		t.Error("two values and three are no pairs")
	}
}

// What only the two values of a pair share cancels, and so does a drift.
func TestPairsShare(t *testing.T) {
	a := Timed{[]float64{10, 33, 24}, []float64{0, 3, 4}}
	b := Timed{[]float64{10.5, 32.5, 24.5}, []float64{1, 2, 5}} // the drift is 0.5 for each leg
	d, ok := Pairs.Drifting(a, b)
	must.Hold(t, ok && math.Abs(d.Diff) <= 1e-9 && d.SE <= 1e-7, "%+v %v", d, ok)
}

// The looks together err as often as they may, by comparisons drawn and judged one by one, with other
// draws than the boundary's: beside a content that pairs share and a drift, and also for the pairs of
// servers side by side, which have no slope. 20,000 draws at 5 % have a standard error of 0.15 points.
func TestBoundaryOfPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	const draws = 20_000
	for _, row := range []struct {
		first, last int
		beside      bool
	}{{3, 12, false}, {3, 8, false}, {2, 6, true}} {
		var looks []int
		for n := row.first; n <= row.last; n++ {
			looks = append(looks, n)
		}
		level, crossed := Pairs.Boundary(looks, 0.05), 0
		for range draws {
			sides, over := [2]Timed{}, false
			for round := range row.last {
				content := 3 * r.NormFloat64()
				for side := range 2 {
					at := float64(2*round + (side+round)%2)
					if row.beside {
						at = float64(round)
					}
					sides[side].Values = append(sides[side].Values, content+0.2*at+r.NormFloat64())
					sides[side].At = append(sides[side].At, at)
				}
				if round+1 >= row.first && !over {
					d, ok := Pairs.Drifting(sides[0], sides[1])
					over = ok && d.Above(0) <= level
				}
			}
			if over {
				crossed++
			}
		}
		share := float64(crossed) / draws
		t.Logf("looks %d to %d, beside %v: level %.4f, errs in %.4f", row.first, row.last, row.beside, level, share)
		if share > 0.056 || share < 0.035 {
			t.Errorf("looks %d to %d, beside %v: level %.4f errs in %.4f of comparisons, want 0.05", row.first, row.last, row.beside, level, share)
		}
	}
}

// A drift that both sides share does not look like a difference, whatever the order of the starts.
func TestDriftingIgnoresDrift(t *testing.T) {
	var a, b Timed
	for round := range 6 {
		for turn := range 2 {
			at := float64(2*round + turn)
			side := &a
			if (turn+round)%2 == 1 {
				side = &b
			}
			side.Values, side.At = append(side.Values, 7+0.3*at), append(side.At, at)
		}
	}
	d, ok := Groups.Drifting(a, b)
	must.Hold(t, ok && math.Abs(d.Diff) <= 1e-9 && d.SE <= 1e-9, "%+v %v", d, ok)
}

// Equal values have no spread, so the difference is exact.
func TestDriftingOfEqualValues(t *testing.T) {
	d, ok := Groups.Drifting(Timed{[]float64{0.1, 0.1, 0.1}, []float64{0, 3, 4}}, Timed{[]float64{0.3, 0.3, 0.3}, []float64{1, 2, 5}})
	must.Hold(t, ok && d.SE == 0 && math.Abs(d.Diff-0.2) <= 1e-12 && d.Above(0.1) == 0 && d.Above(0.3) == 1, "%+v %v", d, ok)
}

// StartsNeeded is the number at which the bound of the same spread first excludes the limit.
func TestStartsNeeded(t *testing.T) {
	d := Drift{Diff: 0.04, Spread: 0.02}
	n, ok := d.StartsNeeded(0.05, 0.012)
	half := func(n int) float64 {
		return StudentQuantile(1-0.012, float64(2*n-3)) * 0.02 * math.Sqrt(2/float64(n))
	}
	if !ok || half(n) >= 0.01 || half(n-1) < 0.01 {
		t.Errorf("%d %v: %v, one fewer %v", n, ok, half(n), half(n-1))
	}
	if _, ok := d.StartsNeeded(0.04, 0.012); ok {
		t.Error("no number tells a difference from itself")
	}
}

func BenchmarkBoundary(b *testing.B) {
	looks := []int{3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	for b.Loop() {
		looksDrawn.Clear()
		boundaries.Clear()
		Groups.Boundary(looks, 0.05)
		Groups.Boundary(looks, 0.05/3)
	}
}

// Each session has a level of its own, as far apart as may be: what is left is the difference within
// the sessions, and the looks together err in 5 %.
func TestDriftingInSessions(t *testing.T) {
	a, b := Timed{[]float64{1, 1.2, 0.8, 1, 9, 9.2, 8.8}, []float64{0, 3, 4, 7, 8, 11, 12}}, Timed{[]float64{1.5, 1.7, 1.3, 1.5, 9.5, 9.7, 9.3}, []float64{1, 2, 5, 6, 9, 10, 13}}
	// 14 values less two sides, a slope and a second session.
	d, ok := Groups.Drifting(a, b, 4)
	must.Hold(t, ok && math.Abs(d.Diff-0.5) <= 0.02 && d.DF == 10 && d.Spread <= 0.2, "two sessions: %+v %v", d, ok)
	if d, _ := Groups.Drifting(a, b); d.DF != 11 || d.Spread < 1 {
		t.Errorf("as one session: %+v", d)
	}
	if d, ok := Groups.Drifting(a, b, 7, 9); !ok || d.DF != 11 {
		t.Errorf("a session without values costs something: %+v %v", d, ok)
	}
	if _, ok := Groups.Drifting(a, Timed{b.Values[:6], b.At[:6]}, 4); ok {
		t.Error("sides of unequal length in sessions have a result")
	}
	const draws = 20_000
	looks := []int{3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	level := Groups.Boundary(looks, 0.05)
	for _, sessions := range [][]int{{3}, {5}, {8}, {3, 6}, {3, 4, 5, 6}} {
		r, crossed := rand.New(rand.NewPCG(uint64(len(sessions)), uint64(sessions[0]))), 0
		for range draws {
			var sides [2]Timed
			over, step := false, 0.0
			for round := range looks[len(looks)-1] {
				if slices.Contains(sessions, round) {
					step += 30 * r.NormFloat64()
				}
				for side := range 2 {
					sides[side].Values = append(sides[side].Values, step+r.NormFloat64())
					sides[side].At = append(sides[side].At, float64(2*round+(side+round)%2))
				}
				if round+1 >= looks[0] && !over {
					d, ok := Groups.Drifting(sides[0], sides[1], sessions...)
					over = ok && d.Above(0) <= level
				}
			}
			if over {
				crossed++
			}
		}
		share := float64(crossed) / draws
		t.Logf("sessions after %v: errs in %.4f", sessions, share)
		must.Hold(t, share <= 0.057 && share >= 0.035, "sessions after %v: errs in %.4f, want 0.05", sessions, share)
	}
}
