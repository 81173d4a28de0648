package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// Three requests of two rounds: 100, 200 and 400 ms to the first chunk, then 10, 10 and 0 tokens
// more at 10, 20 and 0 ms, in 2, 1 and 0 further chunks. A failed request, a warm-up and one without usage do not count.
func TestVLLMBench(t *testing.T) {
	const ms = time.Millisecond
	one := func(sent, first, last time.Duration, out int, gaps ...uint32) *metric.Sample {
		return &metric.Sample{Phase: metric.Measured, Sent: sent, First: first, Last: last, End: last + 5*ms, Usage: &metric.Usage{Input: 50, Output: out},
			Chunks: 1 + len(gaps), Gaps: gaps, Finish: "length"}
	}
	failed, warm, bare := one(0, 1, 2, 9), one(0, 1, 2, 9), one(0, 1, 2, 9)
	failed.Failure, warm.Phase, bare.Usage = &metric.Failure{Kind: metric.FailStatus}, metric.Warmup, nil
	rounds := []*metric.Round{
		{Samples: []*metric.Sample{one(1000*ms, 1100*ms, 1200*ms, 11, 40e3, 60e3), one(1000*ms, 1200*ms, 1400*ms, 11, 200e3), failed, warm, bare}},
		{Index: 1, Samples: []*metric.Sample{one(3000*ms, 3400*ms, 3400*ms, 1)}},
	}
	// Rounds take 0.4 + 0.4 s: 3 / 0.8 requests, 23 / 0.8 and 173 / 0.8 tokens a second. The p99 of
	// three values is at place 1.98 of 0 to 2.
	want := &VLLMBench{
		Completed: 3, Duration: 0.8, RequestThroughput: 3.75, OutputThroughput: 28.75, TotalThroughput: 216.25,
		TTFT: Spread{700.0 / 3, 200, 200 + 0.98*200},
		TPOT: Spread{15, 15, 10 + 0.99*10},
		ITL:  Spread{100, 60, 60 + 0.98*140},
		E2EL: Spread{(200 + 400 + 400) / 3.0, 400, 400},
	}
	got := vllmBench(&metric.Level{Kind: metric.ClosedLoop, Rounds: rounds})
	must.Same(t, "rounds (-want +got)", want, got, cmpopts.EquateApprox(1e-9, 0))
	// As batches of one window they take the 2.4 s from the first to the last.
	if got := vllmBench(&metric.Level{Kind: metric.ClosedLoop, Batches: true, Rounds: rounds}); got.Duration != 2.4 || got.RequestThroughput != 1.25 {
		t.Errorf("a window: %+v", got)
	}
	// A batch that was disturbed is a part of its window, also for the gaps.
	if got := vllmBench(&metric.Level{Kind: metric.ClosedLoop, Batches: true, Rounds: rounds[1:], Voided: rounds[:1]}); got.Completed == 3 {
		must.Same(t, "gaps with a batch that was disturbed (-want +got)", want.ITL, got.ITL, cmpopts.EquateApprox(1e-9, 0))
	} else {
		t.Errorf("with a batch that was disturbed: %+v", got)
	}
	if got := vllmBench(&metric.Level{Kind: metric.ClosedLoop, Rounds: []*metric.Round{{Samples: []*metric.Sample{failed}}}}); got != nil {
		t.Errorf("of nothing: %+v", got)
	}
}
