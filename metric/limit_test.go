package metric

import (
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
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
	must.Need(t, at.Complete && at.Due == 3 && at.Stopped == "" && len(at.Samples) == 4 && r.Samples[1].Failure != nil, "%+v", at)
	for i, want := range []struct{ ttft, e2e, tpot float64 }{
		{1, 4, 3.0 / 7},
		{1, 9, 8.0 / 5}, // 3 chunks of two tokens; the last came 8 s after the first
		{5, 5, 0},
	} {
		s := at.Samples[i]
		ttft, _ := s.Value("ttft")
		e2e, _ := s.Value("e2e")
		tpot, _ := s.Value("tpot")
		must.Hold(t, ttft == want.ttft && e2e == want.e2e && tpot == want.tpot && s.Completed(), "%d: ttft %v, e2e %v, tpot %v, want %+v", i, ttft, e2e, tpot, want)
	}
	must.Hold(t, !at.Samples[3].Completed(), "a filler counts as ended")
	whole := (&Round{Due: 3})
	must.Hold(t, whole.AtLimit() == whole, "a round without a limit changed")
	if l := (&Level{Rounds: []*Round{{}, r}}); len(l.Overran()) != 1 {
		t.Error(l.Overran())
	}
}

// The first of further starts is priced like the last cold one, and each later one like the mean of the
// warm ones.
func TestStartTimes(t *testing.T) {
	start := func(seconds int, kind StartKind, pull int) Start {
		return Start{At: time.Hour, Ready: time.Hour + time.Duration(seconds+pull)*time.Second, Pull: time.Duration(pull) * time.Second, Kind: kind}
	}
	for _, row := range []struct {
		name         string
		starts       []Start
		first, later time.Duration
	}{
		{"none", nil, 0, 0},
		{"one", []Start{start(90, "", 0)}, 90 * time.Second, 90 * time.Second},
		{"of old recordings", []Start{start(695, "", 0), start(88, "", 0)}, 695 * time.Second, 88 * time.Second},
		{"cold, pulled and warm", []Start{start(695, StartCold, 300), start(80, StartWarm, 0), start(96, StartWarm, 0)}, 695 * time.Second, 88 * time.Second},
		{"only warm", []Start{start(80, StartWarm, 0), start(96, StartWarm, 0)}, 88 * time.Second, 88 * time.Second},
		{"cold was faster", []Start{start(60, StartCold, 0), start(88, StartWarm, 0)}, 88 * time.Second, 88 * time.Second},
	} {
		if first, later, ok := StartTimes(row.starts); first != row.first || later != row.later || ok != (len(row.starts) > 0) {
			t.Errorf("%s: %v, %v, %v; want %v, %v", row.name, first, later, ok, row.first, row.later)
		}
	}
}
