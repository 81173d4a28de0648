package search_test

import (
	"fmt"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/search"
)

// The example finds how many requests in flight keep TTFT below 8 s. Each of them makes TTFT 0.2 s
// longer.
func Example() {
	s := search.New(search.Options{UpTo: 128, Begin: 8, Require: 30, Confirm: true})
	for p, ok := s.Next(); ok; p, ok = s.Next() {
		ttft := 0.2 * float64(p.N)
		r := search.Result{
			N: p.N, Outcome: metric.Pass, Requests: p.Looks[0], Binding: "ttft",
			Margins: []search.Margin{{Threshold: "ttft", Log: ttft/8 - 1, Shown: fmt.Sprintf("%.1f s", ttft)}},
		}
		if ttft >= 8 {
			r.Outcome = metric.Fail
		}
		fmt.Println(p.Purpose, p.N, r.Outcome)
		s.Report(p, r)
	}
	var c metric.Capacity
	s.Limit().Fill(&c)
	fmt.Println(c.Line)
	// Output:
	// require 30 pass
	// ladder 60 fail
	// bisect 45 fail
	// bisect 37 pass
	// bisect 41 fail
	// bisect 39 pass
	// bisect 40 fail
	// check 15 pass
	// confirm 39 pass
	// 39 requests in flight · limited by ttft: 7.8 s at 39, 8.0 s at 40
}
