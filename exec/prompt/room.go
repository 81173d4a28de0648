package prompt

import (
	"context"
	"errors"
	"slices"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/traffic"
)

// mostCounted is the largest number of rows of a data set whose tokens are counted. These are the
// longest rows.
const mostCounted = 256

// TooLong returns the first row of a data set that has too many tokens, and their number. The
// function room returns the number of tokens that a row may have. Only the longest rows are
// counted. TooLong returns nil if no counted row is too long, or if the server has no tokenizer.
func TooLong(ctx context.Context, o Options, set *traffic.Dataset, room func(*traffic.Row) int) (row *traffic.Row, tokens int, err error) {
	var rows []*traffic.Row
	var texts []string
	for i := range set.Rows {
		r := &set.Rows[i]
		last := r.Last()
		if len(last.Prompt)+len(last.Messages) <= room(r) {
			continue
		}
		if text := last.Text(); len(text) > room(r) {
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
