package stat

import (
	"math"
	"math/rand/v2"
	"slices"
)

// mostFlips is how many of the 2^n ways to turn the signs of n units are looked
// at; all of them up to 12 units.
const mostFlips = 1 << 12

// Flips gives for each of several quantities that were measured in the same
// units (rounds) how surely its mean is above 0: the chance that any of them
// came out so far above it if none were, which is the p-value adjusted for all
// of them (step-down max-t: Westfall and Young, Resampling-Based Multiple
// Testing, 1993, algorithm 4.1, with the signs of whole units turned at random).
// A unit's signs are turned together, so that quantities which say the same
// count as one test. It assumes that units are independent of each other, and
// as likely above their mean as below.
//
// quantities[j][i] is quantity j in unit i; all have as many units. The least p
// is 2^-n. 1 for a quantity that has no finite or no spread of values and is not
// above 0.
func Flips(quantities [][]float64) []float64 {
	p := make([]float64, len(quantities))
	scaled := make([][]float64, len(quantities))
	observed := make([]float64, len(quantities))
	order := make([]int, len(quantities))
	n := 0
	for j, x := range quantities {
		order[j], p[j] = j, 1
		n = max(n, len(x))
		// The sum of squares does not change with signs, so that t grows with
		// the sum over its root.
		sum, squares := 0.0, 0.0
		for _, v := range x {
			sum, squares = sum+v, squares+v*v
		}
		observed[j] = math.Inf(-1)
		if squares > 0 && !math.IsInf(squares, 0) {
			scaled[j] = make([]float64, len(x))
			for i, v := range x {
				scaled[j][i] = v / math.Sqrt(squares)
			}
			observed[j] = sum / math.Sqrt(squares)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case observed[a] > observed[b]:
			return -1
		case observed[a] < observed[b]:
			return 1
		}
		return 0
	})
	// reached[k] counts the flips in which the largest of those that are no
	// further than the k-th reaches it.
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

// turned yields which of n units have their signs turned, as bits: all ways, or
// a sample that is the same each time and holds the units as they are.
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
