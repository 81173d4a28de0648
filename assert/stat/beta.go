package stat

import "math"

// beta returns the regularised incomplete beta function I_x(a, b) and its complement. It needs a, b
// > 0 and x in [0, 1], and otherwise returns NaN. y must be 1−x. It is a parameter so that neither
// x nor y is rounded.
//
// Neither result loses digits by cancellation. The error is below 1e-12 up to a + b ≈ 1e4. It grows
// with a + b, to 1e-9 at 1e7.
//
// beta evaluates the continued fraction of DLMF §8.17(v), equation 8.17.22, by the modified Lentz
// method (Thompson and Barnett, J. Comput. Phys. 64, 1986). The fraction converges fast on one side
// of the mean. On the other side beta uses the symmetry I_x(a, b) = 1 − I_{1−x}(b, a) (8.17.4).
func beta(x, y, a, b float64) (lower, upper float64) {
	switch {
	case math.IsNaN(x) || !(a > 0) || !(b > 0) || x < 0 || y < 0:
		return math.NaN(), math.NaN()
	case x == 0:
		return 0, 1
	case y == 0:
		return 1, 0
	}
	if x > (a+1)/(a+b+2) {
		lower, upper = beta(y, x, b, a)
		return upper, lower
	}
	lower = math.Exp(logFront(x, y, a, b)) / (a * fraction(x, a, b))
	lower = min(max(lower, 0), 1)
	return lower, 1 - lower
}

// logFront returns ln(x^a y^b / B(a, b)), where y = 1−x.
//
// For large a and b the formula lgamma(a+b) − lgamma(a) − lgamma(b) would lose digits, because
// large terms nearly cancel. So logFront uses Stirling's series, in which these terms are cancelled
// by algebra.
//
// With μ = a/(a+b) the exponent is a·ln(x/μ) + b·ln(y/(1−μ)). Near the mean it is computed by log1p
// (as in Didonato and Morris, ACM TOMS 18, 1992).
func logFront(x, y, a, b float64) float64 {
	if min(a, b) < 10 {
		return a*math.Log(x) + b*math.Log(y) + lnGammaRatio(a, b)
	}
	mu, nu := a/(a+b), b/(a+b)
	d := x - mu
	if math.Abs(d) > 0.5*min(mu, nu) {
		// Far from the mean the logarithms are large, so the plain formula is exact enough.
		return a*math.Log(x/mu) + b*math.Log(y/nu) + stirlingFront(a, b)
	}
	return a*math.Log1p(d/mu) + b*math.Log1p(-d/nu) + stirlingFront(a, b)
}

// stirlingFront returns the logarithm of μ^a ν^b / B(a, b), where μ = a/(a+b) and ν = b/(a+b). It
// needs a, b ≥ 10.
func stirlingFront(a, b float64) float64 {
	return 0.5*math.Log(a/(2*math.Pi)*(b/(a+b))) + stirling(a+b) - stirling(a) - stirling(b)
}

// stirling returns the error of Stirling's formula for lnΓ(z), for z ≥ 10 (DLMF 5.11.1). The
// formula is (z−½)·ln z − z + ½·ln 2π.
func stirling(z float64) float64 {
	r := 1 / z
	s := r * r
	return r * (1.0/12 + s*(-1.0/360+s*(1.0/1260+s*(-1.0/1680+s*(1.0/1188+s*(-691.0/360360+s/156))))))
}

// lnGammaRatio returns −ln B(a, b). The smaller of a and b must be below 10.
func lnGammaRatio(a, b float64) float64 {
	small, large := min(a, b), max(a, b)
	if large < 100 {
		return lgamma(small+large) - lgamma(small) - lgamma(large)
	}
	// Compute lnΓ(large+small) − lnΓ(large) by Stirling's series, where the large terms cancel.
	sum := large + small
	diff := (large-0.5)*math.Log1p(small/large) + small*math.Log(sum) - small + stirling(sum) - stirling(large)
	return diff - lgamma(small)
}

func lgamma(x float64) float64 {
	v, _ := math.Lgamma(x)
	return v
}

// fraction returns 1 divided by the continued fraction in DLMF 8.17.22. The factor
// x^a(1−x)^b/(a·B(a, b)) before the fraction is left out.
func fraction(x, a, b float64) float64 {
	const tiny = 1e-300
	f, c, d := 1.0, 1.0, 0.0
	// The fraction converges in O(√max(a, b)) terms. The limit of the loop only guards against
	// mistakes.
	for i := 0; i < 1_000_000; i++ {
		m := float64(i / 2)
		var num float64
		switch {
		case i == 0:
			num = 1
		case i%2 == 0:
			num = m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		default:
			num = -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		}
		d = 1 + num*d
		if math.Abs(d) < tiny {
			d = tiny
		}
		d = 1 / d
		c = 1 + num/c
		if math.Abs(c) < tiny {
			c = tiny
		}
		f *= c * d
		if math.Abs(c*d-1) < 1e-15 {
			break
		}
	}
	// The loop's first step added 1 divided by the fraction, so f is 1 + 1/fraction.
	return 1 / (f - 1)
}
