package prompt

import (
	"math/rand/v2"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/traffic"
)

// Rows returns the rows of a data set for one start of a server. It is not safe for
// concurrent use.
type Rows struct {
	set    *traffic.Dataset
	order  []int
	shares []float64
	used   []bool // rows that were returned
	fits   []fit  // how each row gets its length, by place in the order; nil if rows keep theirs
}

// NewRows returns the rows of set in their order, or shuffled by a seed.
func NewRows(set *traffic.Dataset, shuffled bool, seed int64) *Rows {
	r := &Rows{set: set, order: make([]int, len(set.Rows)), shares: set.Shares(), used: make([]bool, len(set.Rows))}
	for i := range r.order {
		r.order[i] = i
	}
	if shuffled {
		rand.New(rand.NewPCG(uint64(seed), uint64(len(r.order)))).Shuffle(len(r.order), func(i, j int) {
			r.order[i], r.order[j] = r.order[j], r.order[i]
		})
	}
	return r
}

// byBytes bounds an estimate: a part's share of a prompt's tokens is at most byBytes times its
// share of the prompt's bytes.
const byBytes = 1.25

// Prompt returns the prompt of a request. Measured requests are numbered from 0 over all that
// the server gets. No row is repeated before every row was sent. Requests that are not measured
// get rows from the end of the order.
func (r *Rows) Prompt(phase metric.Phase, number int) client.Prompt {
	n := len(r.order)
	if number %= n; phase != metric.Measured {
		number = n - 1 - number
	}
	i := r.order[number]
	p, share := Of(&r.set.Rows[i]), byBytes*r.shares[i]
	if r.fits != nil {
		whole := p.Bytes()
		p = r.fitted(number, r.fits[number])
		// The text that was cut off is not shared with other rows. So the same shared text is
		// a larger share of the shorter prompt.
		share *= max(1, float64(whole)/float64(p.Bytes()))
	}
	p.Row, p.Shared = i+1, min(share, 1)
	if r.used[i] {
		p.Shared = 1
	}
	r.used[i] = true
	return p
}

// Of returns a row as it is sent.
func Of(row *traffic.Row) client.Prompt {
	return client.Prompt{Text: row.Prompt, Messages: row.Messages, Output: row.MaxTokens, Fields: row.Fields()}
}
