package stat

import "math"

// PairedShare bounds the change of a share between two answers to each of n items. The parameter
// lost is the number of items that were right before and are wrong now; won is the opposite. The
// change is (lost − won) / n, so a larger change is worse. The results low and high are one-sided
// bounds of the change, each at alpha, by the score interval of Tango (Statistics in Medicine
// 17:891, 1998).
//
// If all changes went in one direction, the score interval is too narrow: at n = 268 and a true
// change of 1 %, it errs in 6.8 % of cases instead of 5 %. The exact bound of Clopper and Pearson
// then applies too. The numbers may be fractions, if items count for less than one. ok is false for
// invalid numbers.
func PairedShare(lost, won, n, alpha float64) (low, high float64, ok bool) {
	if !(n > 0 && lost >= 0 && won >= 0 && lost+won <= n && alpha > 0 && alpha <= 0.5) {
		return 0, 0, false
	}
	upper := func(lost, won float64) float64 {
		return Bisect((lost-won)/n, 1, func(d float64) bool { return pairedBelow(lost, won, n, d, alpha) })
	}
	return -upper(won, lost), upper(lost, won), true
}

// pairedBelow reports whether the change is certainly below d, at confidence 1−alpha.
func pairedBelow(lost, won, n, d, alpha float64) bool {
	return pairedScore(lost, won, n, d) <= -NormalQuantile(1-alpha) && (won > 0 || atMost(lost, n, d) <= alpha)
}

// pairedScore returns how far the measured change is above d, in standard errors. Of m items, b
// were lost and c were won. The standard error assumes that the true change is d.
func pairedScore(b, c, m, d float64) float64 {
	// q is the most likely share of won items, if the true change is d.
	linear := -b - c + (2*m-b+c)*d
	q := (math.Sqrt(max(linear*linear+8*m*c*d*(1-d), 0)) - linear) / (4 * m)
	variance := m * (2*q + d*(1-d))
	if variance <= 0 {
		return math.Copysign(math.Inf(1), b-c-m*d)
	}
	return (b - c - m*d) / math.Sqrt(variance)
}

// PairedPower is the probability that n items certify a change below margin at alpha. The parameter
// disagree is the share of the items that change, half of them in each direction. The result is
// exact, as a sum over all outcomes.
func PairedPower(n int, disagree, margin, alpha float64) float64 {
	if n < 1 || !(disagree >= 0 && disagree < 1) {
		return 0
	}
	passes := func(lost, won int) bool {
		return pairedBelow(float64(lost), float64(won), float64(n), margin, alpha)
	}
	total, most := 0.0, -1
	chance := binomials(n, disagree)
	for k, p := range chance { // items that disagree
		if p < 1e-12 {
			continue
		}
		// Find how many of the k items that disagree may be lost, so that the test still passes.
		most = min(max(most, 0), k)
		for most < k && passes(most+1, k-most-1) {
			most++
		}
		for most >= 0 && !passes(most, k-most) {
			most--
		}
		if most < 0 {
			continue
		}
		sum := 0.0
		for lost, p := range binomials(k, 0.5) {
			if lost <= most {
				sum += p
			}
		}
		total += p * sum
	}
	return total
}

// binomials returns the probabilities of 0 to n successes in n trials. Those far from the mean, which are
// below 1e-12 together, are 0.
func binomials(n int, p float64) []float64 {
	out := make([]float64, n+1)
	all, _ := math.Lgamma(float64(n + 1))
	mean, far := float64(n)*p, 8*math.Sqrt(float64(n)*p*(1-p))+24
	for k := max(0, int(mean-far)); k <= min(n, int(mean+far)); k++ {
		a, _ := math.Lgamma(float64(k + 1))
		b, _ := math.Lgamma(float64(n - k + 1))
		log := all - a - b
		if k > 0 {
			log += float64(k) * math.Log(p)
		}
		if k < n {
			log += float64(n-k) * math.Log1p(-p)
		}
		out[k] = math.Exp(log)
	}
	return out
}

// PairedNeeded is the smallest number of items that certifies a change below margin with the given
// power. The parameter disagree is the share of items on which the two sides differ. If the number
// is above the limit most, ok is false.
func PairedNeeded(disagree, margin, alpha, power float64, most int) (n int, ok bool) {
	// Start below the normal approximation, z²·disagree/margin² items.
	z := NormalQuantile(1-alpha) + NormalQuantile(power)
	start := int(0.8 * z * z * disagree / (margin * margin))
	suffices := func(n int) bool { return PairedPower(n, disagree, margin, alpha) >= power }
	low, n := max(start, 1)-1, max(start, 1)
	for n <= most && !suffices(n) { // in steps of half a percent
		low, n = n, n+1+n/200
	}
	for low+1 < min(n, most+1) {
		if low++; suffices(low) {
			return low, true
		}
	}
	return n, n <= most
}
