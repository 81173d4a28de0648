package traffic

import (
	"bytes"
	"slices"
)

// key returns the text of a row in the order in which most servers read it: tools before messages.
func (r *Row) key() []byte {
	if r.Messages == nil {
		return append(bytes.Clone(r.Tools), r.Prompt...)
	}
	return slices.Concat(r.Tools, r.Messages)
}

// Shares returns for each row the length of its longest beginning that also begins a different row.
// The length is a share of the row's bytes; 1 means that a different row begins with the whole row.
func (d *Dataset) Shares() []float64 {
	keys, order := make([][]byte, len(d.Rows)), make([]int, len(d.Rows))
	for i := range d.Rows {
		keys[i], order[i] = d.Rows[i].key(), i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(keys[a], keys[b]) })
	shares := make([]float64, len(d.Rows))
	// Among the sorted rows, a row shares its longest beginning with a neighbour.
	for n := 1; n < len(order); n++ {
		a, b := order[n-1], order[n]
		same := 0
		for same < min(len(keys[a]), len(keys[b])) && keys[a][same] == keys[b][same] {
			same++
		}
		for _, i := range []int{a, b} {
			shares[i] = max(shares[i], float64(same)/float64(len(keys[i])))
		}
	}
	return shares
}
