package assert

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// batches returns a window of k batches of ten requests, four in flight. The TTFT of a batch's
// requests is given in seconds; the e2e time is 0.2 s longer.
func batches(ttft ...float64) *metric.Level {
	l := shape{n: 4, rounds: len(ttft), perRound: 10, ttft: func(round, _ int) float64 { return ttft[round] }}.level()
	l.Batches = true
	for i, r := range l.Rounds {
		r.WindowStart, r.WindowEnd = r.Start, r.End
		if i > 0 {
			l.Rounds[i-1].WindowEnd = r.Start
		}
	}
	return l
}

func TestClearly(t *testing.T) {
	for _, c := range []struct {
		metric, text string
		value        float64
		want         bool
	}{
		{"ttft", "p95 < 2s", 1.70, true}, // 0.85 · 2 s
		{"ttft", "p95 < 2s", 1.71, false},
		{"speed", "mean > 40 tok/s", 47.1, true}, // 40 / 0.85 = 47.06
		{"speed", "mean > 40 tok/s", 47, false},
		{"success", "rate >= 90%", 0.92, true}, // 8 % fail, 8.5 % may
		{"success", "rate >= 90%", 0.91, false},
		{"goodput", "share >= 95%", 0.96, true}, // 4 %, at most 4.25 %
		{"goodput", "share >= 95%", 0.957, false},
		{"cache_hit_rate", "< 50%", 0.42, true},
		{"ttft", "p95 < 2s", math.NaN(), false},
	} {
		must.Same(t, fmt.Sprintf("%s %s, %v", c.metric, c.text, c.value), c.want, clearly(c.value, threshold(c.metric, c.text)))
	}
}

// Batches that resemble their neighbours widen an interval and count as fewer requests. Rounds with
// the same values, such as those of an earlier recording, are judged as they always were.
func TestBatchesThatResembleTheirNeighbours(t *testing.T) {
	var waves []float64 // slow for five batches, fast for five
	for i := range 20 {
		waves = append(waves, 1+0.1*float64(i/5%2))
	}
	judge := func(ttft []float64, batched bool, th *plan.Threshold) verdict.Verdict {
		l := batches(ttft...)
		l.Batches = batched
		s := subject{evidence: gather(l), workload: &plan.Workload{}, alpha: 0.05}
		return s.judge(th)
	}
	mean := threshold("ttft", "mean < 2s")
	old, now := judge(waves, false, mean), judge(waves, true, mean)
	// The deviations are ±0.05; of 19 products 16 are positive and 3 negative, so the lag-1
	// autocorrelation is 13/20. r = min(0.65 + 1/20 + 0.5/√20, 0.9) = 0.8118, and √((1+r)/(1−r)) = 3.103.
	widened := (now.Value.V - now.Low.V) / (old.Value.V - old.Low.V)
	must.Hold(t, math.Abs(widened-3.103) <= 0.001, "the interval is %.3f times as wide", widened)
	p95 := threshold("ttft", "p95 < 2s")
	if was, is := judge(waves, false, p95).Effective, judge(waves, true, p95).Effective; math.Abs(was/is-1.7/0.3) > 1e-9 { // r = 0.65 + 0.05
		t.Errorf("%v effective requests in rounds, %v in batches", was, is)
	}
}

func TestEarlyPassIsClear(t *testing.T) {
	for _, c := range []struct {
		name    string
		ttft    float64
		batched bool
		due     int
		want    verdict.Outcome
	}{
		{"clear, before the end", 0.8, true, 200, verdict.Pass},
		{"near, before the end", 0.9, true, 200, verdict.Inconclusive},
		{"near, at the end", 0.9, true, 100, verdict.Pass},
		{"near, rounds", 0.9, false, 200, verdict.Pass},
		{"over, before the end", 1.2, true, 200, verdict.Fail},
	} {
		values := make([]float64, 10)
		for i := range values {
			values[i] = c.ttft + 0.001*float64(i%2)
		}
		l := batches(values...)
		l.Batches = c.batched
		s := subject{evidence: gather(l), workload: &plan.Workload{}, alpha: 0.05, due: c.due}
		v := s.judge(threshold("ttft", "mean < 1s"))
		must.Hold(t, v.Outcome == c.want, "%s: %s: %s", c.name, v.Outcome, v.Message)
	}
}

// An exact statistic fails before the end only if no outcome of the requests still planned could mend it.
func TestExactFailsForGood(t *testing.T) {
	for _, c := range []struct {
		metric, text string
		failed       int // of the first 100 requests; their TTFT is 1.5 s, and 0.5 s in the second batch
		due          int
		want         verdict.Outcome
	}{
		{"ttft", "every < 1s", 0, 200, verdict.Fail},
		{"ttft", "max < 1.2s", 0, 200, verdict.Fail},
		{"ttft", "min < 0.2s", 0, 200, verdict.Inconclusive}, // the smallest may still come
		{"ttft", "min < 0.2s", 0, 100, verdict.Fail},
		{"ttft", "min > 1s", 0, 200, verdict.Fail},
		{"ttft", "max > 2s", 0, 200, verdict.Inconclusive},
		{"success", "observed >= 95%", 10, 200, verdict.Inconclusive}, // 190 of 200 are 95 %
		{"success", "observed >= 95%", 11, 200, verdict.Fail},         // 189 of 200
		{"success", "observed >= 95%", 6, 100, verdict.Fail},
		{"success", "every", 1, 200, verdict.Fail},
	} {
		l := batches(1.5, 0.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5)
		for _, x := range l.MeasuredSamples()[:c.failed] {
			x.Failure = &metric.Failure{Kind: metric.FailStatus, Message: "Internal Server Error"}
		}
		th := threshold(c.metric, c.text)
		s := subject{evidence: gather(l), workload: &plan.Workload{}, alpha: 0.05, due: c.due}
		if v := s.judge(th); v.Outcome != c.want {
			t.Errorf("%s %s, %d failed, %d due: %s: %s", c.metric, c.text, c.failed, c.due, v.Outcome, v.Message)
		}
	}
}

// Fewer than five waves decide nothing, however far from the limit they are.
func TestFewBatches(t *testing.T) {
	for _, text := range []string{"mean < 2s", "p95 < 2s", "mean < 30ms", "p95 < 30ms"} {
		for k := range 5 {
			values := make([]float64, k+1)
			for i := range values {
				values[i] = 1 + 0.001*float64(i)
			}
			s := subject{evidence: gather(batches(values...)), workload: &plan.Workload{}, alpha: 0.05}
			v := s.judge(threshold("ttft", text))
			if decided := v.Outcome == verdict.Pass || v.Outcome == verdict.Fail; decided && k < 4 {
				t.Errorf("%s, %d batches: %s", text, k+1, v.Outcome)
			} else if k < 4 && v.More < 1 && v.More != -1 {
				t.Errorf("%s, %d batches: it does not say how many more requests decide: %q", text, k+1, v.Needs)
			}
		}
	}
}

// A p99 of few requests passes only if the batches' worst requests stay clear of the limit.
func TestGroupedPercentile(t *testing.T) {
	level := func(worst float64) *metric.Level {
		l := shape{n: 32, rounds: 20, perRound: 32, lean: true, ttft: func(round, i int) float64 {
			if i == 0 && round%2 == 0 {
				return worst
			}
			return 0.5 + 0.01*float64((round*7+i)%13)
		}}.level()
		l.Batches = true
		return l
	}
	for _, c := range []struct {
		worst float64
		want  verdict.Outcome
	}{{0.6, verdict.Pass}, {1.9, verdict.Inconclusive}} {
		s := subject{evidence: gather(level(c.worst)), workload: &plan.Workload{}, alpha: 0.05}
		v := s.judge(threshold("ttft", "p99 < 2s"))
		must.Hold(t, v.Outcome == c.want, "the worst of every other batch takes %v s: %s: %s", c.worst, v.Outcome, v.Message)
	}
}

// The slots must be busy over the whole window, not in each batch.
func TestBusyWindow(t *testing.T) {
	for _, c := range []struct {
		name string
		busy func(i int) float64
		want string
	}{
		{"one idle batch", func(i int) float64 { return map[bool]float64{true: 0.3, false: 1}[i == 3] }, ""}, // 0.965 of twenty batches
		{"two idle batches", func(i int) float64 { return map[bool]float64{true: 0.3, false: 1}[i < 2] }, "the slots were busy for 92.9%"},
		{"a little idle everywhere", func(int) float64 { return 0.94 }, "the slots were busy for 94%"},
	} {
		values := make([]float64, 20)
		for i := range values {
			values[i] = 1
		}
		l := batches(values...)
		for i, r := range l.Rounds {
			r.Busy = c.busy(i)
		}
		p, run := gate(l, threshold("ttft", "mean < 2s"))
		p.Workloads[0].Loads[0].Levels[0].Batches = true
		got := verdictOf(t, Judge(p, run, Options{}), "load at 4")
		failed := got.Outcome == verdict.Error
		must.Hold(t, failed == (c.want != "") && strings.Contains(got.Message, c.want), "%s: %s: %s", c.name, got.Outcome, got.Message)
	}
}

// A batch that the generator disturbed is left out, and its replacement comes at the end. The judge
// names batches, and counts the others.
func TestVoidedBatch(t *testing.T) {
	l := batches(1, 1.01, 1.02, 1, 1.01, 1.02, 1)
	r := l.Rounds[2]
	r.Health.Stall, r.Void = time.Minute, "the generator stood still for 1 min"
	l.Voided, l.Rounds = l.Rounds[2:3:3], append(l.Rounds[:2:2], l.Rounds[3:]...)
	p, run := gate(l, threshold("ttft", "mean < 2s"))
	v := Judge(p, run, Options{})
	if got := verdictOf(t, v, "load at 4"); got.Outcome != verdict.Pass || !strings.Contains(got.Message, "in 6 batches") || !strings.Contains(strings.Join(got.NotesOf(), " "), "batch 3 was measured again") {
		t.Errorf("%s: %s %q", got.Outcome, got.Message, got.Notes)
	}
	r.Health.Stall = 0
	if got := verdictOf(t, Judge(p, run, Options{}), "load at 4"); got.Outcome != verdict.Error || !strings.Contains(got.Message, "batch 3 was left out, although nothing had disturbed it") {
		t.Errorf("left out for nothing: %s: %s", got.Outcome, got.Message)
	}
}

// What a window can never certify is known before it runs.
func TestCertifyWindows(t *testing.T) {
	for _, c := range []struct {
		n, waves     int
		metric, text string
		clusters     plan.Clusters
		remark       string // "" if the threshold can pass
		advice       string
	}{
		{32, 20, "ttft", "p95 < 2s", "", "", ""},
		{32, 20, "ttft", "mean < 2s", "", "", ""},
		{32, 5, "ttft", "p95 < 2s", "", "", ""},
		{64, 4, "ttft", "p95 < 2s", "", "needs a window of at least 5 waves of 64 requests; the plan has only 256 requests", "use waves = 5 (320 requests), or better 10 (640) or 20 (1280)"},
		{64, 4, "ttft", "mean < 2s", "", "needs a window of at least 5 waves", "waves = 5"},
		{64, 4, "ttft", "max < 2s", "", "", ""}, // exact
		{32, 20, "success", "rate >= 99%", plan.ClustersWave, "needs 299 waves of 32", "waves = 299"},
		{32, 300, "success", "rate >= 99%", plan.ClustersWave, "", ""},
		{32, 300, "success", "rate >= 99%", plan.ClustersRound, "a closed loop is one window and has no rounds", `clusters = "wave"`},
	} {
		th := threshold(c.metric, c.text)
		level := plan.Level{Name: "4", N: c.n, Requests: plan.Waves(c.waves, c.n)}
		level.Cut()
		w := &plan.Workload{SLAs: []*plan.SLA{{At: []string{"4"}, Thresholds: []*plan.Threshold{th}}}, Policy: plan.Policy{Confidence: 0.95, Clusters: c.clusters}}
		f := certify(th, level, metric.ClosedLoop, w.Policy, (&plan.Plan{}).Looks(w, &plan.Load{Kind: metric.ClosedLoop}, level))
		if f.Impossible != (c.remark != "") || f.Impossible && !strings.Contains(f.Remark, c.remark) || !strings.Contains(f.Advice, c.advice) {
			t.Errorf("%d waves of %d, %s %s: impossible %v: %q; %q", c.waves, c.n, c.metric, c.text, f.Impossible, f.Remark, f.Advice)
		}
	}
	level := plan.Level{Name: "4", N: 32, Requests: 640}
	level.Cut()
	th := threshold("ttft", "p99 < 2s")
	f := certify(th, level, metric.ClosedLoop, plan.Policy{Confidence: 0.95}, []plan.Look{{Requests: 640, Spent: 1, Planned: 1}})
	must.Hold(t, !f.Impossible && strings.Contains(f.Remark, "waves = 40"), "p99: %+v", f)
}
