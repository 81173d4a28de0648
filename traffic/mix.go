package traffic

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// Shares are those of the parts of a mix, in units of which Whole are all.
type Shares []int

// Whole is the sum of the shares of a mix: a share is a whole number of millionths.
const Whole = 1_000_000

// Counts is how many of a round's n requests are of each part, after rounds that
// gave so many to each: one off the part's share of the round at most, and of the
// requests of all rounds so far less than one, so that over a level whose requests
// the shares divide they are exact.
//
// What is due to a part until now is rounded down or up. Up are first those that
// would fall more than one short in this round, last those that would get more than
// one too many, and else the largest remainders; of equal ones the first.
func (s Shares) Counts(given []int, n int) []int {
	before := 0
	for _, g := range given {
		before += g
	}
	type part struct{ index, rank, rest int }
	counts, parts, left := make([]int, len(s)), make([]part, len(s)), n
	for i, share := range s {
		due := share*(before+n) - Whole*given[i] // in millionths of a request
		whole := max(due/Whole, 0)
		p := part{index: i, rest: due - whole*Whole}
		switch off := whole*Whole - share*n; {
		case p.rest <= 0:
			p.rank = 3 // it has all that is due, or more
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
	for i := len(parts) - 1; left < 0; i-- { // more was due to some than there is
		if p := parts[(i+len(parts))%len(parts)].index; counts[p] > 0 {
			counts[p]--
			left++
		}
	}
	return counts
}

// Order is the part of each request of a round that has so many of each: the round
// is cut into strata, each with its share of every part, and the order within a
// stratum is random. A stratum has about one request of the rarest part.
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

// Stratum is how many requests have one of the rarest part: by so many a sequence
// of unknown length is drawn.
func (s Shares) Stratum() int { return (Whole + slices.Min(s) - 1) / slices.Min(s) }
