package stat

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// mostFlips is the largest number of sign patterns that are tried. Up to n = 12 units, all 2^n
// patterns are tried.
const mostFlips = 1 << 12

// Flips returns a p-value for each of several quantities. All quantities are measured in the same
// units, which are rounds. The p-value is the chance that any quantity is at least as far above 0
// as this one, if no quantity is truly above 0.
//
// The p-values are adjusted for the number of quantities. The method is step-down max-t (Westfall
// and Young, Resampling-Based Multiple Testing, 1993, algorithm 4.1) with random flips of signs.
// The signs of all values of a unit flip together, so quantities that agree count as one test.
//
// Flips assumes that units are independent. It also assumes that a value is as likely to be above
// its mean as below it.
//
// quantities[j][i] is quantity j in unit i. All quantities have the same number of units. With n
// units the smallest possible p is 2^-n, or 2^-12 if n is larger than 12. p is 1 for a quantity
// without finite values, and if all values of the quantity are equal and not above 0.
func Flips(quantities [][]float64) []float64 {
	p, order := make([]float64, len(quantities)), make([]int, len(quantities))
	scaled, observed := make([][]float64, len(quantities)), make([]float64, len(quantities))
	n := 0
	for j, x := range quantities {
		order[j], p[j] = j, 1
		n = max(n, len(x))
		scaled[j], observed[j] = studentized(x)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(observed[b], observed[a]) })
	// reached[k] counts the sign patterns under which quantity k, or a later quantity in the order,
	// is at least as large as quantity k was measured.
	reached, flips := make([]int, len(order)), 0
	for signs := range turned(n) {
		flips++
		largest := math.Inf(-1)
		for k := len(order) - 1; k >= 0; k-- {
			if x := scaled[order[k]]; x != nil {
				sum := 0.0
				for i, v := range x {
					if signs>>i&1 == 1 {
						v = -v
					}
					sum += v
				}
				largest = max(largest, sum)
			}
			if largest >= observed[order[k]]-1e-12 {
				reached[k]++
			}
		}
	}
	least := 0.0
	for k, j := range order {
		if scaled[j] == nil {
			continue
		}
		least = max(least, float64(reached[k])/float64(flips))
		p[j] = least
	}
	return p
}

// studentized divides values by the root of the sum of their squares, and returns the results and
// their sum. Flipping signs does not change the root, so the t statistic grows with this sum.
//
// Values with a mean below 0 are first shifted to mean 0. Otherwise flipping their signs would put
// them far above 0 and hide other quantities. studentized returns nil and -Inf if a value is not
// finite, or if the values are all 0 after the shift.
func studentized(x []float64) (scaled []float64, sum float64) {
	mean, _ := Moments(x)
	moved := min(mean, 0)
	squares := 0.0
	for _, v := range x {
		squares += (v - moved) * (v - moved)
	}
	if !(squares > 0) || math.IsInf(squares, 0) {
		return nil, math.Inf(-1)
	}
	root := math.Sqrt(squares)
	for _, v := range x {
		scaled = append(scaled, (v-moved)/root)
	}
	return scaled, mean * float64(len(x)) / root
}

// turned yields patterns of signs for n units. Bit i of a pattern is set if the sign of unit i is
// flipped. If there are few patterns, it yields all of them. Otherwise it yields a fixed sample
// that includes the pattern without flips.
func turned(n int) func(yield func(uint64) bool) {
	return func(yield func(uint64) bool) {
		if n < 64 && 1<<n <= mostFlips {
			for signs := range uint64(1) << n {
				if !yield(signs) {
					return
				}
			}
			return
		}
		r := rand.New(rand.NewPCG(uint64(n), 0xf11b5))
		for i := range mostFlips {
			signs := r.Uint64()
			if i == 0 {
				signs = 0
			}
			if !yield(signs) {
				return
			}
		}
	}
}
