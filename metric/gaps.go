package metric

import "slices"

// manyGaps is the number of gaps from which counting them is faster than sorting them.
const manyGaps = 1 << 12

// tally counts how often each gap occurs, in microseconds. Gaps too long for its table are kept in
// a list.
type tally struct {
	least uint32
	count []uint32
	long  []uint32
}

// tallyOf returns an empty tally for n gaps, each of least to most microseconds.
func tallyOf(n int, least, most uint32) tally {
	return tally{least: least, count: make([]uint32, min(int(most-least)+1, 2*n))}
}

func (t *tally) add(us uint32, times int) {
	if at := int(us - t.least); at < len(t.count) {
		t.count[at] += uint32(times)
		return
	}
	for range times {
		t.long = append(t.long, us)
	}
}

// seconds returns the different gaps in seconds, in order. They are the fields Values and Until of
// a distribution.
func (t *tally) seconds() (values []float64, until []int) {
	different, n := len(t.long), 0
	for _, times := range t.count {
		if times > 0 {
			different++
		}
	}
	values, until = make([]float64, 0, different), make([]int, 0, different)
	put := func(us uint32, times int) {
		n += times
		values, until = append(values, float64(us)/1e6), append(until, n)
	}
	for at, times := range t.count {
		if times > 0 {
			put(t.least+uint32(at), int(times))
		}
	}
	slices.Sort(t.long)
	for _, us := range t.long {
		put(us, 1)
	}
	return values, until
}
