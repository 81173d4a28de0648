package metric

import "slices"

// There are about a hundred gaps for each request, with few different lengths in
// whole microseconds. Counting them is much faster than sorting.

// manyGaps is the number of gaps from which counting is faster.
const manyGaps = 1 << 12

// tally counts lengths in microseconds. Longer lengths are kept separately.
type tally struct {
	least uint32
	count []uint32
	long  []uint32
}

// tallyOf has room for n gaps between least and most.
func tallyOf(n int, least, most uint32) tally {
	return tally{least: least, count: make([]uint32, min(int(most-least)+1, 2*n))}
}

func (t *tally) add(us uint32) {
	if at := int(us - t.least); at < len(t.count) {
		t.count[at]++
	} else {
		t.long = append(t.long, us)
	}
}

// seconds returns all n lengths in ascending order.
func (t *tally) seconds(n int) []float64 {
	out := make([]float64, n)
	rest := out
	for at, n := range t.count {
		if n == 0 {
			continue
		}
		v := float64(t.least+uint32(at)) / 1e6
		for i := range rest[:n] {
			rest[i] = v
		}
		rest = rest[n:]
	}
	slices.Sort(t.long)
	for i, us := range t.long {
		rest[i] = float64(us) / 1e6
	}
	return out
}
