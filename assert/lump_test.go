package assert

import (
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Answers of 11 tokens, the first apart: 10 tokens in 1 ms are 10,000 tok/s,
// the bound; in half of that they came in one piece.
func TestAnswersInOnePiece(t *testing.T) {
	for _, tt := range []struct {
		name   string
		lumps  int // of 200
		span   time.Duration
		metric string
		bound  string
		want   Outcome
	}{
		{"none", 0, 0, "speed", "mean > 40 tok/s", Pass},
		// All in one round, which then differs from the others by far.
		{"as many as a mean bears", 2, 500 * time.Microsecond, "speed", "mean > 40 tok/s", Inconclusive},
		{"one more", 3, 500 * time.Microsecond, "speed", "mean > 40 tok/s", Error},
		{"fast, but streamed", 3, time.Millisecond, "speed", "mean > 40 tok/s", Inconclusive},
		{"of TPOT", 3, 500 * time.Microsecond, "tpot", "mean < 30ms", Error},
		{"TTFT is none of it", 3, 500 * time.Microsecond, "ttft", "mean < 2s", Pass},
		{"a percentile bears them", 3, 500 * time.Microsecond, "speed", "p5 > 10 tok/s", Pass},
	} {
		left := tt.lumps
		l := shape{rounds: 10, perRound: 20, change: func(x *metric.Sample) {
			if left > 0 {
				left--
				x.Last = x.First + tt.span
			}
		}}.level()
		s := subject{evidence: gather(l), alpha: 0.05}
		v := s.judge(threshold(tt.metric, tt.bound))
		if v.Outcome != tt.want {
			t.Errorf("%s: %v (%s), want %v", tt.name, v.Outcome, v.Message, tt.want)
		}
		if v.Outcome == Error && !strings.Contains(v.Message, "3 of 200 answers came in one piece") {
			t.Errorf("%s: it says %q", tt.name, v.Message)
		}
	}
}
