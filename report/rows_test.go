package report

import (
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// The test sends 22 requests: rows 1 to 20, whose prompts have 10 to 200 tokens, and then rows 1
// and 2 again. The last request fails.
func TestRowsOf(t *testing.T) {
	var samples []*metric.Sample
	for i := range 22 {
		s := &metric.Sample{Row: i%20 + 1, Usage: &metric.Usage{Input: 10 * (i%20 + 1), Output: i%20 + 1}}
		if i >= 20 {
			s.Shared = 1
		}
		samples = append(samples, s)
	}
	samples[21].Failure = &metric.Failure{Kind: metric.FailStatus}
	// 21 requests completed, and two of them have 10 tokens. By nearest rank, p5 is the 2nd
	// smallest value, p50 the 11th and p95 the 20th.
	want := &Rows{Sent: 20, Again: 2, Prompt: Lengths{10, 100, 190}, Answer: Lengths{1, 10, 19}}
	must.Same(t, "", want, rowsOf(samples))
	got := rowsOf([]*metric.Sample{{}})
	must.Hold(t, got == nil, "%+v of no data set", got)
}
