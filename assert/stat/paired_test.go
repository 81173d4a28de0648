package stat

import (
	"math"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// slowScore computes the score statistic of a paired comparison by its definition. Of n items, b
// are lost and c are won, and d is the assumed true difference.
//
// An item is then lost with probability q + d and won with probability q, and a search finds the
// most likely q. The result is how far the observed difference is from d, in standard errors at q.
func slowScore(b, c, n int, d float64) float64 {
	log := func(k int, p float64) float64 {
		if k == 0 {
			return 0
		}
		return float64(k) * math.Log(p)
	}
	likelihood := func(q float64) float64 {
		return log(b, q+d) + log(c, q) + log(n-b-c, 1-2*q-d)
	}
	lo, hi := max(0, -d), (1-d)/2
	for range 200 { // the likelihood has only one maximum, so narrow its range
		a, z := lo+(hi-lo)/3, hi-(hi-lo)/3
		if likelihood(a) < likelihood(z) {
			lo = a
		} else {
			hi = z
		}
	}
	q := (lo + hi) / 2
	return (float64(b-c)/float64(n) - d) / math.Sqrt((2*q+d-d*d)/float64(n))
}

func TestPairedScoreIsTheMostLikely(t *testing.T) {
	for _, n := range []int{20, 100, 541} {
		for _, bc := range [][2]int{{0, 0}, {3, 0}, {0, 3}, {7, 5}, {12, 2}} {
			for _, d := range []float64{0.01, 0.05, 0.2} {
				want := slowScore(bc[0], bc[1], n, d)
				got := pairedScore(float64(bc[0]), float64(bc[1]), float64(n), d)
				must.Hold(t, math.Abs(got-want) <= 1e-5*max(1, math.Abs(want)), "%v of %d at %v: %v, want %v", bc, n, d, got, want)
			}
		}
	}
}

// The test compares the bounds of PairedShare with slow computations. A bound is the point at which
// the score test no longer rejects. If all changes go in one direction, an exact test may move the
// bound further out.
func TestPairedShare(t *testing.T) {
	const z = 1.6448536269514722
	slow := func(b, c, n int) float64 {
		lo, hi := float64(b-c)/float64(n), 1.0
		for range 40 {
			if mid := (lo + hi) / 2; slowScore(b, c, n, mid) <= -z {
				hi = mid
			} else {
				lo = mid
			}
		}
		// Clopper and Pearson's bound is the share of losses at which b or fewer losses have a
		// probability of 5 %.
		if c == 0 {
			hi = max(hi, Bisect(0, 1, func(p float64) bool { return atMost(float64(b), float64(n), p) <= 0.05 }))
		}
		return hi
	}
	for _, x := range [][3]int{{12, 2, 50}, {5, 5, 600}, {0, 0, 200}, {9, 4, 500}, {3, 0, 100}} {
		b, c, n := x[0], x[1], x[2]
		low, high, ok := PairedShare(float64(b), float64(c), float64(n), 0.05)
		if !ok || math.Abs(high-slow(b, c, n)) > 1e-4 || math.Abs(-low-slow(c, b, n)) > 1e-4 {
			t.Errorf("%v: %.4f to %.4f, %v; want %.4f to %.4f", x, low, high, ok, -slow(c, b, n), slow(b, c, n))
		}
	}
	_, high, _ := PairedShare(0, 0, 200, 0.05)
	must.Hold(t, math.Abs(high-(1-math.Pow(0.05, 1.0/200))) <= 1e-9, "200 items that all agree certify %v", high)
	for _, bad := range [][3]float64{{0, 0, 0}, {-1, 0, 10}, {6, 5, 10}, {math.NaN(), 0, 10}} {
		_, _, ok := PairedShare(bad[0], bad[1], bad[2], 0.05)
		must.Hold(t, !ok, "%v has bounds", bad)
	}
}

// Tango's bounds are roots of a polynomial of the fourth degree (Yang, Sun and Hardin, Statistics
// in Medicine 32:1336, 2013). The paper derives the polynomial without likelihoods, so it is an
// independent check. It changes its sign at each bound.
func TestPairedShareIsARoot(t *testing.T) {
	const z = 1.6448536269514722
	for _, x := range [][3]float64{{12, 2, 50}, {5, 5, 600}, {9, 4, 500}, {11, 10, 603}, {3, 1, 100}, {2, 12, 50}} {
		b, c, n := x[0], x[1], x[2]
		k, diff := n/(z*z), b-c
		at := func(d float64) float64 {
			return n*n*(k+1)*(k+1)*math.Pow(d, 4) -
				n*diff*(k+1)*(4*k+1)*math.Pow(d, 3) +
				(2*k*diff*diff*(3*k+2)-n*n*((b+c)/(z*z)+1))*d*d +
				diff*(n*(2*(b+c)/(z*z)+1)-diff*diff*(4*k+1)/(z*z))*d +
				diff*diff*(diff*diff/(z*z)-(b+c))/(z*z)
		}
		low, high, _ := PairedShare(b, c, n, 0.05)
		for _, bound := range []float64{low, high} {
			must.Hold(t, at(bound-1e-7)*at(bound+1e-7) <= 0, "%v: %v is no root", x, bound)
		}
	}
}

// certifies returns the exact probability that n items certify a change below margin. lost and won
// are the true shares of items that the candidate loses and wins.
func certifies(n int, lost, won, margin float64) float64 {
	total := 0.0
	all, _ := math.Lgamma(float64(n + 1))
	log := func(k int, p float64) float64 {
		if k == 0 {
			return 0
		}
		l, _ := math.Lgamma(float64(k + 1))
		return float64(k)*math.Log(p) - l
	}
	for c := 0; c <= n && float64(c) <= 5+float64(n)*won*3+6; c++ {
		for b := 0; b+c <= n && pairedBelow(float64(b), float64(c), float64(n), margin, 0.05); b++ {
			total += math.Exp(all + log(b, lost) + log(c, won) + log(n-b-c, 1-lost-won))
		}
	}
	return total
}

// If the true change equals the margin, hardly more than 5 % of tests certify it. This holds for
// any share of other items on which the servers disagree.
func TestLongPairedShareErrsSeldom(t *testing.T) {
	worst := 0.0
	for n := 100; n <= 1000; n += 8 {
		for _, margin := range []float64{0.01, 0.02, 0.03, 0.05} {
			for _, won := range []float64{0, 0.0005, 0.002, 0.005, 0.02} {
				p := certifies(n, won+margin, won, margin)
				if worst = max(worst, p); p > 0.055 {
					t.Errorf("%d items certify -%v at %v won: %.4f", n, margin, won, p)
				}
			}
		}
	}
	must.Hold(t, worst >= 0.04, "at most %.4f err: the test is duller than it need be", worst)
}

// PairedNeeded returns how many items certify a change above −2 percentage points with 80 % power.
// The test computes this power again, as a sum over all outcomes.
func TestLongPairedNeeded(t *testing.T) {
	for _, tt := range []struct {
		disagree float64
		want     int
	}{{0.035, 601}, {0.05, 810}} {
		n, ok := PairedNeeded(tt.disagree, 0.02, 0.05, 0.8, 5000)
		must.Hold(t, ok && n == tt.want, "at %v: %d, want %d", tt.disagree, n, tt.want)
		half := tt.disagree / 2
		p, q := certifies(n, half, half, 0.02), certifies(n-1, half, half, 0.02)
		must.Hold(t, p >= 0.8 && q < 0.8 && math.Abs(p-PairedPower(n, tt.disagree, 0.02, 0.05)) <= 1e-6, "%d items certify with %.4f, %d with %.4f", n, p, n-1, q)
	}
}
