package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/tokgate/tokgate/metric"
)

// rowsOf sums up the rows of a data set that the requests sent. It returns nil if no request had a
// row.
func rowsOf(samples []*metric.Sample) *Rows {
	var out Rows
	seen := map[int]bool{}
	var prompts, answers []int
	for _, s := range samples {
		if s.Row == 0 {
			continue
		}
		seen[s.Row] = true
		if s.Shared >= 1 {
			out.Again++
		}
		if s.Completed() && s.Usage != nil {
			prompts, answers = append(prompts, s.Usage.Input), append(answers, s.Usage.Output)
		}
	}
	out.Sent, out.Prompt, out.Answer = len(seen), lengthsOf(prompts), lengthsOf(answers)
	if out.Sent == 0 {
		return nil
	}
	return &out
}

func lengthsOf(list []int) Lengths {
	if len(list) == 0 {
		return Lengths{}
	}
	slices.Sort(list)
	at := func(p float64) int { return list[max(int(math.Ceil(p*float64(len(list))))-1, 0)] }
	return Lengths{at(0.05), at(0.5), at(0.95)}
}

// RowHead is the header row of the table that RowRows writes.
var RowHead = []string{"Level", "Rows", "Again", "Prompt p5", "p50", "p95", "Answer p5", "p50", "p95"}

// RowRows returns a table row for each case that sent rows of a data set. It returns nil if no case
// did.
func RowRows(cases []*Case) (rows [][]string) {
	for _, c := range cases {
		if c.Rows == nil {
			continue
		}
		row := []string{c.Level}
		for _, n := range []int{
			c.Rows.Sent, c.Rows.Again, c.Rows.Prompt.P5, c.Rows.Prompt.P50, c.Rows.Prompt.P95,
			c.Rows.Answer.P5, c.Rows.Answer.P50, c.Rows.Answer.P95,
		} {
			row = append(row, fmt.Sprint(n))
		}
		rows = append(rows, row)
	}
	return rows
}
