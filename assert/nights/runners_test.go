package nights

import (
	"math"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// on names the runner of each night of a history.
func on(h metric.History, runners func(i int) string) metric.History {
	for i := range h.Nights {
		h.Nights[i].Job = &metric.Job{Runner: runners(i)}
	}
	return h
}

// A runner is judged by itself after ten nights; with another that has ten, after four. The nights
// before are in the common lane.
func TestLanes(t *testing.T) {
	runners := make([]string, 20)
	for i := range runners {
		runners[i] = "a"
		if i%3 == 2 {
			runners[i] = "b" // nights 2, 5, 8, 11, 14 and 17
		}
	}
	got := lanes(one(alternating(20)...), runners, nil, 7)
	// a has its eleventh night on night 15: 0 1 3 4 6 7 9 10 12 13 15. b has its fifth on night 14,
	// when a has ten earlier nights.
	must.Need(t, len(got) == 3 && got[0].from == 15 && got[1].from == 14 && got[0].living && got[1].living && !got[2].living, "%+v", got)
	must.Same(t, "", []int{8}, got[0].others)
	for i, x := range got[2].values {
		young := i < 14
		must.Hold(t, math.IsNaN(x) != young, "night %d of the common lane: %v", i, x)
	}
	// An alarm of the common lane counts until all its runners are judged by themselves.
	l := got[2]
	must.Hold(t, l.lasts(13, 14) && !l.lasts(13, 15), "the common lane lasts wrongly")
	// With one runner there is one lane, and with none, none.
	if l := lanes(one(1, 2), []string{"a", "a"}, nil, 0); len(l) != 1 || l[0].from != 0 || !l[0].living {
		t.Errorf("%+v", l)
	}
	if l := lanes(one(math.NaN()), []string{"a"}, nil, 0); len(l) != 0 {
		t.Errorf("%+v", l)
	}
}

func TestJudgeRunners(t *testing.T) {
	// Night 30 is the last. Every third night runs on b, which is 10 % slower.
	values := steady(31)
	name := func(i int) string { return pick(i%3 == 2, "b", "a") }
	for i := range values {
		if name(i) == "b" {
			values[i] *= 1.1
		}
	}
	find := func(r Result, runner string) Trend {
		for _, x := range r.Trends {
			if x.Metric == "ttft" && x.Runner == runner {
				return x
			}
		}
		t.Fatalf("no trend of %q in %+v", runner, r.Trends)
		return Trend{}
	}
	r := Judge(on(nightsOf(ttftTrend, values...), name), Options{})
	a, b := find(r, "a"), find(r, "b")
	if r.Outcome != verdict.Pass || a.Outcome != verdict.Pass || b.Outcome != verdict.Skipped || !strings.Contains(b.Message, "tonight ran on another runner; run r29 is the last on this one") {
		t.Errorf("%v: %v, %v %s", r.Outcome, a.Outcome, b.Outcome, b.Message)
	}
	// An alarm of b stays red when the night ran on a.
	for _, i := range []int{23, 26, 29} {
		values[i] *= 1.1
	}
	r = Judge(on(nightsOf(ttftTrend, values...), name), Options{})
	if b := find(r, "b"); r.Outcome != verdict.Fail || b.Outcome != verdict.Fail || !strings.HasPrefix(b.Message, "not measured here tonight, but in run r29: ") {
		t.Errorf("%v: %v %s", r.Outcome, b.Outcome, b.Message)
	}
	// With another runner every night, all nights are one series.
	values = steady(31)
	values[28], values[29], values[30] = 2.2, 2.2, 2.2
	r = Judge(on(nightsOf(ttftTrend, values...), func(i int) string { return strings.Repeat("x", i+1) }), Options{})
	x := find(r, SeveralRunners)
	must.Hold(t, r.Outcome == verdict.Fail && strings.Contains(x.Message, "since run r28"), "%v: %v %s", r.Outcome, x.Outcome, x.Message)
}

// The report says which nights the last one is compared with if the reference has moved.
func TestJudgeMovedReference(t *testing.T) {
	early := steady(30)
	for i := range 6 {
		early[i] *= 1.1
	}
	better := steady(40)
	for i := 20; i < 40; i++ {
		better[i] *= 0.9
	}
	for _, tt := range []struct {
		values []float64
		opts   Options
		words  string
	}{
		{early, Options{}, "the recorded nights are of two levels: compared with the nights since run r6"},
		{better, Options{}, "compared with the better level since run r20, which has lasted"},
		{better, Options{Wait: true}, "To hold later nights to this value, pin run r20"},
		{append(better[:40:40], 2, 2, 2), Options{}, "2 s: since run r40 of 2026-11-10 the value is 11.1% higher, from 1.8 s to 2 s"},
	} {
		x := Judge(nightsOf(ttftTrend, tt.values...), tt.opts).Trends[1]
		must.Hold(t, strings.Contains(x.Message, tt.words), "it says %q, want %q", x.Message, tt.words)
	}
}

// After a pin the noise is known from the nights before, so the fifth night is judged.
func TestJudgePinnedKeepsTheNoise(t *testing.T) {
	h := nightsOf(ttftTrend, append(steady(24), 2.2, 2.2)...)
	h.Pins = []metric.Pin{{Run: "r20"}}
	x := Judge(h, Options{}).Trends[1]
	must.Hold(t, x.Outcome == verdict.Fail && strings.Contains(x.Message, "since run r24"), "%v %s", x.Outcome, x.Message)
	h.Nights = h.Nights[:24]
	if x := Judge(h, Options{}).Trends[1]; x.Outcome != verdict.Skipped || !strings.Contains(x.Message, "this is night 4, and judging begins with night 5") {
		t.Errorf("%v %s", x.Outcome, x.Message)
	}
}

// Several series that change on one night are one event, on the night that fits all of them best.
func TestEvents(t *testing.T) {
	h := nightsOf(ttftTrend, make([]float64, 40)...)
	for i := range h.Nights {
		h.Nights[i].Figures = nil
		for k, level := range []string{"1", "2", "3", "4"} {
			key := ttftTrend
			key.Level = level
			v := 2 * math.Exp(0.02*math.Sin(float64(7*i*i+k)))
			if i >= 30 && k < 3 {
				v *= 1.1
			}
			h.Nights[i].Figures = append(h.Nights[i].Figures, metric.Figure{Trend: key, Value: v})
		}
		if i >= 30 {
			h.Nights[i].Servers["vllm"] = metric.Fingerprint{"engine.version": "0.19.1", "gpu_driver": "580"}
		}
	}
	r := Judge(h, Options{})
	must.Need(t, len(r.Events) == 1 && r.Events[0].Run == "r30" && r.Events[0].Worse, "%+v", r.Events)
	must.Same(t, "", []int{0, 1, 2}, r.Events[0].Trends)
	must.Same(t, "", []string{"vllm: gpu_driver unknown → 580"}, r.Events[0].Differs)
	for _, x := range r.Trends[:3] {
		must.Hold(t, x.Since == "r30" && r.Accept == "r30", "%s since %s, accept %s", x.Level, x.Since, r.Accept)
	}
	got := Judge(nightsOf(ttftTrend, steady(30)...), Options{})
	must.Hold(t, len(got.Events) == 0, "nothing changed: %+v", got.Events)
}

// A slow drift is told as a drift, and accepted by a pin on the last night.
func TestJudgeDrift(t *testing.T) {
	values := steady(60)
	for i := range values {
		values[i] *= math.Exp(0.002 * float64(i))
	}
	x := Judge(nightsOf(ttftTrend, values...), Options{}).Trends[1]
	// 0.2 % a night is 1.4 % a week.
	if x.Outcome != verdict.Fail || x.Since != "r59" || len(x.Changes) != 1 || math.Abs(x.Changes[0].Weekly-0.014) > 0.0005 || !strings.Contains(x.Message, "the value creeps 1.4% a week up since run r0") {
		t.Errorf("%v since %s: %s %+v", x.Outcome, x.Since, x.Message, x.Changes)
	}
}

// The sentence about chance stands only where the noise is of a kind that was tried.
func TestByChance(t *testing.T) {
	few := nightsOf(ttftTrend, steady(30)...)
	must.Same(t, "ordinary noise", 2, Judge(few, Options{}).ByChance)
	values := steady(60)
	for i := 3; i < 60; i += 9 {
		values[i] = 3
	}
	must.Same(t, "many outliers", 0, Judge(nightsOf(ttftTrend, values...), Options{}).ByChance)
	must.Same(t, "nothing judged", 0, Judge(nightsOf(ttftTrend, 2), Options{}).ByChance)
}
