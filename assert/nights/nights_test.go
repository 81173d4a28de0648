package nights

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

var ttftTrend = metric.Trend{Server: "vllm", Workload: "chat", Level: "30", Metric: "ttft", Stat: "p95", Asked: "a"}

// nightsOf returns a history of nights r0, r1, … with one figure each; NaN stands for a missing
// figure.
func nightsOf(key metric.Trend, values ...float64) metric.History {
	var h metric.History
	for i, v := range values {
		n := metric.Night{
			Run: fmt.Sprintf("r%d", i), Tool: "1.0.0", Plan: "control",
			Started: time.Date(2026, 10, 1+i, 3, 0, 0, 0, time.UTC),
			Servers: map[string]metric.Fingerprint{"vllm": {"engine.version": "0.19.1"}},
			Figures: []metric.Figure{{Trend: metric.Trend{Server: "vllm", Workload: "chat", Level: "30", Metric: "success", Stat: "rate"}, Value: 1}},
		}
		if !math.IsNaN(v) {
			n.Figures = append(n.Figures, metric.Figure{Trend: key, Value: v})
		}
		h.Nights = append(h.Nights, n)
	}
	return h
}

// steady returns figures of n nights: 2 s, by turns one percent more and one percent less.
func steady(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 2 * math.Exp(0.01-0.02*float64(i%2))
	}
	return out
}

func TestJudgeNights(t *testing.T) {
	speed := ttftTrend
	speed.Metric, speed.Stat = "speed", "mean"
	unknown := ttftTrend
	unknown.Metric = "vibes"
	limit := metric.Trend{Server: "vllm", Workload: "chat", Level: "capacity", Metric: "capacity"}
	rate := limit
	rate.Stat = "rate"
	preempted := ttftTrend
	preempted.Metric, preempted.Stat = "preemptions", ""
	// The workload was different on the third and fourth night.
	again := nightsOf(ttftTrend, 2, 2, 2, 2, 2)
	again.Nights[2].Figures[1].Asked, again.Nights[3].Figures[1].Asked = "b", "b"
	eve := time.Date(2026, 10, 10, 4, 0, 0, 0, time.UTC) // of night r10
	tests := []struct {
		name     string
		h        metric.History
		opts     Options
		outcome  verdict.Outcome
		recorded bool
		words    string // text in the second trend's message, or in Why
	}{
		{"the first night", nightsOf(ttftTrend, 2), Options{}, verdict.Pass, true, "2 s, recorded only: this is night 1, and judging begins with night 11"},
		{"the tenth", nightsOf(ttftTrend, steady(10)...), Options{}, verdict.Pass, true, "this is night 10"},
		// The new night is expected at 2·e^±0.0524 s: 1.9 to 2.11 s. On the logarithmic scale, the
		// half width is t · s · √(1 + 1/10) = 0.0524.
		//
		// The standard deviation s of the ten nights is √(10/9)·0.01 = 0.01054. The one-sided error
		// is 0.3·0.007/2 for each of two series, with 0.8·10 − 1 = 7 degrees of freedom: t = 4.74.
		{"as ever", nightsOf(ttftTrend, append(steady(10), 2.05)...), Options{}, verdict.Pass, false, "2.05 s, expected 1.9 s to 2.11 s after 10 nights"},
		{"one bad night", nightsOf(ttftTrend, append(steady(10), 2.2)...), Options{}, verdict.Pass, false, "2.2 s, suspect: 10% higher than 2 s, the mean of 10 nights; not yet certain, the next night decides"},
		// Two bad nights count as 3 s beyond the mean, so they have t = 3/√(1/2 + 1/10) = 3.87 and p =
		// 0.0031; 0.45·0.007/2 would be needed. Three in a row count as the least of them, here
		// as 4 s: t = 4/√(1/3 + 1/10) = 6.08 and p = 0.0003, and 0.8·0.007/2 is needed.
		{"two bad nights", nightsOf(ttftTrend, append(steady(10), 2.2, 2.2)...), Options{}, verdict.Pass, false, "2.2 s, "},
		{"worse", nightsOf(ttftTrend, append(steady(10), 2.2, 2.2, 2.2)...), Options{}, verdict.Fail, false, "2.2 s: since run r10 of 2026-10-11 the value is 10% higher, from 2 s to 2.2 s; every night fails until the value is back, or until run r10 is pinned to accept the change"},
		{"better", nightsOf(ttftTrend, append(steady(10), 1.8, 1.8, 1.8)...), Options{}, verdict.Pass, false, "since run r10 of 2026-10-11 the value is 10% lower, from 2 s to 1.8 s; this is an improvement, and becomes the reference when it has lasted 10 nights"},
		{"better, and waits", nightsOf(ttftTrend, append(steady(10), 1.8, 1.8, 1.8)...), Options{Wait: true}, verdict.Pass, false, "this is an improvement. To hold later nights to this value, pin run r10"},
		{"higher is better", nightsOf(speed, append(steady(10), 1.8, 1.8, 1.8)...), Options{}, verdict.Fail, false, "10% lower"},
		{"too small to be told", nightsOf(ttftTrend, append(steady(10), 2.2, 2.2, 2.2)...), Options{Ignore: 0.2}, verdict.Pass, false, "2.2 s, expected"},
		{"not measured tonight", nightsOf(ttftTrend, append(steady(10), math.NaN())...), Options{}, verdict.Error, false, "was not measured tonight; the last run that measured this series is r9"},
		{"never measured", nightsOf(ttftTrend, math.NaN()), Options{}, verdict.Pass, true, ""},
		{"no such number", nightsOf(ttftTrend, append(steady(10), 0)...), Options{}, verdict.Error, false, "run r10 has the value 0"},
		{"an unknown metric", nightsOf(unknown, 1), Options{}, verdict.Error, false, `does not know the metric "vibes"`},
		{"in the future", nightsOf(ttftTrend, steady(11)...), Options{Now: eve}, verdict.Error, false, "run r10 starts in the future, at 2026-10-11 03:00:00"},
		{"of the hour in which clocks differ", nightsOf(ttftTrend, steady(11)...), Options{Now: eve.Add(22*time.Hour + time.Minute)}, verdict.Pass, false, "2.02 s, expected"},
		{"as old as may be", nightsOf(ttftTrend, steady(11)...), Options{Now: eve.AddDate(0, 0, 3), MaxAge: 73 * time.Hour}, verdict.Pass, false, "2.02 s, expected"},
		{"older", nightsOf(ttftTrend, steady(11)...), Options{Now: eve.AddDate(0, 0, 3), MaxAge: 48 * time.Hour}, verdict.Error, false, "history, r10, started 2 days ago, but at most 2 days is allowed"},
		{"not the run that is asked for", nightsOf(ttftTrend, steady(11)...), Options{Run: "r9"}, verdict.Error, false, "run r9 is not the last run in the history: run r10 started later"},
		{"the run that is asked for", nightsOf(ttftTrend, steady(11)...), Options{Run: "r10"}, verdict.Pass, false, "2.02 s, expected"},
		{"lines that cannot be read", nightsOf(ttftTrend, steady(11)...), Options{Unread: 1}, verdict.Error, false, "1 line of the history cannot be read"},
		{"none of something, every night", nightsOf(preempted, make([]float64, 11)...), Options{}, verdict.Pass, false, "recorded only: nights are compared by ratios, and the value was 0 in run r0"},
		{"a workload that became what it was", again, Options{}, verdict.Pass, true, "2 s, recorded only: this is night 3, "},
		{"no nights", metric.History{}, Options{}, verdict.Error, false, "no nights"},
		// A capacity in whole requests may be rounded by half a request. So 39 after nights of 40
		// is not yet a change.
		{"a limit one lower", nightsOf(limit, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 39), Options{}, verdict.Pass, false, "39 requests"},
		// The test for a rate does not allow for rounding by half a unit, because a rate may have
		// any decimals. Half a request per second would be an eighth of 4 req/s.
		{"a rate lower", nightsOf(rate, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3.7, 3.7, 3.7), Options{}, verdict.Fail, false, "3.7 req/s: since run r10 of 2026-10-11 the value is 7.5% lower"},
		{"a limit much lower", nightsOf(limit, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 35, 35, 35), Options{}, verdict.Fail, false, "35 requests: since run r10 of 2026-10-11 the value is 12.5% lower"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Judge(tt.h, tt.opts)
			if got.Outcome != tt.outcome || got.Recorded != tt.recorded {
				t.Errorf("%v, recorded %t; want %v, %t", got.Outcome, got.Recorded, tt.outcome, tt.recorded)
			}
			said := got.Why
			if len(got.Trends) > 1 {
				said += got.Trends[1].Message
			}
			must.Hold(t, strings.Contains(said, tt.words), "it says %q, want %q", said, tt.words)
		})
	}
}

// Nights before a pin do not count. So a pin, which accepts a run as the new reference, accepts
// earlier changes.
func TestJudgeNightsPinned(t *testing.T) {
	h := nightsOf(ttftTrend, append(steady(20), 2.4, 2.41, 2.39)...)
	if got := Judge(h, Options{}); got.Outcome != verdict.Fail || got.Since != 23 {
		t.Fatalf("before: %v since %d", got.Outcome, got.Since)
	}
	h.Pins = []metric.Pin{{Run: "r3", Why: "long ago"}, {Run: "r20", Why: "0.20 accepted"}}
	got := Judge(h, Options{})
	must.Hold(t, got.Outcome == verdict.Pass && got.Recorded && got.Since == 3 && got.Pinned != nil && got.Pinned.Run == "r20", "after: %+v", got)
	// If the history lacks the pinned run, the accepted nights are unknown. So tonight gets no
	// verdict.
	for run, words := range map[string]string{
		"lost": "run lost, which was pinned, is not in the history: pin one that is", "r021": "did you mean r21?",
	} {
		h.Pins = append(h.Pins[:2], metric.Pin{Run: run})
		if got := Judge(h, Options{}); got.Outcome != verdict.Error || !strings.Contains(got.Why, words) || len(got.Trends) == 0 {
			t.Errorf("pinned %s: %v, %q", run, got.Outcome, got.Why)
		}
	}
	h.Pins = append(h.Pins, metric.Pin{Run: "r21"})
	if got := Judge(h, Options{}); got.Outcome != verdict.Pass || got.Since != 2 {
		t.Errorf("pinned anew: %v, %q", got.Outcome, got.Why)
	}
}

// If a workload changes, its old series of nights ends and a new one begins. The old series then
// does not count as not measured.
func TestJudgeNightsOtherWorkload(t *testing.T) {
	h := nightsOf(ttftTrend, steady(11)...)
	h.Nights[10].Figures[1].Asked = "b"
	got := Judge(h, Options{})
	must.Need(t, got.Outcome == verdict.Pass && len(got.Trends) == 3, "%+v", got)
	old := got.Trends[1]
	must.Hold(t, old.Outcome == verdict.Skipped && strings.Contains(old.Message, "ends with run r9"), "the old series: %v %s", old.Outcome, old.Message)
	fresh := got.Trends[2]
	must.Hold(t, fresh.Outcome == verdict.Skipped && strings.Contains(fresh.Message, "night 1"), "the new series: %v %s", fresh.Outcome, fresh.Message)
}

// The report of a change has its date, and lists what else changed that night.
func TestJudgeNightsChanges(t *testing.T) {
	values := steady(30)
	for i := 20; i < 30; i++ {
		values[i] *= 1.1
	}
	h := nightsOf(ttftTrend, values...)
	for i := 20; i < 30; i++ {
		h.Nights[i].Servers["vllm"] = metric.Fingerprint{"engine.version": "0.20.0", "gpu.driver": "570"}
	}
	got := Judge(h, Options{})
	tr := got.Trends[1]
	must.Need(t, got.Outcome == verdict.Fail && len(tr.Changes) == 1, "%v with %d changes", got.Outcome, len(tr.Changes))
	c := tr.Changes[0]
	must.Hold(t, c.Run == "r20" && math.Abs(c.After/c.Before-1.1) <= 0.001, "%+v", c)
	must.Same(t, "", []string{"engine.version 0.19.1 → 0.20.0", "gpu.driver unknown → 570"}, c.Differs)
	for i, p := range tr.Points {
		must.Hold(t, p.Alarm == (i >= 20), "night %d: alarm %t", i, p.Alarm)
	}
}

// In a long history the last 1,000 nights are searched for changes, so that the time stays
// proportional to its length. An alarm stands however long ago the change was, and names the latest
// change for the worse.
func TestJudgeManyNights(t *testing.T) {
	const many = 20_000
	values := steady(many)
	for i := many / 2; i < many; i++ {
		values[i] *= 1.1
	}
	for i := many - 300; i < many; i++ {
		values[i] *= 1.1
	}
	got := Judge(nightsOf(ttftTrend, values...), Options{})
	tr := got.Trends[1]
	must.Hold(t, got.Outcome == verdict.Fail && tr.Since == fmt.Sprintf("r%d", many-300), "%v since %s", got.Outcome, tr.Since)
	must.Hold(t, len(tr.Changes) == 1 && tr.Changes[0].Run == fmt.Sprintf("r%d", many-300), "changes %+v", tr.Changes)
}

// BenchmarkManyNights judges 20,000 nights, and 5,000, each with a change that nobody accepted.
func BenchmarkManyNights(b *testing.B) {
	took := map[int]time.Duration{}
	for b.Loop() {
		for _, n := range []int{5_000, 20_000} {
			values := steady(n)
			for i := n / 2; i < n; i++ {
				values[i] *= 1.1
			}
			h := nightsOf(ttftTrend, values...)
			from := time.Now()
			Judge(h, Options{})
			took[n] += time.Since(from)
		}
	}
	b.ReportMetric(float64(took[20_000])/float64(took[5_000]), "times-of-5000")
}

// Simulated and measured nights are never compared with each other.
func TestJudgeNightsMixed(t *testing.T) {
	h := nightsOf(ttftTrend, steady(3)...)
	h.Nights[1].Simulated = true
	got := Judge(h, Options{})
	must.Hold(t, got.Outcome == verdict.Error && strings.Contains(got.Why, "run r1 was simulated, but run r2 was not"), "%v: %s", got.Outcome, got.Why)
}

// A night on another GPU is an error, until a pin accepts the new GPU. Nights on different GPUs are
// not compared.
func TestJudgeNightsOtherGPU(t *testing.T) {
	h := nightsOf(ttftTrend, append(steady(12), 4, 2)...)
	for i := range h.Nights {
		h.Nights[i].Servers = map[string]metric.Fingerprint{"vllm": {"gpu": "1 x H100", "load_time": fmt.Sprint(i)}}
	}
	h.Nights[12].Servers["vllm"]["gpu"] = "1 x H200"
	strange := metric.History{Nights: h.Nights[:13]}
	got := Judge(strange, Options{})
	if got.Outcome != verdict.Error || !strings.Contains(got.Why, "vllm ran on another GPU tonight (1 x H200) than in the nights before (1 x H100)") || got.Accept != "r12" {
		t.Errorf("%v %q, accept %q", got.Outcome, got.Why, got.Accept)
	}
	must.Same(t, "", []string{"vllm: gpu 1 x H100 → 1 x H200"}, got.Differs)
	strange.Pins = []metric.Pin{{Run: "r12"}}
	if got := Judge(strange, Options{}); got.Outcome != verdict.Pass || !got.Recorded {
		t.Errorf("pinned: %v %q", got.Outcome, got.Why)
	}
	got = Judge(h, Options{})
	if got.Outcome != verdict.Pass || len(got.Trends[1].Points) != 13 {
		t.Errorf("back on the first: %v with %d points", got.Outcome, len(got.Trends[1].Points))
	}
}
