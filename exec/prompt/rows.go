package prompt

import (
	"math/rand/v2"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/traffic"
)

// Rows is an iterator over the rows of a data set, for one start of a server. It is not safe for
// concurrent use.
type Rows struct {
	set    *traffic.Dataset
	order  []int
	shares []float64
	used   []bool // rows that were returned
	fits   []fit  // how each row of order gets its length; nil if rows are sent as they are
}

// NewRows returns the rows of set in their order. If shuffled, the seed decides the order.
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

// byBytes bounds the number of tokens of a part of a prompt. The part's share of the tokens is at
// most byBytes times its share of the bytes.
const byBytes = 1.25

// Prompt returns the prompt of a request. The argument number counts the server's requests with the
// same purpose, from 0.
//
// Measured requests take the rows in order, and repeat a row only after all rows were sent. Other
// requests, such as warm-up, take rows from the end.
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
		// No other row has the text that was removed from this prompt. So the text shared with
		// other rows is now a larger share of the prompt.
		share *= max(1, float64(whole)/float64(p.Bytes()))
	}
	p.Row, p.Shared = i+1, min(share, 1)
	if r.used[i] {
		p.Shared = 1
	}
	r.used[i] = true
	return p
}

// Of returns the prompt that is sent for a row.
func Of(row *traffic.Row) client.Prompt {
	return client.Prompt{Text: row.Prompt, Messages: row.Messages, Output: row.MaxTokens, Fields: row.Fields()}
}
