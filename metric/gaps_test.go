package metric

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tokgate/tokgate/internal/must"
)

// UnmarshalJSON of Gaps accepts and refuses the same lists of numbers as encoding/json does for a
// list of whole numbers.
func FuzzGaps(f *testing.F) {
	for _, text := range []string{"[]", "[ ]", "null", "[0]", "[1, 22 ,4294967295]", "[4294967296]", "[-1]", "[1.0]", "[1e3]", "[01]", "[null]", `["1"]`, "[[1]]", "{}", "7", "[1,]", "[,1]"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want []uint32
		var got Gaps
		wantErr, err := json.Unmarshal(raw, &want), json.Unmarshal(raw, &got)
		if err != nil {
			return // Gaps may be stricter: it refuses a null in the list, which []uint32 reads as 0
		}
		diff := cmp.Diff(Gaps(want), got)
		must.Hold(t, diff == "" && wantErr == nil, "%s: %v (-numbers +gaps):\n%s", raw, wantErr, diff)
	})
}

func TestGapsRead(t *testing.T) {
	for raw, want := range map[string]Gaps{"[]": {}, "null": nil, "[0]": {0}, "[1, 22 ,4294967295]": {1, 22, 1<<32 - 1}} {
		var got Gaps
		err := json.Unmarshal([]byte(raw), &got)
		must.Hold(t, err == nil && cmp.Equal(got, want), "%s: %v, %v", raw, got, err)
	}
	for _, raw := range []string{"[4294967296]", "[-1]", "[1.0]", "[1e3]", "[null]", `["1"]`, "[[1]]", "{}", "7"} {
		var got Gaps
		err := json.Unmarshal([]byte(raw), &got)
		must.Hold(t, err != nil, "%s was read as %v", raw, got)
	}
}

// Sorting gaps by counting and sorting them by comparison give the same order.
func TestGapsInOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	itl := MustLookup("itl")
	for _, longest := range []uint32{1, 1000, 5_000_000, 1<<32 - 1} {
		for _, n := range []int{0, 1, 5000, 20_000} {
			var samples []*Sample
			var want []float64
			var parts []Distribution
			for len(want) < n {
				s := &Sample{Chunks: 1}
				for range min(n-len(want), 700) {
					us := rng.Uint32N(min(longest, 50_000))
					if rng.IntN(100) == 0 {
						us = rng.Uint32N(longest)
					}
					s.Gaps = append(s.Gaps, us)
					want = append(want, float64(us)/1e6)
				}
				samples = append(samples, s)
				parts = append(parts, Of(itl, []*Sample{s}))
			}
			slices.Sort(want)
			got := allValues(Of(itl, samples))
			must.Hold(t, slices.Equal(want, got), "%d gaps of up to %d µs are not in order", n, longest)
			var pool Distribution
			pool.Values, pool.Until = itl.Pool(parts)
			if got := allValues(pool); !slices.Equal(want, got) {
				t.Errorf("lists of %d gaps of up to %d µs are not in order together", n, longest)
			}
		}
	}
}

// allValues returns all observations one by one. It returns nil if the distribution's ranks or mean
// disagree with these values.
func allValues(d Distribution) []float64 {
	var out []float64
	for rank := range d.Count() {
		out = append(out, d.Rank(rank+1))
	}
	plain := Distribution{Values: out}
	a, _ := d.Mean()
	if b, _ := plain.Mean(); a != b || !math.IsInf(d.Rank(0), -1) || !math.IsInf(d.Rank(len(out)+1), 1) {
		return nil
	}
	return out
}
