package assert

import (
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Some of 200 answers arrive in one piece, within half a millisecond. A normal answer has 11
// tokens, and its last 10 take 200 ms: 50 tok/s, or 20 ms for each.
func TestAnswersInOnePiece(t *testing.T) {
	lump := func(x *metric.Sample) { x.Last = x.First + 500*time.Microsecond }
	oneChunk := func(x *metric.Sample) { x.Last, x.Chunks, x.Gaps = x.First, 1, nil }
	for _, tt := range []struct {
		name   string
		n      int
		change func(*metric.Sample)
		metric string
		bound  string
		want   verdict.Outcome
		value  float64
	}{
		// Each of 200 answers has ten tokens in 0.2 s: 50 tok/s.
		{"none", 0, lump, "speed", "mean > 40 tok/s", verdict.Pass, 50},
		// 199 answers take 0.2 s and one takes 0.5 ms: 2000 tokens in 39.8005 s.
		{"one, pooled", 1, lump, "speed", "mean > 40 tok/s", verdict.Pass, 2000 / 39.8005},
		// The mean of 199 answers at 50 tok/s and one answer at 20,000 tok/s is (199 × 50 + 20000)
		// / 200 = 149.75 tok/s.
		{"one, by request", 1, lump, "request_speed", "mean > 40 tok/s", verdict.Inconclusive, 149.75},
		{"a twentieth", 10, lump, "speed", "p5 > 10 tok/s", verdict.Pass, 50},
		{"more", 11, lump, "speed", "p5 > 10 tok/s", verdict.Error, 0},
		{"of TPOT", 11, lump, "tpot", "mean < 30ms", verdict.Error, 0},
		{"of ITL", 11, lump, "itl", "p95 < 30ms", verdict.Error, 0},
		{"TTFT is none of it", 11, lump, "ttft", "mean < 2s", verdict.Pass, 1},
		{"nor is E2E", 200, lump, "e2e", "mean < 2s", verdict.Pass, 1.0005},
		// An answer in one chunk has no speed, and does not count as slow.
		{"one chunk", 10, oneChunk, "speed", "min > 10 tok/s", verdict.Pass, 50},
		{"one chunk, gaps", 10, oneChunk, "itl", "every < 30ms", verdict.Pass, 0.02},
		{"too many of one chunk", 11, oneChunk, "speed", "min > 10 tok/s", verdict.Error, 0},
		{"all", 200, oneChunk, "speed", "mean > 10 tok/s", verdict.Error, 0},
	} {
		left := tt.n
		l := shape{rounds: 10, perRound: 20, change: func(x *metric.Sample) {
			if left > 0 {
				left--
				tt.change(x)
			}
		}}.level()
		s := subject{evidence: gather(l), alpha: 0.05}
		v := s.judge(threshold(tt.metric, tt.bound))
		if v.Outcome != tt.want || v.Value.OK && !near(v.Value.V, tt.value) {
			t.Errorf("%s: %v %v (%s), want %v %v", tt.name, v.Outcome, v.Value, v.Message, tt.want, tt.value)
		}
		if v.Outcome == verdict.Error && (!strings.Contains(v.Message, "of 200 answers came in one piece") || v.Cause != verdict.CauseInvalid) {
			t.Errorf("%s: it says %q, cause %v", tt.name, v.Message, v.Cause)
		}
		if tt.name == "one chunk" && !strings.Contains(strings.Join(v.NotesOf(), "; "), "10 answers that came in one chunk are left out") {
			t.Errorf("%s: notes %q", tt.name, v.Notes)
		}
	}
}

func near(a, b float64) bool { return a > b*(1-1e-9) && a < b*(1+1e-9) }

// A goodput with a limit on speed is unknown if too many answers came in one chunk. If few answers
// did, the limit on speed does not apply to them.
func TestGoodputOfStreams(t *testing.T) {
	for n, want := range map[int]verdict.Outcome{10: verdict.Pass, 11: verdict.Error} {
		left := n
		l := shape{rounds: 10, perRound: 20, change: func(x *metric.Sample) {
			if left > 0 {
				left--
				x.Last, x.Chunks, x.Gaps = x.First, 1, nil
			}
		}}.level()
		s := subject{evidence: gather(l), alpha: 0.05, workload: &plan.Workload{Good: []*plan.Threshold{{Metric: metric.MustLookup("speed"), Op: plan.Greater, Limit: 10}}}}
		v := s.judge(threshold("goodput", "observed >= 100%"))
		must.Hold(t, v.Outcome == want, "%d: %v (%s), want %v", n, v.Outcome, v.Message, want)
	}
}

// If a chunk holds several tokens, a note says that a gap is not the time of one token.
func TestTokensPerChunk(t *testing.T) {
	l := shape{rounds: 10, perRound: 20, change: func(x *metric.Sample) { x.Chunks = 10 }}.level()
	s := subject{evidence: gather(l), alpha: 0.05}
	v := s.judge(threshold("itl", "p95 < 30ms"))
	must.Hold(t, strings.Contains(strings.Join(v.NotesOf(), "; "), "a chunk holds 1.1 tokens on average"), "notes %q", v.Notes)
}
