package metric

import (
	"math"
	"slices"
)

// Gaps are many, a hundred for each request, and of few different lengths in whole
// microseconds: they are counted, which is much faster than sorting them.

// manyGaps is from how many on that pays.
const manyGaps = 1 << 12

// tally counts lengths in microseconds. Those that are too long for it stand apart.
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

// seconds puts all n in ascending order.
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

// gapsOf are the gaps of the requests that were not canceled, in seconds and ascending.
func gapsOf(samples []*Sample) []float64 {
	n, least, most := 0, uint32(math.MaxUint32), uint32(0)
	for _, s := range samples {
		if s.Canceled() {
			continue
		}
		n += len(s.Gaps)
		for _, us := range s.Gaps {
			least, most = min(least, us), max(most, us)
		}
	}
	if n < manyGaps {
		out := make([]float64, 0, n)
		for _, s := range samples {
			if s.Canceled() {
				continue
			}
			for _, us := range s.Gaps {
				out = append(out, float64(us)/1e6)
			}
		}
		slices.Sort(out)
		return out
	}
	t := tallyOf(n, least, most)
	for _, s := range samples {
		if s.Canceled() {
			continue
		}
		for _, us := range s.Gaps {
			t.add(us)
		}
	}
	return t.seconds(n)
}

// Pool joins observations of the metric, each list in ascending order.
func (d Def) Pool(lists [][]float64) []float64 {
	n, least, most := 0, math.Inf(1), 0.0
	for _, list := range lists {
		if n += len(list); len(list) > 0 {
			least, most = min(least, list[0]), max(most, list[len(list)-1])
		}
	}
	if d.Scope != PerGap || n < manyGaps {
		out := slices.Concat(lists...)
		slices.Sort(out)
		return out
	}
	t := tallyOf(n, micros(least), micros(most))
	for _, list := range lists {
		for _, v := range list {
			t.add(micros(v))
		}
	}
	return t.seconds(n)
}

// micros undoes the division of a gap by a million.
func micros(seconds float64) uint32 { return uint32(int64(seconds*1e6 + 0.5)) }
