package assert

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// shape describes the simulated level of a test.
type shape struct {
	n, rounds, perRound int
	// ttft returns the TTFT of request i of a round, in seconds; the default is 1.
	ttft func(round, i int) float64
	// failed reports whether request i of a round fails; nil means that none fails.
	failed func(round, i int) bool
	change func(*metric.Sample)
	lean   bool // without gaps
}

func (s shape) level() *metric.Level {
	l := &metric.Level{Server: "sim", Workload: "chat", Name: "4", Kind: metric.ClosedLoop, N: s.n, Exact: true}
	if s.n == 0 {
		l.N = 4
	}
	now := time.Second
	for r := range s.rounds {
		round := &metric.Round{Index: r, Seed: int64(r), Due: s.perRound, Start: now, WindowStart: now + 1200*time.Millisecond, Busy: 1, Complete: true}
		next := make([]time.Duration, l.N)
		for slot := range next {
			next[slot] = now + time.Duration(slot)*1200*time.Millisecond/time.Duration(l.N)
		}
		for i := range s.perRound {
			slot := i % l.N
			ttft := 1.0
			if s.ttft != nil {
				ttft = s.ttft(r, i)
			}
			sent := next[slot]
			first := sent + time.Duration(ttft*1e9)
			x := &metric.Sample{Server: l.Server, Workload: l.Workload, Level: l.Name, Round: r, Slot: slot, Order: i, Phase: metric.Measured,
				Scheduled: sent, Sent: sent, Headers: sent + 1, First: first, FirstAnswer: first, Chunks: 11, FirstTokens: 1,
				InputAsked: 1000, OutputAsked: 11, Usage: &metric.Usage{Input: 1000, Output: 11, Cached: 0}, Finish: "length", Status: 200}
			for range map[bool]int{false: 10}[s.lean] {
				x.Gaps.Add(20 * time.Millisecond)
			}
			x.Last = first + 200*time.Millisecond
			x.End = x.Last
			if s.failed != nil && s.failed(r, i) {
				fail(x)
			}
			if s.change != nil {
				s.change(x)
			}
			next[slot] = x.End
			round.Samples = append(round.Samples, x)
			round.End, round.WindowEnd = max(round.End, x.End), max(round.WindowEnd, x.End)
		}
		now = round.End + time.Second
		l.Rounds = append(l.Rounds, round)
	}
	return l
}

func fail(x *metric.Sample) {
	x.Failure = &metric.Failure{Kind: metric.FailStatus, Message: "Internal Server Error"}
	x.Status, x.Usage, x.First, x.Last, x.Gaps, x.Chunks = 500, nil, 0, 0, nil, 0
}

// threshold returns a threshold from the text that a plan would have.
func threshold(name, text string) *plan.Threshold {
	t := &plan.Threshold{Metric: metric.MustLookup(name), Text: text, Range: hcl.Range{Filename: "chat.hcl", Start: hcl.Pos{Line: 7}}}
	for _, c := range []struct {
		text, stat string
		op         plan.Op
		limit      float64
	}{
		{"every", "every", "", 0},
		{"p95 < 2s", "p95", plan.Less, 2}, {"p95 <= 2s", "p95", plan.LessEqual, 2}, {"p99 < 2s", "p99", plan.Less, 2}, {"p50 < 2s", "p50", plan.Less, 2},
		{"p95 < 1us", "p95", plan.Less, 1e-6}, {"mean < 2s", "mean", plan.Less, 2}, {"mean <= 1s", "mean", plan.LessEqual, 1}, {"mean < 1s", "mean", plan.Less, 1},
		{"max < 2s", "max", plan.Less, 2}, {"min < 2s", "min", plan.Less, 2}, {"min < 1s", "min", plan.Less, 1}, {"every < 2s", "every", plan.Less, 2}, {"every <= 1s", "every", plan.LessEqual, 1}, {"every < 1s", "every", plan.Less, 1}, {"every < 30ms", "every", plan.Less, 0.03},
		{"max < 601s", "max", plan.Less, 601}, {"max < 61s", "max", plan.Less, 61}, {"max < 59s", "max", plan.Less, 59},
		{"max < 1.2s", "max", plan.Less, 1.2}, {"max > 2s", "max", plan.Greater, 2}, {"min < 0.2s", "min", plan.Less, 0.2}, {"min > 1s", "min", plan.Greater, 1},
		{"p95 < 30ms", "p95", plan.Less, 0.03}, {"mean < 30ms", "mean", plan.Less, 0.03},
		{"p5 > 10 tok/s", "p5", plan.Greater, 10}, {"mean > 10 tok/s", "mean", plan.Greater, 10}, {"min > 10 tok/s", "min", plan.Greater, 10},
		{"mean > 30 tok/s", "mean", plan.Greater, 30}, {"mean > 40 tok/s", "mean", plan.Greater, 40}, {"mean > 60 tok/s", "mean", plan.Greater, 60}, {"mean > 200 tok/s", "mean", plan.Greater, 200},
		{"rate >= 90%", "rate", plan.GreaterEqual, 0.9}, {"rate >= 94%", "rate", plan.GreaterEqual, 0.94}, {"rate >= 75%", "rate", plan.GreaterEqual, 0.75}, {"rate >= 95%", "rate", plan.GreaterEqual, 0.95}, {"rate >= 99%", "rate", plan.GreaterEqual, 0.99},
		{"observed >= 95%", "observed", plan.GreaterEqual, 0.95}, {"observed >= 98%", "observed", plan.GreaterEqual, 0.98}, {"observed > 98%", "observed", plan.Greater, 0.98}, {"observed >= 100%", "observed", plan.GreaterEqual, 1},
		{"rate >= 98%", "rate", plan.GreaterEqual, 0.98}, {"rate >= 100%", "rate", plan.GreaterEqual, 1}, {"share >= 95%", "share", plan.GreaterEqual, 0.95},
		{"> 10 tok/s", "", plan.Greater, 10}, {"> 1000000 tok/s", "", plan.Greater, 1e6}, {"> 1 req/s", "", plan.Greater, 1}, {"> 50%", "", plan.Greater, 0.5}, {"< 50%", "", plan.Less, 0.5},
	} {
		if c.text == text {
			stat, err := metric.ParseStat(c.stat)
			if err != nil {
				panic(err)
			}
			t.Stat, t.Op, t.Limit = stat, c.op, c.limit
			return t
		}
	}
	panic("no threshold " + text)
}

// gate returns a plan with one case, and a run of it.
func gate(l *metric.Level, thresholds ...*plan.Threshold) (*plan.Plan, *metric.Run) {
	policy := plan.Policy{Confidence: 0.95, Decide: plan.Certified, OnInconclusive: plan.Stop}
	server := &plan.Server{Name: "sim"}
	w := &plan.Workload{Name: "chat", Servers: []*plan.Server{server}, Policy: policy,
		Loads: []*plan.Load{{Kind: l.Kind, Levels: []plan.Level{{Name: l.Name, N: l.N, Requests: l.Due(), Rounds: max(len(l.Rounds), 1)}}}}}
	if len(thresholds) > 0 {
		w.SLAs = []*plan.SLA{{At: []string{l.Name}, Severity: plan.SeverityError, Thresholds: thresholds}}
	}
	p := &plan.Plan{Path: "chat.hcl", Gate: plan.Gate{Policy: policy}, Servers: []*plan.Server{server}, Workloads: []*plan.Workload{w}}
	return p, &metric.Run{ID: "1", Servers: []*metric.ServerRun{{Address: "sim"}}, Levels: []*metric.Level{l}}
}

func verdictOf(t *testing.T, v Verdicts, name string) verdict.Verdict {
	t.Helper()
	for _, x := range v.List {
		if x.Name == name {
			return x
		}
	}
	t.Fatalf("no verdict %q in %v", name, names(v))
	return verdict.Verdict{}
}

func names(v Verdicts) []string {
	var out []string
	for _, x := range v.List {
		out = append(out, x.Name+": "+x.Outcome.String()+": "+x.Message)
	}
	return out
}

// slow returns the TTFT of a level's requests, in seconds. The first k requests of each round take
// 5 s. All others take about 1 s, with small differences.
func slow(k int) func(round, i int) float64 {
	r := rand.New(rand.NewPCG(1, 1))
	return func(_, i int) float64 {
		if i < k {
			return 5
		}
		return 1 + 0.1*math.Abs(r.NormFloat64())
	}
}
