package report

import (
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
