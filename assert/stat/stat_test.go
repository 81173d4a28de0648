package stat

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// exactAtMost returns P(Bin(n, p) ≤ k). It adds up rational numbers and rounds only the sum.
func exactAtMost(k, n int64, p *big.Rat) float64 {
	q := new(big.Rat).Sub(big.NewRat(1, 1), p)
	sum := new(big.Rat)
	for i := int64(0); i <= k; i++ {
		term := new(big.Rat).SetInt(new(big.Int).Binomial(n, i))
		term.Mul(term, power(p, i)).Mul(term, power(q, n-i))
		sum.Add(sum, term)
	}
	v, _ := sum.Float64()
	return v
}

func power(r *big.Rat, n int64) *big.Rat {
	e := big.NewInt(n)
	return new(big.Rat).SetFrac(new(big.Int).Exp(r.Num(), e, nil), new(big.Int).Exp(r.Denom(), e, nil))
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	must.Hold(t, got == want || math.Abs(got-want) <= tolerance, "%s = %.15g, want %.15g within %g", what, got, want, tolerance)
}

func TestLongAtMostAgainstExactSums(t *testing.T) {
	shares := []*big.Rat{big.NewRat(1, 1000), big.NewRat(1, 100), big.NewRat(1, 20), big.NewRat(1, 2), big.NewRat(19, 20), big.NewRat(7, 9)}
	for _, n := range []int64{1, 2, 5, 10, 59, 100, 299} {
		for _, k := range []int64{0, 1, 2, 4, n / 20, n / 3, n / 2, n - 1, n} {
			if k < 0 || k > n {
				continue
			}
			for _, r := range shares {
				p, _ := r.Float64()
				want := exactAtMost(k, n, r)
				got := atMost(float64(k), float64(n), p)
				near(t, "atMost", got, want, 1e-12)
				// Verdicts depend on small probabilities, so require a relative error of at most
				// 1e-11 too.
				must.Hold(t, want <= 1e-250 || math.Abs(got/want-1) <= 1e-11, "atMost(%d, %d, %v) = %.15g, want %.15g", k, n, p, got, want)
				near(t, "AtLeast", AtLeast(float64(k+1), float64(n), p), 1-want, 1e-12)
			}
		}
	}
}

// lowerBeta returns I_x(a, b), the first of the two results of the function beta.
func lowerBeta(x, a, b float64) float64 {
	lower, _ := beta(x, 1-x, a, b)
	return lower
}

func TestBetaClosedForms(t *testing.T) {
	for _, x := range []float64{0, 1e-9, 0.01, 0.25, 0.5, 0.8, 0.999, 1} {
		// I_x(1, b) = 1 − (1−x)^b and I_x(a, 1) = x^a also hold for fractions a and b.
		for _, c := range []float64{0.3, 1, 2.5, 17, 1234.5} {
			near(t, "I_x(1, b)", lowerBeta(x, 1, c), 1-math.Pow(1-x, c), 1e-12)
			near(t, "I_x(a, 1)", lowerBeta(x, c, 1), math.Pow(x, c), 1e-12)
		}
		// I_x(½, ½) has the closed form 2/π·arcsin √x.
		near(t, "I_x(½, ½)", lowerBeta(x, 0.5, 0.5), 2/math.Pi*math.Asin(math.Sqrt(x)), 1e-12)
	}
	for _, a := range []float64{0.5, 1, 3.7, 10, 50.5, 1e3, 1e5} {
		near(t, "I_½(a, a)", lowerBeta(0.5, a, a), 0.5, 1e-12)
	}
	for _, bad := range [][3]float64{{-0.1, 1, 1}, {1.1, 1, 1}, {0.5, 0, 1}, {0.5, 1, -2}, {math.NaN(), 1, 1}, {0.5, math.NaN(), 1}} {
		v := lowerBeta(bad[0], bad[1], bad[2])
		must.Hold(t, math.IsNaN(v), "Beta(%v) = %v, want NaN", bad, v)
	}
}

// The recurrence I_x(a, b) = I_x(a+1, b) + x^a(1−x)^b/(a·B(a, b)) (DLMF 8.17.20) also holds between
// small and large arguments, which lowerBeta computes in different ways.
func TestBetaRecurrence(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		a, b := math.Exp(r.Float64()*9-1), math.Exp(r.Float64()*9-1)
		x := r.Float64()
		front := math.Exp(a*math.Log(x) + b*math.Log1p(-x) + lgamma(a+b) - lgamma(a+1) - lgamma(b))
		near(t, "I_x(a, b) − I_x(a+1, b)", lowerBeta(x, a, b)-lowerBeta(x, a+1, b), front, 1e-11)
	}
}

func TestShareTable(t *testing.T) {
	// In each row, pass is the largest number of bad requests of n with which a p95 passes, at 95%
	// confidence. fail is the smallest number with which it fails.
	for _, c := range []struct{ n, pass, fail int }{
		{59, 0, 7}, {100, 1, 10}, {200, 4, 16}, {400, 12, 28}, {800, 29, 51}, {1600, 65, 96},
	} {
		if c.n <= 400 {
			e := big.NewRat(1, 20)
			if exactAtMost(int64(c.pass), int64(c.n), e) > 0.05 || exactAtMost(int64(c.pass)+1, int64(c.n), e) <= 0.05 {
				t.Fatalf("the table's row for n=%d is wrong", c.n)
			}
			if 1-exactAtMost(int64(c.fail)-1, int64(c.n), e) > 0.05 || 1-exactAtMost(int64(c.fail)-2, int64(c.n), e) <= 0.05 {
				t.Fatalf("the table's row for n=%d is wrong", c.n)
			}
		}
		must.Same(t, fmt.Sprintf("mostBelow(%d)", c.n), c.pass, mostBelow(c.n, float64(c.n), 0.05, 0.05))
		must.Same(t, fmt.Sprintf("leastAbove(%d)", c.n), c.fail, leastAbove(c.n, float64(c.n), 0.05, 0.05))
	}
	must.Same(t, "mostBelow(58)", -1, mostBelow(58, 58, 0.05, 0.05))
	// MLPerf publishes these minimum numbers of observations for 99% confidence if one of them is
	// bad (MLPerf Endpoints, docs/early_stopping.md).
	for _, c := range []struct {
		n       float64
		allowed float64
	}{{64, 0.10}, {130, 0.05}, {662, 0.01}, {6636, 0.001}} {
		if Share(1, c.n, c.allowed, 0.01) != Below || Share(1, c.n-1, c.allowed, 0.01) == Below {
			t.Errorf("the floor for one miss and a share of %v is not %v", c.allowed, c.n)
		}
	}
}

func TestShareRefusesNonsense(t *testing.T) {
	nan := math.NaN()
	for _, c := range [][4]float64{{0, 0, 0.05, 0.05}, {1, 0, 0.05, 0.05}, {-1, 10, 0.05, 0.05}, {11, 10, 0.05, 0.05}, {nan, 100, 0.05, 0.05}, {0, nan, 0.05, 0.05}, {0, 1000, nan, 0.05}, {0, 1000, 0.05, nan}, {0, 1000, 0.05, 0}} {
		must.Same(t, fmt.Sprintf("Share(%v)", c), Open, Share(c[0], c[1], c[2], c[3]))
	}
	// No number of good observations proves that a share is exactly zero, but one bad observation
	// refutes it.
	must.Hold(t, Share(0, 1e6, 0, 0.05) == Open && Share(1, 1e6, 0, 0.05) == Above, "a share of zero can be refuted only")
	must.Hold(t, Share(5, 10, 1, 0.05) == Below, "a share of at most 1 holds always")
}

func TestMinimumN(t *testing.T) {
	// The expected values are from Hahn, Meeker and Escobar, Statistical Intervals, chapter 5.
	for _, c := range []struct {
		allowed, alpha float64
		want           int
	}{
		{0.5, 0.05, 5}, {0.1, 0.05, 29}, {0.05, 0.05, 59}, {0.01, 0.05, 299}, {0.001, 0.05, 2995},
		{0.5, 0.01, 7}, {0.1, 0.01, 44}, {0.05, 0.01, 90}, {0.01, 0.01, 459}, {0.001, 0.01, 4603},
		// Three looks share the error, so each has 0.05/3. ln(0.05/3)/ln 0.95 = 79.8 is rounded up
		// to 80.
		{0.05, SplitAlpha(0.05, 3), 80}, {0.01, SplitAlpha(0.05, 3), 408},
		{0.5, 0.5, 1}, {1, 0.05, 1},
	} {
		got, ok := MinimumN(c.allowed, c.alpha)
		must.Hold(t, ok && got == c.want, "MinimumN(%v, %v) = %d, %v, want %d", c.allowed, c.alpha, got, ok, c.want)
	}
	for _, allowed := range []float64{0, -1, math.NaN(), 1e-18} {
		n, ok := MinimumN(allowed, 0.05)
		must.Hold(t, !ok, "MinimumN(%v) = %d, want none", allowed, n)
	}
}

func TestClopperPearson(t *testing.T) {
	// The values are from the published table of two-sided 95% intervals of Clopper and Pearson
	// (1934), as in Owen, Handbook of Statistical Tables.
	for _, c := range []struct{ k, n, low, high float64 }{
		{0, 10, 0, 0.3085}, {1, 10, 0.0025, 0.4450}, {5, 10, 0.1871, 0.8129}, {10, 10, 0.6915, 1},
	} {
		low, high, ok := ClopperPearson(c.k, c.n, 0.025)
		must.Need(t, ok, "ClopperPearson(%v, %v) has no answer", c.k, c.n)
		near(t, "low", low, c.low, 5e-5)
		near(t, "high", high, c.high, 5e-5)
	}
	// 0 bad of 59 has the upper bound p at which 59 good ones have the probability (1−p)⁵⁹ = 0.05.
	_, high, _ := ClopperPearson(0, 59, 0.05)
	near(t, "rule of three", high, 1-math.Pow(0.05, 1.0/59), 1e-12)
	_, _, ok := ClopperPearson(0, 0, 0.05)
	must.Hold(t, !ok, "nothing of nothing has bounds")
}

func TestStudentTable(t *testing.T) {
	// The expected values are from Abramowitz and Stegun, table 26.10.
	for _, c := range []struct{ p, df, want float64 }{
		{0.95, 1, 6.314}, {0.95, 2, 2.920}, {0.95, 4, 2.132}, {0.95, 9, 1.833}, {0.95, 10, 1.812}, {0.95, 30, 1.697}, {0.95, 120, 1.658},
		{0.975, 1, 12.706}, {0.975, 2, 4.303}, {0.975, 4, 2.776}, {0.975, 9, 2.262}, {0.975, 30, 2.042},
		{0.995, 5, 4.032}, {0.05, 4, -2.132}, {0.5, 7, 0},
	} {
		near(t, "StudentQuantile", StudentQuantile(c.p, c.df), c.want, 5.1e-4)
		near(t, "StudentCDF of its quantile", StudentCDF(StudentQuantile(c.p, c.df), c.df), c.p, 1e-12)
	}
	// Student's t with one degree of freedom has the distribution function ½ + arctan(t)/π
	// (Cauchy). With two degrees of freedom it is ½ + t/(2√(2+t²)).
	for _, x := range []float64{-1e6, -3, -0.1, 0, 0.5, 2, 50} {
		near(t, "df 1", StudentCDF(x, 1), 0.5+math.Atan(x)/math.Pi, 1e-12)
		near(t, "df 2", StudentCDF(x, 2), 0.5+x/(2*math.Sqrt(2+x*x)), 1e-12)
	}
	near(t, "z", NormalQuantile(0.95), 1.6448536269514722, 1e-13)
	near(t, "z", NormalQuantile(0.975), 1.959963984540054, 1e-13)
	near(t, "t to z", StudentQuantile(0.95, 1e7), NormalQuantile(0.95), 1e-6)
	v := StudentQuantile(0.95, 0)
	must.Hold(t, math.IsNaN(v), "no degrees of freedom give %v, want NaN", v)
}

func TestPercentileRanks(t *testing.T) {
	for _, c := range []struct {
		n           int
		q, alpha    float64
		low, high   int
		explanation string
	}{
		{10, 0.5, 0.025, 2, 9, "median of 10: x2 to x9 covers 97.9% (Conover, table A3)"},
		{59, 0.95, 0.05, 53, 59, "0.95^59 = 0.0485: the largest is an upper bound; 7 bad ones refute"},
		{58, 0.95, 0.05, 52, 59, "0.95^58 = 0.0510: no upper bound"},
		{5, 0.5, 0.05, 1, 5, "2^-5 = 0.031"},
		{4, 0.5, 0.05, 0, 5, "2^-4 = 0.0625: neither"},
		{0, 0.5, 0.05, 0, 1, "nothing"},
	} {
		low, high := PercentileRanks(c.n, float64(c.n), c.q, c.alpha)
		must.Hold(t, low == c.low && high == c.high, "PercentileRanks(%d, %v) = %d, %d, want %d, %d: %s", c.n, c.q, low, high, c.low, c.high, c.explanation)
	}
	// At least two of three values are above the p95 with a probability of only 0.00725, so the
	// second-largest value is a lower bound. The largest is not, because at least one of three is
	// above the p95 with a probability of 0.143.
	low, high := PercentileBounds([]float64{1, 2, 3}, 0, 3, 0.95, 0.05)
	must.Hold(t, low == 2 && math.IsInf(high, 1), "bounds of three values = %v, %v, want 2, +Inf", low, high)
	// One of 59 observations failed, so it ranks above all values. The upper bound has the last
	// rank too, so it is +Inf.
	if _, high := PercentileBounds(make([]float64, 58), 1, 59, 0.95, 0.05); !math.IsInf(high, 1) {
		t.Errorf("a failure among 59 leaves the bound at %v", high)
	}
}

// The test and the interval agree. Below holds exactly if the upper bound meets the limit, and
// Above exactly if the lower bound misses it. This holds for strict and inclusive limits, and for
// whole and fractional effective numbers.
func TestLongDuality(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		n := 1 + r.IntN(400)
		values := make([]float64, n)
		for i := range values {
			values[i] = float64(r.IntN(40)) // with ties
		}
		slices.Sort(values)
		q := []float64{0.5, 0.9, 0.95, 0.99}[r.IntN(4)]
		alpha := []float64{0.01, 0.05, 0.2}[r.IntN(3)]
		eff := float64(n) * (0.1 + 0.9*r.Float64())
		limit := float64(r.IntN(42)) - 0.5*float64(r.IntN(2))
		low, high := PercentileBounds(values, 0, eff, q, alpha)
		for _, strict := range []bool{true, false} {
			k := 0
			for _, v := range values {
				if v > limit || strict && v == limit {
					k++
				}
			}
			want := Open
			switch {
			case high < limit || !strict && high == limit:
				want = Below
			case low > limit || strict && low == limit:
				want = Above
			}
			if got := Share(float64(k)*eff/float64(n), eff, 1-q, alpha); got != want {
				t.Fatalf("n=%d eff=%v q=%v alpha=%v limit=%v strict=%v k=%d bounds=[%v, %v]: test says %v, interval %v", n, eff, q, alpha, limit, strict, k, low, high, got, want)
			}
		}
		// The Clopper–Pearson bounds agree with the result of Share.
		k := float64(r.IntN(n + 1))
		pl, ph, _ := ClopperPearson(k, float64(n), alpha)
		must.Need(t, pl <= ph && pl <= k/float64(n) && ph >= k/float64(n), "ClopperPearson(%v, %d, %v) = %v, %v", k, n, alpha, pl, ph)
		e := r.Float64()
		want := Open
		if ph <= e {
			want = Below
		} else if pl >= e {
			want = Above
		}
		got := Share(k, float64(n), e, alpha)
		must.Need(t, got == want || math.Abs(ph-e) <= 1e-12 || math.Abs(pl-e) <= 1e-12, "k=%v n=%d e=%v: test says %v, interval [%v, %v]", k, n, e, got, pl, ph)
	}
}

func TestTailsAreMonotone(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 3000 {
		n := r.Float64() * 3000
		k, p := r.Float64()*n, r.Float64()
		at := atMost(k, n, p)
		must.Need(t, at >= 0 && at <= 1 && !math.IsNaN(at), "atMost(%v, %v, %v) = %v", k, n, p, at)
		const slack = 1e-11
		more := atMost(min(k+r.Float64()*5, n), n, p)
		must.Need(t, more >= at-slack, "atMost(%v, %v, %v) falls with k: %v to %v", k, n, p, at, more)
		worse := atMost(k, n, p+(1-p)*r.Float64())
		must.Need(t, worse <= at+slack, "atMost(%v, %v, %v) rises with p: %v to %v", k, n, p, at, worse)
		larger := atMost(k, n+5*r.Float64(), p)
		must.Need(t, larger <= at+slack, "atMost(%v, %v, %v) rises with n: %v to %v", k, n, p, at, larger)
	}
}

func TestEffective(t *testing.T) {
	// One of five rounds has 20 bad observations of 100, and the others have none. By rounds, the
	// variance of the share 0.04 is (0.16² + 4·0.04²)/(5·4) = 0.0016. For independent observations
	// it would be 0.04·0.96/500 = 0.0000768. The design effect is the ratio, 20.833.
	groups := []Group{{20, 100}, {0, 100}, {0, 100}, {0, 100}, {0, 100}}
	near(t, "shareEffect", shareEffect(groups), 20.8333, 0.001)
	// All groups have the same share of bad observations, so there is no variance between them.
	near(t, "shareEffect", shareEffect([]Group{{4, 100}, {4, 100}, {4, 100}, {4, 100}, {4, 100}}), 0, 0)
	near(t, "shareEffect of nothing bad", shareEffect([]Group{{0, 50}, {0, 50}}), 1, 0)
	near(t, "shareEffect of nothing", shareEffect(nil), 1, 0)
	near(t, "empty groups count for nothing", shareEffect(append(groups, Group{})), 20.8333, 0.001)
	// Of the design effect 20.8333, √(2/4) = 0.7071 may be chance. That leaves 20.1262, which is
	// 19.1262 above 1. The excess is multiplied by (t/z)⁴ = 2.82175, so the final design effect is
	// 1 + 2.82175·19.1262 = 54.9694.
	near(t, "Effective of five groups", Effective(500, groups, nil, 0.05), 500/54.9694, 0.001)
	// The variance of the share is 0.00071111 by rounds, and would be 0.000192 for independent
	// observations. Their ratio, 3.7037, is the design effect. Of it, √(2/9) = 0.4714 may be
	// chance. That leaves 3.2323, which is 2.2323 above 1. The excess is multiplied by (t/z)⁴ =
	// 1.54259, so 200 requests count as 200/(1 + 1.54259·2.2323).
	ten := []Group{{4, 20}, {0, 20}, {0, 20}, {0, 20}, {0, 20}, {4, 20}, {0, 20}, {0, 20}, {0, 20}, {0, 20}}
	near(t, "shareEffect of ten", shareEffect(ten), 3.7037, 0.0001)
	near(t, "Effective of ten groups", Effective(200, ten, nil, 0.05), 200/4.44353, 0.001)

	// By the two blocks {1,1} and {3,3}, the variance of the mean is 1. For four independent values
	// it would be s²/4 = 1/3. The effect is the ratio, 3.
	near(t, "meanEffect", meanEffect(ascending([]float64{1, 1}, []float64{3, 3})), 3, 1e-9)
	near(t, "meanEffect of equal values", meanEffect(ascending([]float64{0.1, 0.1, 0.1}, []float64{0.1, 0.1})), 1, 0)
	near(t, "meanEffect with a value that is none", meanEffect(ascending([]float64{1, math.NaN()}, []float64{3, 3})), math.Inf(1), 0)
	together := []Ascending{{Values: []float64{1}, Until: []int{2}}, {Values: []float64{1, 3}, Until: []int{1, 4}}}
	near(t, "meanEffect of equal ones together", meanEffect(together), meanEffect(ascending([]float64{1, 1}, []float64{1, 3, 3, 3})), 0)
	// The design effect is 3, of which √2 may be chance. That leaves 3 − √2, which exceeds 1 by 2 −
	// √2. This excess is multiplied by (t/z)⁴ = (6.31375/1.64485)⁴ = 217.0905, so the final design
	// effect is 1 + 217.0905·(2 − √2) = 128.169.
	near(t, "Effective", Effective(4, []Group{{0, 2}, {0, 2}}, [][]Ascending{ascending([]float64{1, 1}, []float64{3, 3})}, 0.05), 4/128.169, 1e-4)
	near(t, "Effective with a value that is none", Effective(4, nil, [][]Ascending{ascending([]float64{1, math.NaN()}, []float64{3, 3})}, 0.05), 0, 0)
	// Two requests with four gaps each count as at most two observations.
	near(t, "more observations than requests", Effective(2, []Group{{1, 4}, {1, 4}}, nil, 0.05), 2, 0)
}

// ascending returns a list of observations for each list of values.
func ascending(lists ...[]float64) (out []Ascending) {
	for _, values := range lists {
		out = append(out, Ascending{Values: values})
	}
	return out
}

func TestExcess(t *testing.T) {
	// A bad observation has other bad ones in its group. Excess is their mean number, minus the
	// number by chance. By chance, 4 bad ones in groups of 20 and 60 have 3·(20² + 60²)/80² = 1.875
	// others. If all are in one group, each has 3 others, so the excess is 1.125.
	near(t, "Excess of less than chance", Excess([]Group{{3, 20}, {1, 60}}), 0, 0)
	near(t, "Excess", Excess([]Group{{4, 20}, {0, 60}}), 1.125, 1e-12)
	near(t, "Excess of one", Excess([]Group{{1, 20}, {0, 60}}), 0, 0)
	near(t, "Excess of none", Excess([]Group{{0, 20}, {0, 0}}), 0, 0)
	near(t, "Excess of one group", Excess([]Group{{7, 20}}), 0, 0)
	c := Clusters{}
	near(t, "no cluster", c.Mean(), 1, 0)
	c.Add(1, 3)
	c.Add(3, 1) // now 3 clusters of 1 and 1 of 3; the mean over requests is (3·1² + 3²)/(3 + 3) = 2
	near(t, "clusters", c.Mean(), 2, 0)
}

func TestEffectiveOfFewValues(t *testing.T) {
	groups := []Group{{20, 40}, {20, 40}}
	// Of the 80 requests, 40 have a value, and all values are equal. Equal values show no
	// correlation, so the 80 requests count as 80 independent ones.
	alike := make([]float64, 20)
	near(t, "half without a value", Effective(80, groups, [][]Ascending{ascending(alike, alike)}, 0.05), 80, 0)
	near(t, "none with a value", Effective(80, groups, [][]Ascending{ascending(nil, nil)}, 0.05), 80, 0)
	near(t, "no request", Effective(0, nil, nil, 0.05), 0, 0)
}

func TestMeanInterval(t *testing.T) {
	// The half width of the interval is t·√(s²/n) = 2.13185·√(2.5/5) = 1.50745, with 4 degrees of
	// freedom.
	mean, low, high, ok := MeanInterval([]float64{1, 2, 3, 4, 5}, 0.05)
	near(t, "mean", mean, 3, 1e-12)
	near(t, "low", low, 3-1.50745, 1e-5)
	near(t, "high", high, 3+1.50745, 1e-5)
	must.Hold(t, ok, "five units give no interval")
	if _, low, high, ok := MeanInterval([]float64{7}, 0.05); !ok || !math.IsInf(low, -1) || !math.IsInf(high, 1) {
		t.Errorf("one unit bounds the mean to [%v, %v]", low, high)
	}
	for _, units := range [][]float64{nil, {math.NaN(), 1}, {math.Inf(1), 1}} {
		if _, _, _, ok := MeanInterval(units, 0.05); ok {
			t.Errorf("MeanInterval(%v) has an answer", units)
		}
	}
}

func TestNeeded(t *testing.T) {
	// Without bad observations, Needed returns the same numbers as MinimumN.
	for _, c := range []struct {
		share, allowed float64
		want           int
	}{{0, 0.05, 59}, {0, 0.01, 299}, {1, 0.05, 1}} {
		if n, ok := Needed(c.share, c.allowed, 0.05); !ok || n != c.want {
			t.Errorf("Needed(%v, %v) = %d, %v, want %d", c.share, c.allowed, n, ok, c.want)
		}
	}
	if n, ok := Needed(0.05, 0.05, 0.05); ok {
		t.Errorf("a share at the limit is settled by %d", n)
	}
	n, ok := Needed(0.03, 0.05, 0.05)
	if !ok || Share(0.03*float64(n), float64(n), 0.05, 0.05) != Below || Share(0.03*float64(n-1), float64(n-1), 0.05, 0.05) != Open {
		t.Errorf("Needed(3%%, 5%%) = %d, %v is not the first that decides", n, ok)
	}
	// The distance from the mean to the limit is 2. The half width of the interval, t·1.5811/√n, is
	// 2.67 with n = 3 and 1.86 with n = 4, so 4 values are needed.
	if n, ok := MeanNeeded([]float64{1, 2, 3, 4, 5}, 5, 0.05); !ok || n != 4 {
		t.Errorf("MeanNeeded = %d, %v, want 4", n, ok)
	}
	if _, ok := MeanNeeded([]float64{1, 2, 3}, 2, 0.05); ok {
		t.Error("a mean at its limit is settled")
	}
}

// A server exactly at the limit passes at most 5% of the time, even if its requests depend on each
// other.
func TestLongFalsePass(t *testing.T) {
	const gates, alpha, q = 2000, 0.05, 0.95
	z := NormalQuantile(q)
	independent := func(r *rand.Rand, xs []float64) {
		for i := range xs {
			xs[i] = r.NormFloat64()
		}
	}
	// Consecutive requests have a correlation of 0.8.
	ar1 := func(r *rand.Rand, xs []float64) {
		x := r.NormFloat64()
		for i := range xs {
			xs[i] = x
			x = 0.8*x + 0.6*r.NormFloat64()
		}
	}
	// A third of the variance is between rounds, and two thirds are within them.
	shifted := func(r *rand.Rand, xs []float64) {
		shift := math.Sqrt(1.0/3) * r.NormFloat64()
		for i := range xs {
			xs[i] = shift + math.Sqrt(2.0/3)*r.NormFloat64()
		}
	}
	for _, c := range []struct {
		name          string
		rounds, round int
		blocks        int // per round
		naiveErrs     bool
		draw          func(*rand.Rand, []float64)
	}{
		{"independent, 5 rounds", 5, 60, 1, false, independent},
		{"independent, 1 round in 10 blocks", 1, 200, 10, false, independent},
		{"AR(1) 0.8, 5 rounds", 5, 80, 1, true, ar1},
		{"AR(1) 0.8, 1 round in 10 blocks", 1, 400, 10, true, ar1},
		{"shifted rounds, 5", 5, 60, 1, true, shifted},
		{"shifted rounds, 8", 8, 50, 1, true, shifted},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, uint64(len(c.name))))
			passed, naive := 0, 0
			n := float64(c.rounds * c.round)
			xs := make([]float64, c.round)
			for range gates {
				var groups []Group
				var blocks [][]float64
				k := 0.0
				for range c.rounds {
					c.draw(r, xs)
					for block := range slices.Chunk(slices.Clone(xs), c.round/c.blocks) {
						g := Group{N: float64(len(block))}
						for _, x := range block {
							if x > z {
								g.K++
							}
						}
						k += g.K
						groups, blocks = append(groups, g), append(blocks, block)
					}
				}
				eff := Effective(n, groups, [][]Ascending{ascending(blocks...)}, alpha)
				if Share(k/n*eff, eff, 1-q, alpha) == Below {
					passed++
				}
				if Share(k, n, 1-q, alpha) == Below {
					naive++
				}
			}
			// Allow three standard errors, because by chance the observed share may be above 5%.
			share := float64(passed) / gates
			t.Logf("false passes: %.1f%%, with n taken as it is %.1f%%", 100*share, 100*float64(naive)/gates)
			limit := alpha + 3*math.Sqrt(alpha*(1-alpha)/gates)
			must.Hold(t, share <= limit, "false passes: %.3f, more than %.3f", share, limit)
			// A test that ignores dependence must pass too often here. Otherwise this case could
			// not show that the correction is needed.
			must.Hold(t, !c.naiveErrs || float64(naive)/gates >= 0.08, "the naive test errs only %d times of %d: the case proves nothing", naive, gates)
		})
	}
}

func TestLongLogMeanBound(t *testing.T) {
	// The expected bounds come from 200,000 random draws. m and s are the mean and the standard
	// deviation of the logarithms of the values.
	r := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		m, s float64
		n    int
	}{{1, 1, 5}, {0, 0.1, 10}, {0, 0.1, 2}} {
		units := make([]float64, c.n)
		for i := range units {
			// The logarithms have equal distances, the mean m and the standard deviation s.
			x := float64(i) - float64(c.n-1)/2
			units[i] = math.Exp(c.m + c.s*x/math.Sqrt(float64(c.n*(c.n+1))/12))
		}
		draws := make([]float64, 200_000)
		for i := range draws {
			chi := 0.0
			for range c.n - 1 {
				z := r.NormFloat64()
				chi += z * z
			}
			u := float64(c.n-1) / chi
			draws[i] = c.m + c.s*math.Sqrt(u/float64(c.n))*r.NormFloat64() + c.s*c.s*u/2
		}
		slices.Sort(draws)
		want := draws[len(draws)*95/100]
		got := math.Log(LogMeanBound(units, 1, 0.05))
		must.Hold(t, math.Abs(got-want) <= 0.05*math.Max(0.1, math.Abs(want)), "m %v, s %v, n %d: ln of the bound is %.4f, want %.4f", c.m, c.s, c.n, got, want)
	}
	// The expected values come from a numerical integral over x by Simpson's rule. The steps are so
	// fine that finer steps do not change the result.
	for _, c := range []struct {
		n            int
		s, alpha, ln float64
	}{{2, 0.05 * math.Sqrt2 / 2, 0.05, 0.2783}, {3, 0.05, 0.001, 1.52255}, {5, 2, 0.001, 88.4914}, {10, 2, 0.001, 16.0112}, {40, 0.5, 0.05, 0.280360}, {400, 0.05, 0.001, 0.00906552}} {
		units := make([]float64, c.n)
		for i := range units {
			x := float64(i) - float64(c.n-1)/2
			units[i] = math.Exp(c.s * x / math.Sqrt(float64(c.n*(c.n+1))/12))
		}
		got := math.Log(LogMeanBound(units, 1, c.alpha))
		must.Hold(t, math.Abs(got/c.ln-1) <= 1e-4, "s %v, n %d, alpha %v: ln of the bound is %.6g, want %.6g", c.s, c.n, c.alpha, got, c.ln)
	}
	// If all units are equal, the bound is the same value.
	got := LogMeanBound([]float64{3, 3, 3}, 1, 0.05)
	must.Hold(t, math.Abs(got-3) <= 1e-9, "of three alike it is %v", got)
	for _, units := range [][]float64{nil, {1}, {1, 0}, {1, -1}, {1, math.NaN()}} {
		got := LogMeanBound(units, 1, 0.05)
		must.Hold(t, math.IsInf(got, -1), "LogMeanBound(%v) = %v, want none", units, got)
	}
}

// A group counts by its share of bad observations. If the mean share is at the limit, groups with a
// share between 0 and 1 pass no more often than groups that are all bad or all good. Here every
// group has one of two shares, low or high.
func TestLongShareOfParts(t *testing.T) {
	const alpha = 0.05
	for _, n := range []float64{10, 59, 60, 149, 150, 200, 400} {
		for _, limit := range []float64{0.01, 0.02, 0.05, 0.1, 0.3} {
			for _, low := range []float64{0, 0.1 * limit, 0.5 * limit, 0.9 * limit} {
				for _, high := range []float64{1.1 * limit, 0.3, 0.5, 0.9, 1} {
					if high <= limit {
						continue
					}
					q := (limit - low) / (high - low) // probability of the larger share, high
					passes := 0.0
					for k := 0.0; k <= n && Share(k*high+(n-k)*low, n, limit, alpha) == Below; k++ {
						passes = atMost(k, n, q)
					}
					must.Hold(t, passes <= alpha*(1+1e-9), "%v groups, limit %v, %v or %v of each bad: %v pass", n, limit, low, high, passes)
				}
			}
		}
	}
}

// At e = ½ the integral in the doc comment of PerLifetime is (π/2 − 1)·4/π = 0.7268. For other e,
// the function plackett computes it as a sum.
func TestPerLifetime(t *testing.T) {
	for e, want := range map[float64]float64{0.5: 1 / ((math.Pi/2 - 1) * 4 / math.Pi), 0.05: 0, 0.01: 0} {
		if want == 0 {
			want = 1 / plackett(e)
		}
		got := PerLifetime(e)
		must.Hold(t, math.Abs(got/want-1) <= 1e-3, "at %v: %v, want %v", e, got, want)
	}
}

// MeanAbove returns the alpha at which the lower bound of the mean equals the limit, here 0.5. t is
// (3 − 0.5)/√(2.5/5) = 3.536 with 4 degrees of freedom, so alpha is 0.0121.
func TestMeanAbove(t *testing.T) {
	units := []float64{1, 2, 3, 4, 5}
	p := MeanAbove(units, 0.5)
	_, low, _, _ := MeanInterval(units, p)
	must.Hold(t, math.Abs(low-0.5) <= 1e-9 && math.Abs(p-0.0121) <= 1e-4, "%v: the lower bound is %v, want 0.5", p, low)
	for _, tt := range []struct {
		units []float64
		want  float64
	}{{[]float64{2, 2}, 0}, {[]float64{1, 1}, 1}, {[]float64{2}, 1}, {nil, 1}, {[]float64{1, math.Inf(1)}, 1}, {[]float64{2, math.NaN()}, 1}} {
		must.Same(t, fmt.Sprintf("%v above 1", tt.units), tt.want, MeanAbove(tt.units, 1))
	}
}

// If a measurement lasts only as long as one request, its ten parts have similar means. If the
// parts were taken as independent, the standard error of the mean would be √20 times too small.
func TestPersistence(t *testing.T) {
	for _, tt := range []struct {
		lifetimes float64
		parts     int
		want      float64
	}{
		{1, 10, math.Sqrt(20)},
		// The variance of a mean over 4 lifetimes is 11/48 of the variance of a single value. Over
		// 0.4 lifetimes, one of the ten parts, it is 13/15.
		{4, 10, math.Sqrt(9 * (11.0 / 48) / (13.0/15 - 11.0/48))},
		{29.9, 10, 1.06}, {30, 10, 1}, {math.Inf(1), 10, 1}, {1, 1, 1}, {0, 10, 1}, {math.NaN(), 10, 1},
	} {
		got := Persistence(tt.lifetimes, tt.parts)
		must.Hold(t, math.Abs(got-tt.want) <= 0.005, "%v lifetimes in %d parts: %v, want %v", tt.lifetimes, tt.parts, got, tt.want)
	}
}

// plackett computes the integral in the doc comment of PerLifetime, as a sum over small steps of r.
func plackett(e float64) (sum float64) {
	const n = 200_000
	u := NormalQuantile(1 - e)
	for i := range n {
		r := (float64(i) + 0.5) / n
		sum += math.Sqrt((1-r)/(1+r)) * math.Exp(-u*u/(1+r)) / n
	}
	return sum / (math.Pi * e * (1 - e))
}

// In windows of 13 lifetimes of a request, the share p of busy moments varies as much as a share of
// 13·PerLifetime(p) independent observations. A moment is busy if more than 264 requests are in
// flight. The simulated server has no queue and 240 requests in flight on average.
func TestLongPerLifetime(t *testing.T) {
	const windows, length, many, step = 1500, 13.0, 240.0, 0.02
	r := rand.New(rand.NewPCG(5, 6))
	var shares []float64
	for range windows {
		var ends []float64 // end times of the requests, each of which lasts 1
		at, over, moments, first := 0.0, 0.0, 0.0, 0
		for now := 1.0; now < 1+length; now += step {
			for ; at < now; at += r.ExpFloat64() / many {
				ends = append(ends, at+1)
			}
			for first < len(ends) && ends[first] < now {
				first++
			}
			if moments++; len(ends)-first > 264 {
				over++
			}
		}
		shares = append(shares, over/moments)
	}
	p, variance := Moments(shares)
	got, want := p*(1-p)/variance, length*PerLifetime(p)
	// Allow 15 %, because a variance from 1,500 skewed shares has a relative error of about 6 %.
	must.Hold(t, math.Abs(got/want-1) <= 0.15, "windows with a share of %.3f are worth %.1f moments, want %.1f", p, got, want)
}
