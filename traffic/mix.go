package traffic

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// Shares holds the share of each part of a mix. The shares add up to Whole.
type Shares []int

// Whole is the sum of the shares of a mix. Each share is a whole number of millionths.
const Whole = 1_000_000

// Counts returns how many of a round's n requests each part gets. given is the number of requests
// that each part got in earlier rounds.
//
// In one round, a part's count differs from its share by at most one request. Over all rounds so
// far it differs by less than one request. So the shares are exact at the end of a level if they
// divide its number of requests.
//
// The number of requests that a part should have by now is rounded down or up. Parts that would be
// more than one request short in this round are rounded up first. Then come the parts with the
// largest remainders. Parts that would get more than one request too many come last. Of equal parts
// the first one wins.
func (s Shares) Counts(given []int, n int) []int {
	before := 0
	for _, g := range given {
		before += g
	}
	type part struct{ index, rank, rest int }
	counts, parts, left := make([]int, len(s)), make([]part, len(s)), n
	for i, share := range s {
		due := share*(before+n) - Whole*given[i] // number of requests due, in millionths
		whole := max(due/Whole, 0)
		p := part{index: i, rest: due - whole*Whole}
		switch off := whole*Whole - share*n; {
		case p.rest <= 0:
			p.rank = 3 // rounding up would give this part more than its share
		case off < -Whole:
			p.rank = 0
		case off > 0:
			p.rank = 2
		default:
			p.rank = 1
		}
		counts[i], parts[i] = whole, p
		left -= whole
	}
	slices.SortStableFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.rest, a.rest))
	})
	for i := 0; left > 0; i++ {
		counts[parts[i%len(parts)].index]++
		left--
	}
	for i := len(parts) - 1; left < 0; i-- { // if the total is too large, reduce the last parts
		if p := parts[(i+len(parts))%len(parts)].index; counts[p] > 0 {
			counts[p]--
			left++
		}
	}
	return counts
}

// Order returns the part of each request in a round. counts is the number of requests of each part.
//
// The round is divided into strata. Each stratum has the right share of every part, and about one
// request of the rarest part. Within a stratum the order is random.
func Order(counts []int, random *rand.Rand) []int {
	n, rarest := 0, 0
	for _, c := range counts {
		n += c
		if c > 0 && (rarest == 0 || c < rarest) {
			rarest = c
		}
	}
	out := make([]int, 0, n)
	for k := range rarest {
		from := len(out)
		for part, c := range counts {
			for range c*(k+1)/rarest - c*k/rarest {
				out = append(out, part)
			}
		}
		stratum := out[from:]
		random.Shuffle(len(stratum), func(i, j int) { stratum[i], stratum[j] = stratum[j], stratum[i] })
	}
	return out
}

// Stratum returns the size of a block of the mix in which the rarest part has about one request. A
// sequence of unknown length is made of blocks of this size.
func (s Shares) Stratum() int { return (Whole + slices.Min(s) - 1) / slices.Min(s) }
