package assert

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// byRound returns a function that gives every request of a round the same duration. Such a round
// counts as one request, so a percentile passes only by its margin.
func byRound(seconds ...float64) func(round, i int) float64 {
	return func(round, _ int) float64 { return seconds[round] }
}

const certifiedByMargin = "certified by its margin"

func TestMargin(t *testing.T) {
	// The worst values of the rounds are 1 and 1.1 s in turn. The bounds use the mean and the
	// standard deviation of their logarithms, for ten and for five rounds.
	//
	// A p95 allows 5% of requests over the limit. The tolerance bound allows half of this share,
	// 2.5%, so it covers 97.5%. A verdict may err with probability 5%. The bound may err with a
	// fifth of this probability, 1%, so its confidence is 99%.
	factor := func(n int, content float64) float64 { return stat.ToleranceFactor(n, content, 0.99) }
	bound10 := math.Exp(0.04766 + factor(10, 0.975)*0.05024)
	bound5 := math.Exp(0.03812 + factor(5, 0.975)*0.05220)
	ten := byRound(1, 1.1, 1, 1.1, 1, 1.1, 1, 1.1, 1, 1.1)
	// Values of 1 and 1.8 s vary widely. A tolerance bound on 95% of rounds at 95% confidence would
	// already be 3.306 s, above the limit: e^(0.2939 + 2.911·0.3098), by the mean and the standard
	// deviation of the logarithms.
	wide := byRound(1, 1.8, 1, 1.8, 1, 1.8, 1, 1.8, 1, 1.8)
	for _, c := range []struct {
		name, metric, text string
		shape              shape
		want               verdict.Outcome
		margin             bool
		bound              float64
	}{
		{"far below", "ttft", "p95 < 2s", shape{rounds: 10, perRound: 20, ttft: ten}, verdict.Pass, true, bound10},
		{"five rounds", "ttft", "p95 < 2s", shape{rounds: 5, perRound: 20, ttft: ten}, verdict.Pass, true, bound5},
		{"too near for its spread", "ttft", "p95 < 2s", shape{rounds: 10, perRound: 20, ttft: wide}, verdict.Inconclusive, false, 0},
		{"four rounds", "ttft", "p95 < 2s", shape{rounds: 4, perRound: 50, ttft: ten}, verdict.Inconclusive, false, 0},
		// A p95 that passes by its margin still needs 59 requests. By chance 58 requests meet it
		// with probability 0.95^58 = 0.0510, which is above 5%.
		{"58 requests", "ttft", "p95 < 2s", shape{rounds: 2, perRound: 29, ttft: ten}, verdict.Inconclusive, false, 0},
		{"50 requests in ten rounds", "ttft", "p95 < 2s", shape{rounds: 10, perRound: 5, ttft: ten}, verdict.Inconclusive, false, 0},
		{"60 requests in ten rounds", "ttft", "p95 < 2s", shape{rounds: 10, perRound: 6, ttft: ten}, verdict.Pass, true, bound10},
		// A p99 that passes by its margin still needs 299 requests. Its tolerance bound must hold
		// for 99.5% of them.
		{"p99, 290 requests", "ttft", "p99 < 2s", shape{rounds: 10, perRound: 29, ttft: ten}, verdict.Inconclusive, false, 0},
		{"p99, 300 requests", "ttft", "p99 < 2s", shape{rounds: 10, perRound: 30, ttft: ten}, verdict.Pass, true, math.Exp(0.04766 + factor(10, 0.995)*0.05024)},
		// A failed request has no TTFT, so its round has no worst TTFT.
		{"one failed", "ttft", "p95 < 2s", shape{rounds: 10, perRound: 20, ttft: ten, failed: func(r, i int) bool { return r == 3 && i == 7 }}, verdict.Inconclusive, false, 0},
		{"one without an answer", "ttfa", "p95 < 2s", shape{rounds: 10, perRound: 20, ttft: ten,
			change: func(x *metric.Sample) {
				if x.Round == 3 && x.Order == 7 {
					x.FirstAnswer = 0
				}
			}}, verdict.Inconclusive, false, 0},
		// All requests of one round are over the limit.
		{"one round over", "ttft", "p95 < 2s", shape{rounds: 10, perRound: 20, ttft: byRound(1, 1, 1, 1, 2.5, 1, 1, 1, 1, 1)}, verdict.Inconclusive, false, 0},
		// Answers of 10 tokens in 0.5 or 0.55 s have speeds of 20 and 18.2 tok/s. The lower bound
		// is 20 / bound10 = 15.3 tok/s.
		{"upward", "speed", "p5 > 10 tok/s", shape{rounds: 10, perRound: 20, change: pace(0.5, 1.1)}, verdict.Pass, true, 20 / bound10},
		{"upward, too near", "speed", "p5 > 10 tok/s", shape{rounds: 10, perRound: 20, change: pace(0.5, 1.8)}, verdict.Inconclusive, false, 0},
		// For a metric of gaps (itl), the worst value of a round is its longest gap.
		{"gaps", "itl", "p95 < 30ms", shape{rounds: 10, perRound: 20, change: gaps(20_000, 22_000)}, verdict.Pass, true, 0.02 * bound10},
		{"gaps, too near", "itl", "p95 < 30ms", shape{rounds: 10, perRound: 20, change: gaps(20_000, 29_000)}, verdict.Inconclusive, false, 0},
		{"gaps, a request without one", "itl", "p95 < 30ms", shape{rounds: 10, perRound: 20, change: func(x *metric.Sample) {
			if gaps(20_000, 22_000)(x); x.Round == 2 && x.Order == 1 {
				x.Gaps = nil
			}
		}}, verdict.Inconclusive, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := one(t, c.shape.level(), c.metric, c.text, nil)
			notes := strings.Join(v.NotesOf(), "\n")
			if v.Outcome != c.want || strings.Contains(notes, certifiedByMargin) != c.margin {
				t.Fatalf("%v, want %v, by its margin %v: %s\n%s", v.Outcome, c.want, c.margin, v.Message, notes)
			}
			if !c.margin {
				return
			}
			bound := v.High.V
			if sample.Upward(plan.Op(v.Threshold.Op)) {
				bound = v.Low.V
			}
			must.Hold(t, math.Abs(bound/c.bound-1) <= 0.002, "the bound is %v, want %v", bound, c.bound)
			must.Hold(t, v.High.V >= v.Value.V && v.Low.V <= v.Value.V || v.Outcome != verdict.Pass, "%v is outside [%v, %v]", v.Value.V, v.Low.V, v.High.V)
		})
	}
	// If the plan decides by estimates, a pass needs no margin.
	v := one(t, shape{rounds: 10, perRound: 20, ttft: ten}.level(), "ttft", "p95 < 2s", func(w *plan.Workload) { w.Policy.Decide = plan.Estimate })
	must.Hold(t, v.Outcome == verdict.Pass && !strings.Contains(strings.Join(v.NotesOf(), "\n"), certifiedByMargin), "by point estimate: %v %v", v.Outcome, v.Notes)
	// If the number of requests is enough for a pass, no note mentions the margin.
	v = one(t, shape{rounds: 10, perRound: 20, ttft: slow(0)}.level(), "ttft", "p95 < 2s", nil)
	must.Hold(t, v.Outcome == verdict.Pass && !strings.Contains(strings.Join(v.NotesOf(), "\n"), certifiedByMargin), "by its count: %v %v", v.Outcome, v.Notes)
}

// pace returns a function that sets the duration of an answer, in seconds. The duration is the
// parameter whole in even rounds, and whole · factor in odd rounds.
func pace(whole, factor float64) func(*metric.Sample) {
	return func(x *metric.Sample) {
		seconds := whole
		if x.Round%2 == 1 {
			seconds *= factor
		}
		x.Last = x.First + time.Duration(seconds*1e9)
		x.End = x.Last
	}
}

// gaps returns a function that sets all gaps of a request to one length, in microseconds. The
// parameter even is that length in even rounds, and the parameter odd in odd rounds.
func gaps(even, odd uint32) func(*metric.Sample) {
	return func(x *metric.Sample) {
		g := even
		if x.Round%2 == 1 {
			g = odd
		}
		for i := range x.Gaps {
			x.Gaps[i] = g
		}
	}
}

// In the tables of TestMargin a round counts as about one request. So the number of requests cannot
// certify a pass, and only the margin can.
func TestMarginTablesHideNoCount(t *testing.T) {
	blocks := [][]float64{{1, 1, 1, 1}, {1.1, 1.1, 1.1, 1.1}, {1, 1, 1, 1}, {1.1, 1.1, 1.1, 1.1}, {1, 1, 1, 1}}
	var rounds []stat.Ascending
	for _, values := range blocks {
		rounds = append(rounds, stat.Ascending{Values: values})
	}
	n := stat.Effective(20, nil, [][]stat.Ascending{rounds}, 0.05)
	must.Hold(t, n <= 5, "five rounds that are alike inside are worth %v requests", n)
}
