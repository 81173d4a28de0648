package assert

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/search"
)

// running returns a level of ten rounds, the last of which is still running. The argument ended is
// the number of requests that have ended in it.
func running(ended int, ttft func(round, i int) float64) *metric.Level {
	l := shape{rounds: 10, perRound: 20, ttft: ttft}.level()
	last := l.Rounds[9]
	last.Samples = last.Samples[:ended]
	last.Complete, last.Busy, last.End, last.WindowEnd = false, 0, 0, 0
	return l
}

func TestJudgeLook(t *testing.T) {
	flat := func(seconds float64) func(int, int) float64 {
		return func(int, int) float64 { return seconds }
	}
	for _, c := range []struct {
		name             string
		level            *metric.Level
		requests, looks  int
		metric, text     string
		want             verdict.Outcome
		invalid, binding string
		log              float64
	}{
		// One look may use an allowed error of 0.05, so 59 good requests suffice: 0.95^59 = 0.0485.
		// Each of three looks may use a third of it, so 80 are needed: 0.95^80 = 0.0165.
		{"59 at one look", running(20, flat(1)), 59, 1, "ttft", "p95 < 2s", verdict.Pass, "", "ttft p95", math.Log(0.5)},
		{"58 at one look", running(20, flat(1)), 58, 1, "ttft", "p95 < 2s", verdict.Inconclusive, "", "ttft p95", math.Log(0.5)},
		{"79 at three looks", running(20, flat(1)), 79, 3, "ttft", "p95 < 2s", verdict.Inconclusive, "", "ttft p95", math.Log(0.5)},
		{"80 at three looks", running(20, flat(1)), 80, 3, "ttft", "p95 < 2s", verdict.Pass, "", "ttft p95", math.Log(0.5)},
		{"all there are", running(20, flat(4)), 200, 1, "ttft", "p95 < 2s", verdict.Fail, "", "ttft p95", math.Log(2)},
		{"in the round under way", running(12, flat(4)), 192, 1, "ttft", "p95 < 2s", verdict.Fail, "", "ttft p95", math.Log(2)},
		// Only the first 100 of the 200 requests are judged, and slow requests start after them.
		{"the first by start", running(20, func(r, _ int) float64 { return []float64{1, 9}[r/5] }), 100, 1, "ttft", "p95 < 2s", verdict.Pass, "", "ttft p95", math.Log(0.5)},
		{"not ended", running(12, flat(1)), 193, 1, "ttft", "p95 < 2s", verdict.Inconclusive, "only 12 of the 13 requests of round 10 have ended", "", 0},
		{"too few", running(20, flat(1)), 201, 1, "ttft", "p95 < 2s", verdict.Inconclusive, "the record holds only 200 of 201 requests", "", 0},
		// The estimated speed of 50 tok/s is better than the limit of 10, so ln(10/50) is negative.
		{"speed", running(20, flat(1)), 100, 1, "speed", "p5 > 10 tok/s", verdict.Pass, "", "speed p5", math.Log(0.2)},
		// All 200 requests are good. With 4 in flight they count as 50 waves. They certify 94 %,
		// because 0.94^50 = 0.045 is below the error of 0.05, but not 95 %: 0.95^50 is 0.077.
		{"success", running(20, flat(1)), 200, 1, "success", "rate >= 94%", verdict.Pass, "", "success rate", -search.MaxLog},
		{"success in few waves", running(20, flat(1)), 200, 1, "success", "rate >= 95%", verdict.Inconclusive, "", "success rate", -search.MaxLog},
		{"nothing measured", running(20, flat(1)), 100, 1, "prefill_speed", "> 10 tok/s", verdict.Inconclusive, "no value", "", 0},
		{"a rate, of what went on until then", running(20, flat(1)), 100, 1, "throughput", "> 10 tok/s", verdict.Pass, "", "throughput", math.NaN()},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, _ := gate(c.level, threshold(c.metric, c.text))
			v := JudgeLook(p, p.Workloads[0], c.level, metric.Look{Requests: c.requests, Planned: c.looks})
			if v.Outcome != c.want || !strings.Contains(v.Invalid, c.invalid) || (v.Invalid == "") != (c.invalid == "") || v.Binding != c.binding {
				t.Fatalf("%v %+v, want %v, binding %q, invalid %q", v, v, c.want, c.binding, c.invalid)
			}
			if c.invalid != "" {
				return
			}
			got := v.Margins[0]
			if !math.IsNaN(c.log) && math.Abs(got.Log-c.log) > 1e-9 || got.Low > got.Log || got.High < got.Log || got.Shown == "" {
				t.Errorf("%+v, want a distance of %v", got, c.log)
			}
			must.Hold(t, (v.Needs != 0) == (v.Outcome == verdict.Inconclusive), "%v needs %d", v.Outcome, v.Needs)
		})
	}
}

// Before the end of a level, an exact statistic fails only if the remaining requests cannot change
// that.
func TestJudgeLookBeforeTheEnd(t *testing.T) {
	for _, c := range []struct {
		name         string
		failed       int // number of failures among the first 200 requests
		metric, text string
		want         verdict.Outcome
	}{
		{"3% of 200, 1.5% of 400", 6, "success", "observed >= 98%", verdict.Inconclusive},
		{"8 of 400", 8, "success", "observed >= 98%", verdict.Inconclusive},
		{"9 of 400", 9, "success", "observed >= 98%", verdict.Fail},
		{"none so far", 0, "success", "observed >= 98%", verdict.Pass},
		{"one is enough", 1, "success", "every", verdict.Fail},
		{"one quick one may come", 0, "ttft", "min < 1s", verdict.Inconclusive},
		{"none is too slow yet", 0, "ttft", "max < 2s", verdict.Pass},
		{"one is too slow", 1, "ttft", "max < 2s", verdict.Fail},
	} {
		l := shape{rounds: 20, perRound: 20, failed: func(r, i int) bool { return i == 0 && r < c.failed }}.level()
		p, _ := gate(l, threshold(c.metric, c.text))
		v := JudgeLook(p, p.Workloads[0], l, metric.Look{Requests: 200, Planned: 1})
		must.Hold(t, v.Outcome == c.want, "%s: %v, want %v", c.name, v, c.want)
		must.Hold(t, (v.Needs > 0) == (c.want == verdict.Inconclusive), "%s: needs %d", c.name, v.Needs)
	}
}

// A mean passes at a look only if the threshold on success passes too, which tokgate adds. But that
// threshold must not make the mean fail early.
func TestJudgeLookAtMeans(t *testing.T) {
	for _, c := range []struct {
		name    string
		failed  int // number of failures among the first 200 of 400 requests
		success string
		warns   bool // success only warns
		want    verdict.Outcome
	}{
		{"success may still hold", 6, "observed >= 98%", false, verdict.Inconclusive},
		{"it cannot", 9, "observed >= 98%", false, verdict.Fail},
		{"it holds", 1, "observed >= 98%", false, verdict.Pass},
		{"success that warns holds", 1, "observed >= 98%", true, verdict.Pass},
		{"success that warns may still hold", 6, "observed >= 98%", true, verdict.Inconclusive},
		{"success that warns cannot", 9, "observed >= 98%", true, verdict.Fail},
		{"every request, where none is written", 1, "", false, verdict.Fail},
	} {
		l := shape{rounds: 20, perRound: 20, failed: func(r, i int) bool { return i == 0 && r < c.failed }}.level()
		p, _ := gate(l, threshold("ttft", "mean < 2s"))
		if w := p.Workloads[0]; c.success != "" {
			success := &plan.SLA{At: []string{l.Name}, Severity: plan.SeverityError, Thresholds: []*plan.Threshold{threshold("success", c.success)}}
			if c.warns {
				success.Severity = plan.SeverityWarn
			}
			w.SLAs = append(w.SLAs, success)
		}
		v := JudgeLook(p, p.Workloads[0], l, metric.Look{Requests: 200, Planned: 1})
		must.Hold(t, v.Outcome == c.want, "%s: %+v, want %v", c.name, v, c.want)
	}
}

// A look at all requests of a level gives the same verdict as the level.
func TestJudgeLookAgreesWithJudge(t *testing.T) {
	for _, text := range []string{"p50 < 2s", "p95 < 2s", "mean < 2s", "max < 2s"} {
		for seed := range 20 {
			scale := 0.2 * float64(1+seed)
			l := shape{rounds: 5, perRound: 40, ttft: func(r, i int) float64 { return scale * (1 + 0.05*float64((r*7+i*13)%11)) }}.level()
			p, run := gate(l, threshold("ttft", text))
			v := Judge(p, run, Options{})
			want := verdictOf(t, v, "sla.ttft."+strings.Fields(text)[0]+" at 4").Outcome
			got := JudgeLook(p, p.Workloads[0], l, metric.Look{Requests: 0, Planned: 1})
			must.Hold(t, got.Outcome == want, "%s at scale %v: a look says %v, the verdict %v", text, scale, got, want)
		}
	}
}

func TestJudgeLookBinds(t *testing.T) {
	l := shape{rounds: 10, perRound: 20, ttft: func(int, int) float64 { return 1.5 }}.level()
	p, _ := gate(l, threshold("ttft", "p95 < 2s"))
	w := p.Workloads[0]
	fails := &plan.SLA{At: []string{"4"}, Severity: plan.SeverityError, Thresholds: []*plan.Threshold{threshold("ttft", "mean < 1s")}}
	w.SLAs[0].AtCapacity = true
	w.SLAs = append(w.SLAs, fails)
	names := func(v search.Judgement) (out []string) {
		for _, t := range v.Margins {
			out = append(out, t.Threshold)
		}
		return out
	}
	// At a level of the plan, all thresholds that can fail the gate decide, even the one on success
	// that tokgate adds. Binding names the threshold that failed.
	v := JudgeLook(p, w, l, metric.Look{Requests: 0, Planned: 1})
	must.Hold(t, v.Outcome == verdict.Fail && v.Binding == "ttft mean" && slices.Equal(names(v), []string{"ttft p95", "ttft mean", "success every"}), "at its level: %+v", v)
	// At a probe of a search, only the thresholds on the capacity decide the outcome.
	probe := *l
	probe.Probe = &metric.Probe{}
	if v := JudgeLook(p, w, &probe, metric.Look{Requests: 0, Planned: 1}); v.Outcome != verdict.Pass || !slices.Equal(names(v), []string{"ttft p95", "success"}) {
		t.Errorf("as a probe: %+v", v)
	}
	// Thresholds that only warn cannot decide a look. Here all thresholds only warn, so the look is
	// inconclusive.
	fails.Severity, w.SLAs[0].Severity = plan.SeverityWarn, plan.SeverityWarn
	if v := JudgeLook(p, w, l, metric.Look{Requests: 0, Planned: 1}); v.Outcome != verdict.Inconclusive || v.Needs != -1 || v.Invalid != "" {
		t.Errorf("nothing binds: %+v", v)
	}
	if v := JudgeLook(p, w, &metric.Level{Skipped: "budget"}, metric.Look{Requests: 0, Planned: 1}); v.Outcome != verdict.Inconclusive || v.Invalid == "" {
		t.Errorf("a level that was not run: %+v", v)
	}
	if v := JudgeLook(nil, nil, nil, metric.Look{Requests: 0, Planned: 1}); v.Outcome != verdict.Inconclusive || v.Invalid == "" {
		t.Errorf("nothing: %+v", v)
	}
}

// An invalid measurement gives no verdict, even if its values are clear.
func TestJudgeLookInvalid(t *testing.T) {
	l := running(20, func(int, int) float64 { return 5 })
	l.Rounds[1].Samples[2].Usage.Output = 7
	p, _ := gate(l, threshold("ttft", "p95 < 2s"))
	v := JudgeLook(p, p.Workloads[0], l, metric.Look{Requests: 100, Planned: 1})
	must.Hold(t, v.Outcome == verdict.Inconclusive && strings.Contains(v.Invalid, "output length"), "an answer that is too short: %+v", v)
	// The first 20 requests do not include the answer that is too short.
	if v := JudgeLook(p, p.Workloads[0], l, metric.Look{Requests: 20, Planned: 1}); v.Invalid != "" {
		t.Errorf("a later answer that is too short: %+v", v)
	}
	// The look is at 190 requests, but one of them has not ended.
	l = running(12, func(int, int) float64 { return 5 })
	last := l.Rounds[9]
	last.Samples = slices.Delete(last.Samples, 3, 4)
	if v := JudgeLook(p, p.Workloads[0], l, metric.Look{Requests: 190, Planned: 1}); v.Outcome != verdict.Inconclusive || !strings.Contains(v.Invalid, "has not ended") {
		t.Errorf("a request is under way: %+v", v)
	}
}

// A look does not change the level.
func TestJudgeLookIsPure(t *testing.T) {
	l := running(12, func(int, int) float64 { return 1 })
	p, _ := gate(l, threshold("ttft", "p95 < 2s"))
	before := len(l.Rounds[9].Samples)
	first := JudgeLook(p, p.Workloads[0], l, metric.Look{Requests: 190, Planned: 2})
	if l.Rounds[9].Complete || l.Rounds[9].Due != 20 || len(l.Rounds[9].Samples) != before || l.Rounds[9].Samples[11].Phase != metric.Measured {
		t.Errorf("the look changed its level: %+v", l.Rounds[9])
	}
	if again := JudgeLook(p, p.Workloads[0], l, metric.Look{Requests: 190, Planned: 2}); !cmp.Equal(again, first) {
		t.Errorf("%+v, then %+v", first, again)
	}
}

// If a level ended early at a look (a planned early judgement), its verdict is that of the look.
func TestJudgeAtTheLastLook(t *testing.T) {
	level := func() *metric.Level {
		l := running(12, func(int, int) float64 { return 1 })
		l.Looks = []metric.Look{{Requests: 60, Planned: 3, Outcome: metric.Inconclusive}, {Requests: 80, Planned: 3, Outcome: metric.Pass}}
		l.Notes = []string{"ended early:\na look was certain"}
		return l
	}
	p, run := gate(level(), threshold("ttft", "p95 < 2s"))
	p.Workloads[0].Loads[0].Levels[0].Requests = 200
	v := Judge(p, run, Options{})
	sla, load := verdictOf(t, v, "sla.ttft.p95 at 4"), verdictOf(t, v, "load at 4")
	must.Hold(t, v.Outcome == verdict.Pass && sla.Effective == 80 && math.Abs(sla.Confidence-(1-0.05/3)) <= 1e-12 && load.N == 80, "%+v\n%+v", sla, load)
	if !strings.Contains(strings.Join(sla.NotesOf(), "\n"), "judged on the 80 requests that started first, at one of 3 planned looks; the confidence is 98.3%, because the looks share the allowed error") || !slices.Contains(load.NotesOf(), "ended early: a look was certain") {
		t.Errorf("notes %q and %q", sla.Notes, load.Notes)
	}
	// Three looks (early judgements) share the allowed error, so 79 good requests are too few to
	// pass.
	l := level()
	l.Looks[1].Requests = 79
	p, run = gate(l, threshold("ttft", "p95 < 2s"))
	if v := Judge(p, run, Options{}); v.Outcome != verdict.Inconclusive {
		t.Errorf("79 requests: %v", names(v))
	}
	// A look at more requests than the level has makes the measurement invalid.
	l = level()
	l.Looks[1].Requests = 199
	p, run = gate(l, threshold("ttft", "p95 < 2s"))
	if v := Judge(p, run, Options{}); v.Outcome != verdict.Error || !strings.Contains(verdictOf(t, v, "load at 4").Message, "have ended") {
		t.Errorf("199 requests: %v", names(v))
	}
}

func BenchmarkJudgeLook(b *testing.B) {
	l := shape{n: 16, rounds: 10, perRound: 80, ttft: slow(1)}.level()
	p, _ := gate(l, threshold("ttft", "p95 < 2s"), threshold("itl", "p95 < 30ms"), threshold("speed", "p5 > 10 tok/s"))
	for b.Loop() {
		JudgeLook(p, p.Workloads[0], l, metric.Look{Requests: 400, Planned: 3})
	}
}

// Idle slots without failed requests are the load generator's fault. A look (early judgement) then
// has an error instead of a verdict on the server.
func TestJudgeLookIdle(t *testing.T) {
	p, run := gate(shape{rounds: 5, perRound: 40}.level(), threshold("ttft", "p95 < 2s"))
	// The level has 5 rounds of 40 requests, and idle rounds are not judged. With up to three idle
	// rounds at least 80 requests remain, which is enough to pass.
	for i, want := range []verdict.Outcome{verdict.Pass, verdict.Pass, verdict.Pass, metric.Saturated, metric.Saturated} {
		run.Levels[0].Rounds[i].Busy = 0.8
		v := JudgeLook(p, p.Workloads[0], run.Levels[0], metric.Look{Planned: 1})
		must.Hold(t, v.Outcome == want && (v.Invalid != "") == (want == metric.Saturated), "in %d rounds: %v: %s", i+1, v.Outcome, v.Invalid)
	}
}
