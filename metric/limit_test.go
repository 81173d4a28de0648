package metric

import (
	"testing"
	"time"
)

// A request in flight at the limit of a leg counts as if its last token had come just then.
func TestAtLimit(t *testing.T) {
	canceled := &Failure{Kind: FailCanceled}
	r := &Round{Due: 10, Limit: 9 * time.Second, Stopped: "its leg reached its limit", Samples: []*Sample{
		// 8 tokens in 4 chunks: two tokens a chunk.
		{Phase: Measured, Sent: time.Second, First: 2 * time.Second, Last: 5 * time.Second, End: 5 * time.Second, Chunks: 4, Gaps: Gaps{1e6, 1e6, 1e6}, Usage: &Usage{Output: 8}},
		{Phase: Measured, Sent: time.Second, First: 2 * time.Second, Last: 4 * time.Second, End: 10 * time.Second, Chunks: 2, Gaps: Gaps{2e6}, InputAsked: 5, Failure: canceled},
		{Phase: Measured, Sent: 5 * time.Second, End: 10 * time.Second, Failure: canceled},
		{Phase: Filler, Sent: 5 * time.Second, End: 10 * time.Second, Failure: canceled},
	}}
	at := r.AtLimit()
	if !at.Complete || at.Due != 3 || at.Stopped != "" || len(at.Samples) != 4 || r.Samples[1].Failure == nil {
		t.Fatalf("%+v", at)
	}
	for i, want := range []struct{ ttft, e2e, tpot float64 }{
		{1, 4, 3.0 / 7},
		{1, 9, 8.0 / 5}, // 3 chunks of two tokens; the last came 8 s after the first
		{5, 5, 0},
	} {
		s := at.Samples[i]
		ttft, _ := s.Value("ttft")
		e2e, _ := s.Value("e2e")
		if tpot, _ := s.Value("tpot"); ttft != want.ttft || e2e != want.e2e || tpot != want.tpot || !s.Completed() {
			t.Errorf("%d: ttft %v, e2e %v, tpot %v, want %+v", i, ttft, e2e, tpot, want)
		}
	}
	if at.Samples[3].Completed() {
		t.Error("a filler counts as ended")
	}
	if whole := (&Round{Due: 3}); whole.AtLimit() != whole {
		t.Error("a round without a limit changed")
	}
	if l := (&Level{Rounds: []*Round{{}, r}}); len(l.Overran()) != 1 {
		t.Error(l.Overran())
	}
}
