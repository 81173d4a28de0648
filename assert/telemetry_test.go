package assert

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// buckets are the upper bounds, in seconds, of the first buckets of vLLM's histograms.
var buckets = []float64{0.3, 0.5, 0.8, 1, 1.5, 2}

// histogram counts values in buckets.
func histogram(values ...float64) metric.Histogram {
	h := metric.Histogram{Bounds: buckets, Counts: make([]float64, len(buckets)+1)}
	for _, v := range values {
		i, _ := slices.BinarySearch(buckets, v)
		h.Counts[i]++
		h.Sum += v
	}
	return h
}

// times returns a list of the map's keys. Each key is repeated as often as its value says.
func times(counts map[float64]int) []float64 {
	var out []float64
	for v, n := range counts {
		out = append(out, slices.Repeat([]float64{v}, n)...)
	}
	return out
}

// telemetryLevel returns a level with 100 requests in each round. It calls the function tell for
// the server metrics of each round.
func telemetryLevel(rounds int, tell func(round int) *metric.Telemetry) *metric.Level {
	l := shape{rounds: rounds, perRound: 100}.level()
	for i, r := range l.Rounds {
		r.Telemetry = tell(i)
	}
	return l
}

// bound returns a threshold on a server metric.
func bound(name, stat string, op plan.Op, limit float64) *plan.Threshold {
	st, err := metric.ParseStat(stat)
	if err != nil {
		panic(err)
	}
	return &plan.Threshold{Metric: metric.MustLookup(name), Stat: st, Op: op, Limit: limit, Text: fmt.Sprintf("%s %s %v", stat, op, limit)}
}

func judged(t *testing.T, l *metric.Level, th *plan.Threshold, change func(*plan.Plan)) verdict.Verdict {
	t.Helper()
	p, run := gate(l, th)
	if change != nil {
		change(p)
	}
	v := Judge(p, run, Options{})
	name := "sla." + th.Metric.Name
	if s := th.Stat.String(); s != "" {
		name += "." + s
	}
	return verdictOf(t, v, name+" at 4")
}

func TestCountedThresholds(t *testing.T) {
	queue := func(counts map[float64]int) func(int) *metric.Telemetry {
		return func(int) *metric.Telemetry {
			return &metric.Telemetry{Histograms: map[string]metric.Histogram{"queue_wait": histogram(times(counts)...)}}
		}
	}
	estimate := func(p *plan.Plan) { p.Workloads[0].Policy.Decide = plan.Estimate }
	for _, tt := range []struct {
		name    string
		counts  map[float64]int // number of requests in a round, by their queue_wait
		stat    string
		limit   float64
		change  func(*plan.Plan)
		outcome verdict.Outcome
		words   string
	}{
		{"1 of 100 beyond a bound", map[float64]int{0.2: 99, 1.2: 1}, "p95", 1, nil, verdict.Pass, "10 of 1000 requests are over the limit (allowed 5%)"},
		{"10 of 100 beyond a bound", map[float64]int{0.2: 90, 1.2: 10}, "p95", 1, nil, verdict.Fail, "100 of 1000 requests are over"},
		// The limit of 1.2 s is inside the bucket from 1 to 1.5 s. So the ten requests of each
		// round in that bucket may be below or above the limit.
		{"10 of 100 in the limit's bucket", map[float64]int{0.2: 90, 1.2: 10}, "p95", 1.2, nil, verdict.Inconclusive, "0 to 100 of 1000 requests are over"},
		{"the same as an estimate", map[float64]int{0.2: 90, 1.2: 10}, "p95", 1.2, estimate, verdict.Inconclusive, "0 to 100 of 1000 requests are over"},
		{"1 of 100 in the limit's bucket", map[float64]int{0.2: 99, 1.2: 1}, "p95", 1.2, nil, verdict.Pass, "0 to 10 of 1000 requests are over"},
		{"10 of 100 above the limit's bucket", map[float64]int{0.2: 85, 1.2: 5, 1.8: 10}, "p95", 1.2, nil, verdict.Fail, "100 to 150 of 1000"},
		{"5 of 100", map[float64]int{0.2: 95, 1.2: 5}, "p95", 1, nil, verdict.Inconclusive, "50 of 1000"},
		{"5 of 100 as an estimate", map[float64]int{0.2: 95, 1.2: 5}, "p95", 1, estimate, verdict.Pass, "50 of 1000"},
		{"6 of 100 as an estimate", map[float64]int{0.2: 94, 1.2: 6}, "p95", 1, estimate, verdict.Fail, "60 of 1000"},
		{"beyond the last bound", map[float64]int{0.2: 90, 50: 10}, "p95", 3, nil, verdict.Inconclusive, "0 to 100 of 1000"},
		// (90·0.2 + 10·1.2)/100
		{"a mean is exact", map[float64]int{0.2: 90, 1.2: 10}, "mean", 0.31, nil, verdict.Pass, "300 ms < 310 ms"},
		{"a mean over its limit", map[float64]int{0.2: 90, 1.2: 10}, "mean", 0.29, nil, verdict.Fail, "300 ms > 290 ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := judged(t, telemetryLevel(10, queue(tt.counts)), bound("queue_wait", tt.stat, plan.Less, tt.limit), tt.change)
			if v.Outcome != tt.outcome || !strings.Contains(v.Message, tt.words) {
				t.Errorf("%v: %s (%s), want %v with %q", v.Outcome, v.Message, v.Needs, tt.outcome, tt.words)
			}
			if v.Outcome == verdict.Inconclusive && strings.Contains(tt.words, " to ") && !strings.Contains(v.Needs, "do not show on which side") {
				t.Errorf("needs %q", v.Needs)
			}
		})
	}
	// With a single round, each wave of requests counts as one request. The result is then
	// uncertain, because 100 requests with 4 in flight make only 25 waves.
	v := judged(t, telemetryLevel(1, queue(map[float64]int{0.2: 100})), bound("queue_wait", "p95", plan.Less, 1), nil)
	must.Hold(t, v.Outcome == verdict.Inconclusive && v.Effective <= 25, "one round: %v, effective %v", v.Outcome, v.Effective)
	// Rounds that differ make the effective number of requests smaller.
	v = judged(t, telemetryLevel(10, func(i int) *metric.Telemetry {
		k := map[bool]int{true: 30, false: 0}[i == 3]
		return queue(map[float64]int{0.2: 100 - k, 1.2: k})(i)
	}), bound("queue_wait", "p95", plan.Less, 1), nil)
	must.Hold(t, v.Outcome == verdict.Inconclusive && v.Effective <= 300, "one bad round: %v, effective %v: %s", v.Outcome, v.Effective, v.Message)
	// The server's histogram does not contain requests that it never finished, so they count as
	// bad.
	l := telemetryLevel(10, queue(map[float64]int{0.2: 100}))
	for i := range 30 {
		fail(l.Rounds[2].Samples[i])
	}
	v = judged(t, l, bound("queue_wait", "p95", plan.Less, 1), nil)
	must.Hold(t, v.Outcome != verdict.Pass, "30 requests failed: %v, %s", v.Outcome, v.Message)
}

// A verdict from a histogram's buckets never contradicts the verdict from the exact values.
func TestLongCountedIsNotLessStrict(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	decided := 0
	for range 150 {
		scale, limit := 0.1+rng.Float64(), 0.2+2*rng.Float64()
		values := make([][]float64, 8)
		over := 0
		l := telemetryLevel(8, func(i int) *metric.Telemetry {
			for range 100 {
				v := rng.ExpFloat64() * scale
				values[i] = append(values[i], v)
				if v >= limit {
					over++
				}
			}
			return &metric.Telemetry{Histograms: map[string]metric.Histogram{"queue_wait": histogram(values[i]...)}}
		})
		v := judged(t, l, bound("queue_wait", "p90", plan.Less, limit), nil)
		switch share := float64(over) / 800; {
		case v.Outcome == verdict.Pass && share > 0.1, v.Outcome == verdict.Fail && share < 0.1, v.Outcome == verdict.Error:
			t.Fatalf("%v with %d of 800 over %v: %s", v.Outcome, over, limit, v.Message)
		case v.Outcome != verdict.Inconclusive:
			decided++
		}
		if all := slices.Concat(values...); v.Low.OK {
			p, _ := metric.NewDistribution(all, 0, metric.LowerIsBetter).Percentile(90)
			must.Need(t, p >= v.Low.V && p <= v.High.V, "p90 is %v, its bounds %v to %v", p, v.Low.V, v.High.V)
		}
	}
	must.Hold(t, decided >= 75, "%d of 150 were decided", decided)
}

func TestReadThresholds(t *testing.T) {
	tell := func(i int) *metric.Telemetry {
		return &metric.Telemetry{Gauges: map[string]metric.Gauge{"kv_usage": {N: 60, Mean: 0.5 + 0.01*float64(i%2), Min: 0.2, Max: 0.98}}}
	}
	for _, tt := range []struct {
		stat    string
		op      plan.Op
		limit   float64
		outcome verdict.Outcome
		words   string
	}{
		{"max", plan.Less, 0.95, verdict.Fail, "kv_usage max 98% > 95% in 300 readings"},
		{"max", plan.LessEqual, 0.98, verdict.Pass, "in 300 readings"},
		{"min", plan.Less, 0.3, verdict.Pass, "20% < 30%"},
		{"mean", plan.Less, 0.55, verdict.Pass, "over 5 rounds"},
		{"mean", plan.Less, 0.504, verdict.Inconclusive, "over 5 rounds"},
		{"mean", plan.Less, 0.45, verdict.Fail, "over 5 rounds"},
	} {
		v := judged(t, telemetryLevel(5, tell), bound("kv_usage", tt.stat, tt.op, tt.limit), nil)
		must.Hold(t, v.Outcome == tt.outcome && strings.Contains(v.Message, tt.words), "%s %s %v: %v: %s", tt.stat, tt.op, tt.limit, v.Outcome, v.Message)
		must.Hold(t, tt.stat != "max" || strings.Contains(strings.Join(v.NotesOf(), ";"), "it says nothing about the time between readings"), "notes %q", v.Notes)
	}
	// A statistic has no value if more than one reading in twenty failed. For example, a missed
	// reading may have been the highest.
	patchy := func(i int) *metric.Telemetry {
		tm := tell(i)
		tm.Gauges["kv_usage"] = metric.Gauge{N: 60, Mean: 0.5, Min: 0.2, Max: 0.6, Missed: 4, Why: "503"}
		return tm
	}
	for _, stat := range []string{"max", "min", "mean"} {
		v := judged(t, telemetryLevel(5, patchy), bound("kv_usage", stat, plan.Less, 0.95), nil)
		if v.Outcome != verdict.Error || v.Message != "kv_usage "+stat+" has no value: 20 of 320 readings failed: 503" {
			t.Errorf("%s with missed readings: %v: %s", stat, v.Outcome, v.Message)
		}
	}
	// The mean of a single round has no interval.
	v := judged(t, telemetryLevel(1, tell), bound("kv_usage", "mean", plan.Less, 0.9), nil)
	must.Hold(t, v.Outcome == verdict.Inconclusive, "one round: %v", v.Outcome)
}

func TestToldThresholds(t *testing.T) {
	tell := func(i int) *metric.Telemetry {
		return &metric.Telemetry{
			Added: map[string]float64{
				metric.Preempted: float64(i % 2), metric.AcceptedTokens: 70 + float64(i%2), metric.DraftTokens: 100, metric.Drafts: 50,
				metric.PrefillTokens: 1000, metric.PrefillSeconds: 0.5 + 0.01*float64(i%2),
			},
			Gauges: map[string]metric.Gauge{"power": {N: 10, Mean: 500 + float64(i%2), Min: 400, Max: 600}},
		}
	}
	prices := func(hour, electricity float64) func(*plan.Plan) {
		return func(p *plan.Plan) {
			p.Prices = &plan.Prices{Currency: "USD", PerHour: map[string]float64{"sim": hour}, Electricity: electricity}
		}
	}
	for _, tt := range []struct {
		name    string
		op      plan.Op
		limit   float64
		change  func(*plan.Plan)
		outcome verdict.Outcome
		words   string
	}{
		{"preemptions", plan.Less, 1, nil, verdict.Fail, "preemptions 2 > 1"}, // two rounds have one each
		{"preemptions", plan.LessEqual, 2, nil, verdict.Pass, "preemptions 2 = 2"},
		{"accept_rate", plan.Greater, 0.6, nil, verdict.Pass, "70.4% > 60%"},
		{"accept_rate", plan.Greater, 0.704, nil, verdict.Inconclusive, "5 rounds"},
		{"accept_length", plan.Greater, 3, nil, verdict.Fail, "2.41 tokens < 3 tokens"}, // 1 + 352/250
		{"prefill_speed", plan.Greater, 1900, nil, verdict.Pass, "5 rounds"},
		{"energy_per_token", plan.Less, 100, nil, verdict.Pass, "5 rounds"},
		{"cost_per_hour", plan.Less, 3, prices(2.5, 0), verdict.Pass, "cost_per_hour 2.5"},
		{"cost_per_hour", plan.Less, 2, prices(2.5, 0), verdict.Fail, "cost_per_hour 2.5"},
		// The server costs 2.50 an hour, plus 0.5 kW at 0.10 per kWh.
		{"cost_per_hour", plan.Less, 2.6, prices(2.5, 0.1), verdict.Pass, "2.55"},
		{"cost_per_hour", plan.Less, 3, nil, verdict.Error, "the plan has no prices for the server"},
		{"cost_per_million_tokens", plan.Less, 1, prices(2.5, 0), verdict.Fail, "5 rounds"},
	} {
		v := judged(t, telemetryLevel(5, tell), bound(tt.name, "", tt.op, tt.limit), tt.change)
		if v.Outcome != tt.outcome || !strings.Contains(v.Message, tt.words) {
			t.Errorf("%s %s %v: %v: %s, want %v with %q", tt.name, tt.op, tt.limit, v.Outcome, v.Message, tt.outcome, tt.words)
		}
	}
}

// Without telemetry, a threshold on a server metric never passes. Its outcome is an error, even if
// only one round has no telemetry.
func TestLongNothingToldFailsClosed(t *testing.T) {
	levels := map[string]*metric.Level{
		"nothing was read": telemetryLevel(5, func(int) *metric.Telemetry { return nil }),
		"404 Not Found": telemetryLevel(5, func(i int) *metric.Telemetry {
			missing := map[string]string{}
			for _, d := range metric.Defs {
				missing[d.Name] = "404 Not Found"
			}
			return &metric.Telemetry{Missing: missing}
		}),
	}
	// Four rounds have telemetry, and one has not.
	half := telemetryLevel(5, func(i int) *metric.Telemetry {
		if i == 4 {
			return &metric.Telemetry{Missing: map[string]string{"kv_usage": "500", "queue_wait": "500", "preemptions": "500"}}
		}
		return &metric.Telemetry{
			Added: map[string]float64{metric.Preempted: 0}, Gauges: map[string]metric.Gauge{"kv_usage": {N: 1}},
			Histograms: map[string]metric.Histogram{"queue_wait": histogram(0.1)},
		}
	})
	for _, def := range metric.Defs {
		if def.Source == metric.Client {
			continue
		}
		stats := map[metric.Scope][]string{metric.Counted: {"mean", "p95"}, metric.PerReading: {"mean", "min", "max"}, metric.PerLevel: {""}}[def.Scope]
		must.Need(t, len(stats) != 0, "%s has the scope %v", def.Name, def.Scope)
		for _, st := range stats {
			for _, op := range []plan.Op{plan.Less, plan.Greater} {
				for why, l := range levels {
					v := judged(t, l, bound(def.Name, st, op, 1), nil)
					if v.Outcome != verdict.Error || !strings.Contains(v.Message, "has no value") || v.Value.OK {
						t.Errorf("%s %s %s with %s: %v: %s", def.Name, st, op, why, v.Outcome, v.Message)
					}
				}
				v := judged(t, half, bound(def.Name, st, op, 1), nil)
				must.Hold(t, v.Outcome == verdict.Error, "%s %s %s of four rounds: %v: %s", def.Name, st, op, v.Outcome, v.Message)
			}
		}
	}
	v := judged(t, levels["404 Not Found"], bound("kv_usage", "max", plan.Less, 1), nil)
	must.Hold(t, v.Message == "kv_usage max has no value: 404 Not Found", "message %q", v.Message)
}

// Only a failed threshold has a note on what the server was doing.
func TestFailedThresholdsSayWhatTheServerDid(t *testing.T) {
	l := telemetryLevel(5, func(int) *metric.Telemetry {
		return &metric.Telemetry{
			Added: map[string]float64{metric.Preempted: 3},
			Gauges: map[string]metric.Gauge{
				"waiting": {N: 10, Mean: 6.2, Max: 11}, "running": {N: 10, Mean: 4, Max: 4}, "kv_usage": {N: 10, Mean: 0.8, Max: 0.98},
				"gpu_clock": {N: 10, Mean: 1.5e9, Min: 1.2e9, Max: 1.7e9},
			},
			Histograms: map[string]metric.Histogram{"queue_wait": histogram(1.2, 1.4)},
		}
	})
	p, run := gate(l, threshold("ttft", "p95 < 1us"), threshold("ttft", "p95 < 2s"))
	v := Judge(p, run, Options{})
	failed := verdictOf(t, v, "sla.ttft.p95 at 4")
	const want = "the server then: the queue held up to 11 requests, and 6.2 on average; up to 4 requests ran at once; the KV cache was up to 98% full; 15 preemptions; " +
		"requests waited 1.3 s on average; the clock of a GPU fell to 1.2 GHz from 1.7 GHz"
	must.Hold(t, failed.Outcome == verdict.Fail && slices.Contains(failed.NotesOf(), want), "%v, notes %q", failed.Outcome, failed.Notes)
	for _, x := range v.List {
		must.Hold(t, x.Outcome != verdict.Pass || !strings.Contains(strings.Join(x.NotesOf(), ";"), "the server then"), "%s passes and says %q", x.Name, x.Notes)
	}
	must.Same(t, "without telemetry", "", doing(&metric.Level{Rounds: []*metric.Round{{}}}))
}

func TestAssertsOnTelemetry(t *testing.T) {
	l := telemetryLevel(5, func(int) *metric.Telemetry {
		return &metric.Telemetry{
			Added:      map[string]float64{metric.Preempted: 0, metric.AcceptedTokens: 120, metric.DraftTokens: 200, metric.Drafts: 100, metric.AcceptedAt(0): 80, metric.AcceptedAt(1): 40},
			Gauges:     map[string]metric.Gauge{"kv_usage": {N: 10, Mean: 0.8, Max: 0.98}},
			Histograms: map[string]metric.Histogram{"queue_wait": histogram(0.2, 0.4)},
			Missing:    map[string]string{"power": "no telemetry"},
		}
	})
	for condition, want := range map[string]verdict.Outcome{
		"result.sim.chat.level[4].preemptions == 0":            verdict.Pass,
		"result.sim.chat.level[4].kv_usage.max < 0.95":         verdict.Fail,
		"result.sim.chat.level[4].queue_wait.mean < 0.31":      verdict.Pass,
		"result.sim.chat.level[4].queue_wait.p95 <= 0.5":       verdict.Pass,
		"result.sim.chat.level[4].accept_rate_at[1] > 0.35":    verdict.Pass,
		"length(result.sim.chat.level[4].accept_rate_at) == 2": verdict.Pass,
		"result.sim.chat.level[4].power.max < 300":             verdict.Error,
		"result.sim.chat.level[4].power.max != 300":            verdict.Error,
		"try(result.sim.chat.level[4].decode.mean, 0) == 0":    verdict.Error,
		"result.sim.chat.level[4].cost_per_hour < 3":           verdict.Error,
		"result.sim.chat.level[4].accept_rate_at[7] > 0":       verdict.Error,
	} {
		p := load(t, fmt.Sprintf(`
server "sim" {
  simulator {}
}
workload "chat" {
  input_tokens  = 1000
  output_tokens = 11
  load {
    concurrency = 4
    requests    = 500
    seeds       = [1, 2, 3, 4, 5]
  }
}
assert "told" {
  condition     = %s
  error_message = "not so"
}
`, condition))
		l.Asked = nil
		run := &metric.Run{Servers: []*metric.ServerRun{{Address: "sim"}}, Levels: []*metric.Level{l}, End: time.Hour}
		v := verdictOf(t, Judge(p, run, Options{}), "told")
		must.Hold(t, v.Outcome == want, "%s: %v, want %v: %s", condition, v.Outcome, want, v.Message)
	}
}

// A metrics page may belong to a different server, which is not under load. The short queue of that
// server shows nothing about the tested server.
func TestPageOfAnotherServer(t *testing.T) {
	tell := func(generated float64) func(int) *metric.Telemetry {
		return func(int) *metric.Telemetry {
			return &metric.Telemetry{
				From: 0, To: time.Hour,
				Added:      map[string]float64{metric.GeneratedTokens: generated, metric.Preempted: 0},
				Gauges:     map[string]metric.Gauge{"waiting": {N: 50}, "kv_usage": {N: 50}},
				Histograms: map[string]metric.Histogram{"queue_wait": histogram(times(map[float64]int{0.2: 100})...)},
			}
		}
	}
	for _, th := range []*plan.Threshold{
		bound("waiting", "max", plan.Less, 5), bound("preemptions", "", plan.Less, 1), bound("queue_wait", "mean", plan.Less, 1), bound("queue_wait", "p95", plan.Less, 1),
	} {
		for _, tt := range []struct {
			generated float64 // tokens that the server counts in a round; the client counts 1100
			want      verdict.Outcome
		}{{1100, verdict.Pass}, {1300, verdict.Pass}, {550, verdict.Pass}, {549, verdict.Error}, {0, verdict.Error}} {
			v := judged(t, telemetryLevel(10, tell(tt.generated)), th, nil)
			if v.Outcome != tt.want || tt.want == verdict.Error && !strings.Contains(v.Message, "the page belongs to another server") {
				t.Errorf("%s with %v tokens: %v: %s", label(th), tt.generated, v.Outcome, v.Message)
			}
		}
	}
	// GPU metrics do not come from the server, so they still have values.
	l := telemetryLevel(10, func(int) *metric.Telemetry {
		return &metric.Telemetry{To: time.Hour, Added: map[string]float64{metric.GeneratedTokens: 0}, Gauges: map[string]metric.Gauge{"gpu_temperature": {N: 50, Mean: 60, Max: 60, Min: 60}}}
	})
	v := judged(t, l, bound("gpu_temperature", "max", plan.Less, 80), nil)
	must.Hold(t, v.Outcome == verdict.Pass, "%v: %s", v.Outcome, v.Message)
}
