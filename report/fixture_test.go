package report

import (
	"math"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// hostile is text that a server may send: escape sequences, control characters,
// broken UTF-8, a bidirectional override, markup of every output, commands of CI
// systems at the start of a line, wide characters.
const hostile = "\x1b[31mCUDA out of memory\x1b[0m\x00\x07\r\n::error file=x::pwned\n##[command]rm\n  ::set-output name=a::b\n]]></failure><failure>|a|`b`|<script>alert(1)</script> \xff\xfe \u202egnp.exe @everyone 漢字🚀 &amp; $x$ https://evil.example/"

const secret = "sk-very-secret-token"

func ms(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

// fixture returns a recorded run with everything that a run may contain. One of its two servers did
// not start. It has levels that pass, fail or were never run. It also has failed requests, a metric
// without values, and infinite percentiles.
func fixture() (*metric.Run, *plan.Plan, assert.Verdicts, Meta) {
	run := &metric.Run{
		ID: "20261120T140500Z-3f9c", Tool: "0.1.0", Plan: "plans/chatbot.hcl",
		PlanHash: strings.Repeat("ab", 32),
		Started:  time.Date(2026, 11, 20, 14, 5, 0, 0, time.UTC),
		Salt:     math.MaxUint64, // more digits than readers of JSON numbers keep
		End:      12*time.Minute + 3*time.Second,
		Servers: []*metric.ServerRun{
			{Address: `vllm["on"]`, Fingerprint: metric.Fingerprint{
				"engine": "vllm", "engine.version": "0.19.1", "model": "Qwen/Qwen3.6-35B-A3B-FP8 | <b>x</b>",
				"gpu": "1 x RTX PRO 6000",
			}},
			{Address: `vllm["off"]`, Fingerprint: metric.Fingerprint{"engine": "vllm"},
				Error: "the server did not become ready within 20m: " + hostile,
				Log:   "loading weights 10%\rloading weights 90%\r\nkey " + secret + "\n" + hostile + "\n"},
		},
	}
	level := func(server, name string, n, requests int, ttft float64) *metric.Level {
		l := &metric.Level{Server: server, Workload: "general_chatbot", Name: name, Kind: metric.ClosedLoop, N: n, Exact: true}
		for r := range 2 {
			start := time.Duration(r) * time.Minute
			round := &metric.Round{
				Index: r, Seed: int64(42 + r), Due: requests, Complete: true,
				Start: start, End: start + 50*time.Second, WindowStart: start + 2*time.Second, WindowEnd: start + 48*time.Second,
				Busy: 0.993, Health: metric.Health{CPU: 0.12, GCPause: 300 * time.Microsecond, Delay: 80 * time.Microsecond},
			}
			for i := range requests {
				sent := start + ms(float64(i)*100)
				first := sent + ms(ttft*(1+float64(i%10)/10))
				s := &metric.Sample{
					Server: server, Workload: "general_chatbot", Level: name, Round: r, Slot: i % n, Order: i,
					Phase: metric.Measured, Scheduled: sent, Sent: sent, Headers: sent + ms(5),
					First: first, FirstAnswer: first, Chunks: 3, FirstTokens: 1,
					InputAsked: 1024, OutputAsked: 21, Status: 200, Finish: "length",
					Usage: &metric.Usage{Input: 1024, Output: 21, Cached: 0},
				}
				s.Gaps.Add(ms(200))
				s.Gaps.Add(ms(220))
				s.Last = first + ms(420)
				s.End = s.Last + ms(1)
				round.Samples = append(round.Samples, s)
			}
			l.Rounds = append(l.Rounds, round)
		}
		return l
	}
	fail := func(l *metric.Level, every int, kind metric.FailureKind, message string) {
		for _, r := range l.Rounds {
			for i, s := range r.Samples {
				if i%every == 0 {
					s.Failure = &metric.Failure{Kind: kind, Message: message}
					s.First, s.FirstAnswer, s.Last, s.Usage, s.Gaps, s.Chunks, s.Finish = 0, 0, 0, nil, nil, 0, ""
				}
			}
		}
	}
	one := level(`vllm["on"]`, "1", 1, 30, 200)
	for _, r := range one.Rounds { // without FirstAnswer, a request has no ttfa
		for _, s := range r.Samples {
			s.FirstAnswer = 0
		}
	}
	thirty := level(`vllm["on"]`, "30", 30, 60, 5000)
	fail(thirty, 10, metric.FailStatus, hostile)
	fail(thirty, 15, metric.FailTimeout, "no answer within 1m, header Authorization: Bearer "+secret)
	thirty.Rounds[1].Samples[7].Reconnects = 2
	for i, r := range thirty.Rounds { // the server's own metrics
		at := r.Start.Milliseconds()
		r.Telemetry = &metric.Telemetry{
			From: r.WindowStart, To: r.WindowEnd, Reads: 5, Failed: i,
			Added: map[string]float64{metric.Preempted: 7, metric.AcceptedTokens: 120, metric.DraftTokens: 200, metric.Drafts: 100,
				metric.AcceptedAt(0): 80, metric.AcceptedAt(1): 40},
			Histograms: map[string]metric.Histogram{"queue_wait": {Bounds: []float64{0.3, 0.5, 1}, Counts: []float64{30, 20, 8, 2}, Sum: 24}},
			Gauges: map[string]metric.Gauge{"waiting": {N: 4, Mean: 6.5, Min: 2, Max: 11}, "kv_usage": {N: 4, Mean: 0.9, Min: 0.7, Max: 0.98},
				"power": {N: 4, Mean: 540, Min: 480, Max: 600}},
			Series: []metric.Series{
				{Metric: "waiting", At: []int64{at, at + 10_000, at + 20_000}, Values: []float64{2, 11, 6.5}},
				{Metric: "power", At: []int64{at, at + 10_000, at + 20_000}, Values: []float64{480, 600, 540}},
			},
			Missing: map[string]string{"running": "the page says " + hostile},
		}
	}
	thirty.Rounds[1].Health.CPU = -1
	thirty.Rounds[1].Complete, thirty.Rounds[1].Stopped = false, "budget"
	burst := &metric.Level{Server: `vllm["on"]`, Workload: "general_chatbot", Name: "burst 8", Kind: metric.Burst, N: 8,
		Skipped: "the budget of 12m was spent"}
	off := &metric.Level{Server: `vllm["off"]`, Workload: "general_chatbot", Name: "1", Kind: metric.ClosedLoop, N: 1,
		Skipped: "the server did not start"}
	probe := level(`vllm["on"]`, "probe 24", 24, 40, 4000)
	probe.Probe, probe.Looks = &metric.Probe{Purpose: "bisect"}, []metric.Look{{Requests: 40, Planned: 2, Outcome: metric.Inconclusive}, {Requests: 80, Planned: 2, Outcome: metric.Pass}}
	probe.Notes = []string{"it ended early: certain after 80 requests"}
	thirty.Rounds[0].Health.Stall = 40 * time.Millisecond
	// The function rate makes a level of an open loop: it moves the samples of a closed-loop level,
	// which are 100 ms apart, to the given rate.
	rate := func(name string, perSecond, ttft float64) *metric.Level {
		l := level(`vllm["on"]`, name, 1, 40, ttft)
		l.Kind, l.N, l.Rate, l.Saturation = metric.OpenLoop, 0, perSecond, []float64{9.2, 9.6, 9.4}
		for _, r := range l.Rounds {
			for i, s := range r.Samples {
				s.FromDue = true
				for _, at := range []*time.Duration{&s.Scheduled, &s.Sent, &s.Headers, &s.First, &s.FirstAnswer, &s.Last, &s.End} {
					*at += ms(float64(i) * (1000/perSecond - 100))
				}
			}
		}
		return l
	}
	run.Levels = []*metric.Level{one, thirty, burst, off, probe, rate("5 req/s", 5, 400), rate("8 req/s", 8, 2000)}
	run.Capacities = []*metric.Capacity{{
		Server: `vllm["on"]`, Workload: "general_chatbot", Over: metric.ClosedLoop, From: 1, UpTo: 125, Require: 26,
		Bracket: metric.Bracket{Kind: metric.CapacityInterpolated, Pass: 24, Fail: 30, Crossing: 27.4, CrossingLow: 24.8, Binding: "ttft p95", AtPass: "7.6 s", AtFail: "8.5 s", NonMonotone: [][2]int{{30, 32}}}, Spent: 7*time.Minute + 12*time.Second,
		Reason: "27 could not be decided | " + hostile, Notes: []string{"32 passed above 30, which failed: the lower answer stands"},
		Line: "~27 requests in flight (24 passes, 30 fails), not confirmed · limited by ttft p95: 7.6 s at 24, 8.5 s at 30",
		Probes: []metric.CapacityProbe{
			{N: 30, Purpose: "known", Level: "30", Requests: 120, Outcome: metric.Fail, Binding: "ttft p95", Shown: "8.5 s"},
			{N: 24, Purpose: "bisect", Level: "probe 24", Requests: 80, Outcome: metric.Pass, Binding: "ttft p95", Shown: "7.6 s", Spent: 3 * time.Minute},
			{N: 27, Purpose: "bisect", Level: "probe 27", Requests: 800, Outcome: metric.Inconclusive, Binding: "a name that is far too long for any table of probes", Shown: "∞", Note: "cut short | by the budget", Spent: 4*time.Minute + 12*time.Second},
			{N: 26, Purpose: "bisect", Level: "probe 26", Requests: 40, Outcome: metric.Saturated, Note: "the load generator may have read and sent up to " + hostile},
		},
	}}

	at := func(line int) hcl.Range {
		return hcl.Range{Filename: "plans/chatbot.hcl", Start: hcl.Pos{Line: line, Column: 5}}
	}
	threshold := func(name, stat string, op plan.Op, limit float64, text string, line int) *plan.Threshold {
		def, _ := metric.Lookup(name)
		st, err := metric.ParseStat(stat)
		if err != nil {
			panic(err)
		}
		return &plan.Threshold{Metric: def, Stat: st, Op: op, Limit: limit, Text: text, Range: at(line)}
	}
	servers := []*plan.Server{{Name: "vllm", Key: "on"}, {Name: "vllm", Key: "off"}}
	p := &plan.Plan{
		Path: "plans/chatbot.hcl", Hash: run.PlanHash, Servers: servers,
		Gate: plan.Gate{Policy: plan.Policy{Confidence: 0.95, Decide: plan.Certified, OnInconclusive: plan.Stop}, Budget: 12 * time.Minute},
		Workloads: []*plan.Workload{{Name: "general_chatbot", Words: plan.Words{Description: "Questions | and <answers>"}, Servers: servers, Input: 1024,
			Output: plan.Output{Mean: 21}, Policy: plan.Policy{OnInconclusive: plan.Stop}}},
		Files:   map[string]*hcl.File{"plans/chatbot.hcl": {Bytes: []byte(source())}},
		Secrets: []string{secret, "x"},
	}

	p.Workloads[0].SLAs = []*plan.SLA{
		{At: []string{"1", "30"}, AtCapacity: true, Severity: plan.SeverityError, Thresholds: []*plan.Threshold{threshold("ttft", "p95", plan.Less, 8, "p95 < 8s", 42)}},
		{At: []string{"30"}, Severity: plan.SeverityWarn, Thresholds: []*plan.Threshold{threshold("success", "rate", plan.GreaterEqual, 0.98, "rate >= 98%", 47)}},
	}

	sla := func(level, name string, o verdict.Outcome, th *plan.Threshold, message string) verdict.Verdict {
		return verdict.Verdict{
			Kind: verdict.KindSLA, Server: `vllm["on"]`, Workload: "general_chatbot", Level: level, Name: name, Outcome: o,
			Severity: verdict.SeverityError, Message: message, Threshold: assert.ThresholdOf(th), Test: verdict.Test{Decide: string(plan.Certified), Interval: verdict.Interval{Confidence: 0.95}},
			Place: verdict.Place{File: th.Range.Filename, Line: th.Range.Start.Line},
		}
	}
	ttft := threshold("ttft", "p95", plan.Less, 8, "p95 < 8s", 42)
	pass := sla("1", "sla.ttft.p95 at 1", verdict.Pass, ttft, "ttft p95 380 ms < 8 s: 0 of 60 requests over (0%, allowed 5%), 95% bounds 360 ms to 390 ms")
	pass.Value, pass.Low, pass.High, pass.N, pass.Effective = metric.Some(0.38), metric.Some(0.36), metric.Some(0.39), 60, 60
	failed := sla("30", "sla.ttft.p95 at 30", verdict.Fail, ttft, "ttft p95 ∞ > 8 s: 20 of 120 requests over (16.7%, allowed 5%), 95% bounds 8.5 s to ∞")
	failed.Value, failed.Low, failed.High = metric.Some(math.Inf(1)), metric.Some(8.5), metric.Some(math.Inf(1))
	failed.N, failed.Effective, failed.Over = 120, 88.5, 20
	failed.Notes = []verdict.Note{{Text: "the values of 6 rounds differ so much that 120 requests count as only 88 independent requests"}}
	speed := sla("30", "sla.speed.p5 at 30", verdict.Inconclusive, threshold("speed", "p5", plan.Greater, 10, "p5 > 10 tok/s", 43),
		"speed p5 10.2 tok/s > 10 tok/s: 5 of 104 requests below (4.81%, allowed 5%), 95% bounds 9.1 tok/s to 11 tok/s")
	speed.Value, speed.Low, speed.High, speed.N, speed.Effective = metric.Some(10.2), metric.Some(9.1), metric.Some(11), 104, 60.2
	speed.Needs = "needs about 240 more requests, 4 min"
	warn := sla("30", "sla.success.rate at 30", verdict.Fail, threshold("success", "rate", plan.GreaterEqual, 0.98, "rate >= 98%", 47),
		"success rate 86.7% < 98%: 16 of 120 requests failed (13.3%, allowed 2%)")
	warn.Severity = verdict.SeverityWarn
	warn.Value, warn.N, warn.Effective = metric.Some(104.0/120), 120, 120
	ttfa := sla("1", "sla.ttfa.mean at 1", verdict.Error, threshold("ttfa", "mean", plan.Less, 2, "mean < 2s", 44), "ttfa mean has no value: no answer came")
	ttfa.Value = metric.None("no answer came")
	skipped := sla("burst 8", "sla.ttft.p95 at burst 8", verdict.Skipped, ttft, "the budget of 12m was spent")

	v := assert.Verdicts{Outcome: verdict.Error, List: []verdict.Verdict{
		{Kind: verdict.KindServer, Server: `vllm["on"]`, Name: "start", Outcome: verdict.Pass, Message: "ready after 3m12s", Place: verdict.Place{File: "plans/chatbot.hcl", Line: 12}},
		{Kind: verdict.KindServer, Server: `vllm["off"]`, Name: "start", Outcome: verdict.Error, Cause: verdict.CauseServer, Message: run.Servers[1].Error, Place: verdict.Place{File: "plans/chatbot.hcl", Line: 12}},
		{Kind: verdict.KindLoad, Server: `vllm["on"]`, Workload: "general_chatbot", Level: "1", Name: "load at 1", Outcome: verdict.Pass,
			Message: "60 of 60 requests completed in 3 rounds", Place: verdict.Place{File: "plans/chatbot.hcl", Line: 30},
			Notes: []verdict.Note{{Text: "lock-step: the slots send at the same times (synchrony 0.82), so their prompts are processed together, and TTFT is longer than for requests that are spread over time"}}},
		pass, ttfa,
		{Kind: verdict.KindLoad, Server: `vllm["on"]`, Workload: "general_chatbot", Level: "30", Name: "load at 30", Outcome: verdict.Error,
			Cause: verdict.CauseGenerator, Message: "the load generator may have read and sent up to 1.2 s late", Place: verdict.Place{File: "plans/chatbot.hcl", Line: 30}},
		failed, speed, warn,
		{Kind: verdict.KindLoad, Server: `vllm["on"]`, Workload: "general_chatbot", Level: "burst 8", Name: "load at burst 8", Outcome: verdict.Skipped,
			Message: "the budget of 12m was spent", Place: verdict.Place{File: "plans/chatbot.hcl", Line: 30}},
		skipped,
		{Kind: verdict.KindLoad, Server: `vllm["off"]`, Workload: "general_chatbot", Level: "1", Name: "load at 1", Outcome: verdict.Skipped,
			Message: "the server did not start", Place: verdict.Place{File: "plans/chatbot.hcl", Line: 30}},
		{Kind: "capacity", Server: `vllm["on"]`, Workload: "general_chatbot", Name: "capacity", Outcome: verdict.Inconclusive,
			Message: run.Capacities[0].Line + "; the plan requires 26", Lack: verdict.Lack{Needs: "needs a larger budget, or more requests, to decide whether the capacity is at least 26"}, Capacity: run.Capacities[0],
			Notes: []verdict.Note{{Text: "24 was not confirmed on fresh requests"}, {Text: "another"}}, Place: verdict.Place{File: "plans/chatbot.hcl", Line: 50}},
		{Kind: verdict.KindAssert, Name: "on is faster | " + hostile, Outcome: verdict.Fail, Severity: verdict.SeverityError,
			Message: "the candidate is slower: " + hostile, Place: verdict.Place{File: "plans/chatbot.hcl", Line: 60}, Notes: []verdict.Note{{Text: "a point estimate"}}},
	}}
	m := Meta{Strength: &Strength{Says: "A server that decodes 2 times slower would pass.", Basis: "a recorded run", Planted: []Planted{
		{"decode × 2", 1, 0, 0}, {"decode × 10", 0, 0, 1}, {"stalls", 0, 1, 0},
	}}, ExitCode: verdict.ExitError, Host: "runner-7", Folder: "results/chatbot",
		Calibration: &metric.Calibration{Streams: 64, Rate: 3200, Delay50: 40 * time.Microsecond, Delay99: 210 * time.Microsecond, CPU: 0.31, Took: 1500 * time.Millisecond}}
	return run, p, v, m
}

// source returns a plan of 60 lines, with a secret and text like markup.
func source() string {
	lines := make([]string, 60)
	lines[0] = "# " + strings.ReplaceAll(strings.ReplaceAll(hostile, "\n", " "), "\r", "")
	lines[11] = `server "vllm" {`
	lines[12] = "\tapi_key = \"" + secret + `" # </code><script>alert(2)</script>`
	lines[41] = `    ttft  = "p95 < 8s" # time to first token`
	lines[46] = `    success = "rate >= 98%"`
	return strings.Join(lines, "\n") + "\n"
}

func document() *Document {
	run, p, v, m := fixture()
	return New(run, p, v, m)
}

// passing returns a small document in which everything passes.
func passing() *Document {
	run, p, v, m := fixture()
	run.Servers, run.Levels, p.Servers = run.Servers[:1], run.Levels[:1], p.Servers[:1]
	c := run.Capacities[0]
	c.Kind, c.Pass, c.Fail, c.Require, c.Confirmed, c.NonMonotone, c.Notes, c.Reason = metric.CapacityExact, 39, 40, 30, true, nil, nil, "the limit is found to within the resolution"
	c.Crossing, c.CrossingLow, c.CrossingHigh, c.Spent = 39.5, 38.8, 41, 9*time.Minute
	c.Line = "39 requests in flight · limited by ttft p95: 7.9 s at 39, 8.1 s at 40"
	c.Probes = []metric.CapacityProbe{
		{N: 32, Purpose: "ladder", Level: "probe 32", Requests: 200, Outcome: metric.Pass, Binding: "ttft p95", Shown: "6.2 s", Spent: time.Minute},
		{N: 40, Purpose: "bisect", Level: "probe 40", Requests: 400, Outcome: metric.Fail, Binding: "ttft p95", Shown: "8.1 s", Spent: 2 * time.Minute},
		{N: 39, Purpose: "bisect", Level: "probe 39", Requests: 800, Outcome: metric.Pass, Binding: "ttft p95", Shown: "7.9 s", Spent: 3 * time.Minute},
		{N: 39, Purpose: "confirm", Set: 1, Level: "probe 39 again", Requests: 800, Outcome: metric.Pass, Binding: "ttft p95", Shown: "7.9 s", Spent: 3 * time.Minute},
	}
	met := v.List[len(v.List)-2]
	met.Outcome, met.Message, met.Needs = verdict.Pass, c.Line+"; the plan requires 30", ""
	met.Notes = nil
	v.List[3].Notes = []verdict.Note{{Text: "exact for the requests of this run"}, {Text: "lock-step: the slots send at the same times (synchrony 0.82), so their prompts are processed together, and TTFT is longer than for requests that are spread over time"}}
	v.List, v.Outcome = []verdict.Verdict{v.List[0], v.List[2], v.List[3], met}, verdict.Pass
	m.ExitCode = verdict.ExitPass
	return New(run, p, v, m)
}
