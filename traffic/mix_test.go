package traffic

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tokgate/tokgate/internal/must"
)

// Counts divides the requests of a round among three parts with the shares 70, 25 and 5 %. It takes
// the counts of earlier rounds into account.
func TestCounts(t *testing.T) {
	shares := Shares{700_000, 250_000, 50_000}
	for _, tc := range []struct {
		name  string
		given []int
		n     int
		want  []int
	}{
		{"a whole stratum", []int{0, 0, 0}, 20, []int{14, 5, 1}},
		{"half of one: 7, 2.5 and 0.5; of equal remainders the first", []int{0, 0, 0}, 10, []int{7, 3, 0}},
		{"the other half: 14 − 7, 5 − 3, 1 − 0", []int{7, 3, 0}, 10, []int{7, 2, 1}},
		{"one request", []int{0, 0, 0}, 1, []int{1, 0, 0}},
		{"none", []int{14, 5, 1}, 0, []int{0, 0, 0}},
		{"a level of 1,000", []int{0, 0, 0}, 1000, []int{700, 250, 50}},
	} {
		got := shares.Counts(tc.given, tc.n)
		must.Hold(t, slices.Equal(got, tc.want), "%s: %v, want %v", tc.name, got, tc.want)
	}
}

// Each part of a mix gets about its share of the requests, whatever the shares and rounds. The
// error is at most one request in each round, and less than one over all rounds so far. It is 0 if
// the shares divide the number of requests.
func TestCountsHoldTheShares(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		shares := randomShares(random)
		given, total := make([]int, len(shares)), 0
		size := 1 + random.IntN(60)
		for round := range 1 + random.IntN(12) {
			n := size + random.IntN(2)
			counts := shares.Counts(given, n)
			sum := 0
			for i, c := range counts {
				sum += c
				given[i] += c
				off := c*Whole - shares[i]*n
				must.Need(t, c >= 0 && off <= Whole && off >= -Whole, "shares %v: round %d of %d has %v", shares, round, n, counts)
			}
			if total += n; sum != n {
				t.Fatalf("shares %v: round %d of %d has %v", shares, round, n, counts)
			}
			for i, g := range given {
				off := g*Whole - shares[i]*total
				must.Need(t, off < Whole && off > -Whole, "shares %v: %v of %d requests so far", shares, given, total)
			}
		}
	}
}

func randomShares(random *rand.Rand) Shares {
	shares, left := Shares{}, 200
	for range 1 + random.IntN(5) {
		if left < 3 {
			break
		}
		x := 1 + random.IntN(left-1)
		shares, left = append(shares, x*Whole/200), left-x
	}
	return append(shares, left*Whole/200)
}

// The order of requests keeps the shares of a mix's three parts: 14, 5 and 1 in each 20 requests.
// The order of each 20 requests depends on the seed.
func TestOrder(t *testing.T) {
	counts := []int{70, 25, 5}
	order := Order(counts, rand.New(rand.NewPCG(1, 0)))
	for k := range 5 {
		got := make([]int, 3)
		for _, part := range order[20*k : 20*k+20] {
			got[part]++
		}
		want := []int{14, 5, 1}
		must.Hold(t, slices.Equal(got, want), "stratum %d has %v, want %v", k, got, want)
	}
	again := Order(counts, rand.New(rand.NewPCG(1, 0)))
	must.Hold(t, cmp.Equal(order, again), "the same seed gives another order")
	other := Order(counts, rand.New(rand.NewPCG(2, 0)))
	must.Hold(t, !cmp.Equal(order, other), "another seed gives the same order")
	got := Order([]int{0, 3, 0}, rand.New(rand.NewPCG(1, 0)))
	must.Hold(t, slices.Equal(got, []int{1, 1, 1}), "a round of one part: %v", got)
	if got := (Shares{700_000, 250_000, 50_000}).Stratum(); got != 20 {
		t.Errorf("a stratum of 70, 25 and 5%% has %d requests, want 20", got)
	}
}
