package prompt

import (
	"context"
	"errors"
	"slices"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/traffic"
)

// mostCounted bounds how many rows of a data set have their tokens counted. The longest rows are
// counted.
const mostCounted = 256

// TooLong returns the first row of a data set, by line, whose text has more tokens than room
// allows. It also returns the number of tokens. It returns nil if none of the longest rows is
// too long, or if the server has no tokenizer to ask. A row with fewer bytes than room allows
// tokens is not counted, because a token has at least one byte.
func TooLong(ctx context.Context, o Options, set *traffic.Dataset, room func(*traffic.Row) int) (row *traffic.Row, tokens int, err error) {
	var rows []*traffic.Row
	var texts []string
	for i := range set.Rows {
		r := &set.Rows[i]
		if len(r.Prompt)+len(r.Messages) <= room(r) {
			continue
		}
		if text := r.Text(); len(text) > room(r) {
			rows, texts = append(rows, r), append(texts, text)
		}
	}
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(texts[b]) - len(texts[a]) })
	order = order[:min(len(order), mostCounted)]
	counts := make([]int, len(order))
	count := patient(o.Tokenizer, "the tokenizer")
	q := &questions{ctx: ctx}
	q.each(len(order), thorough.atOnce, func(i int) (err error) {
		counts[i], err = count(ctx, client.Prompt{Text: texts[order[i]]})
		return err
	})
	if errors.Is(q.err, client.ErrNoTokenizer) {
		return nil, 0, nil
	}
	for i, n := range counts {
		if of := rows[order[i]]; n > room(of) && (row == nil || of.Line < row.Line) {
			row, tokens = of, n
		}
	}
	return row, tokens, q.err
}
