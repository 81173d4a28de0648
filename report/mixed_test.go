package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// mixed is the document of a mix over a trace: chats, and requests with a long prompt. It has 80
// requests in ten rounds. Three of four requests are chats with a TTFT of 0.2 s. The fourth has a
// long prompt and a TTFT of 2 s, twice its limit.
func mixed() *Document {
	at := func(line int) hcl.Range {
		return hcl.Range{Filename: "hour.hcl", Start: hcl.Pos{Line: line, Column: 3}}
	}
	p95, err := metric.ParseStat("p95")
	if err != nil {
		panic(err)
	}
	ttft := func(limit float64, line int) []*plan.SLA {
		return []*plan.SLA{{At: []string{"trace"}, Severity: plan.SeverityError, Range: at(line), Thresholds: []*plan.Threshold{{
			Metric: metric.MustLookup("ttft"), Stat: p95, Op: plan.Less, Limit: limit, Text: fmt.Sprintf("p95 < %gs", limit), Range: at(line),
		}}}}
	}
	rows := make([]traffic.Recorded, 80)
	for i := range rows {
		rows[i] = traffic.Recorded{Line: i + 2, At: time.Duration(i) * time.Second, Input: 100, Output: 3, Parent: -1, Wait: -1, Type: "/v1/chat"}
		if i%4 == 3 {
			rows[i].Type, rows[i].Input = "/v1/long", 4000
		}
	}
	trace, err := (&traffic.Trace{Path: "requests.csv", Format: "columns", Hash: strings.Repeat("cd", 32), Rows: rows}).Replay(traffic.Stretch{})
	if err != nil {
		panic(err)
	}
	server := &plan.Server{Name: "vllm", Range: at(1)}
	policy := plan.Policy{Confidence: 0.95, Decide: plan.Certified, OnInconclusive: plan.Stop}
	load := &plan.Load{Kind: metric.OpenLoop, Seeds: []int64{1}, Open: &plan.Open{Trace: trace}, Range: at(20),
		Levels: []plan.Level{{Name: "trace", Rate: trace.Rate(), Requests: 80, Rounds: 10, Speedup: 1, Range: at(21)}}}
	mix := &plan.Workload{Name: "hour", Servers: []*plan.Server{server}, Loads: []*plan.Load{load}, Policy: policy, Range: at(18)}
	l := &metric.Level{Server: "vllm", Workload: "hour", Name: "trace", Kind: metric.OpenLoop, Rate: trace.Rate(), Speedup: 1, Exact: true}
	for i, name := range []string{"chat", "long"} {
		base := &plan.Workload{Name: name, API: plan.Chat, Output: plan.Output{Mean: 3}, Policy: policy, Range: at(5 + 6*i)}
		part := mix.Part(base, 0)
		part.Type, part.SLAs = "/v1/"+name, ttft(1, 6+6*i)
		mix.Mix = append(mix.Mix, part)
	}
	mix.ShareOut()
	l.Asked = mix.Asked(server, load)
	for _, part := range mix.Mix {
		l.Parts = append(l.Parts, &metric.Level{Server: "vllm", Workload: part.Address(), Name: "trace", Speedup: 1, Of: "hour", Share: float64(part.Share) / traffic.Whole, Exact: true, Asked: part.Asked(server, load)})
	}
	for k := range 10 {
		r := &metric.Round{Index: k, Seed: 1, Due: 8, Complete: true, Busy: 1, WindowStart: time.Duration(8*k) * time.Second, WindowEnd: time.Duration(8*k+8) * time.Second, Health: metric.Health{CPU: 0.1}}
		for i := range 8 {
			row := &rows[8*k+i]
			x := &metric.Sample{
				Server: "vllm", Workload: "hour", Part: strings.TrimPrefix(row.Type, "/v1/"), Level: "trace", Round: k, Slot: i, Order: i, Phase: metric.Measured, FromDue: true,
				Scheduled: row.At, Sent: row.At, Headers: row.At + ms(2), First: row.At + ms(200), Chunks: 3, FirstTokens: 1, InputAsked: row.Input, OutputAsked: 3,
				Status: 200, Finish: "length", Usage: &metric.Usage{Input: row.Input, Output: 3, Cached: 0},
			}
			if x.Part == "long" {
				x.First += ms(1800)
			}
			x.FirstAnswer, x.Last, x.End = x.First, x.First+ms(40+float64(8*k+i)/10), x.First+ms(60)
			x.Gaps.Add(ms(20))
			x.Gaps.Add(ms(20 + float64(8*k+i)/10))
			r.Samples = append(r.Samples, x)
		}
		r.Start, r.End = r.Samples[0].Scheduled, r.Samples[7].End
		l.Rounds = append(l.Rounds, r)
	}
	l.Notes = []string{"replayed " + plan.TraceTitle(trace)}
	run := &metric.Run{
		ID: "20261120T150000Z-77aa", Tool: "0.1.0", Plan: "hour.hcl", PlanHash: strings.Repeat("ef", 32), Started: time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC), End: 90 * time.Second,
		Servers: []*metric.ServerRun{{Address: "vllm", Fingerprint: metric.Fingerprint{"model": "m"}}}, Levels: []*metric.Level{l},
	}
	p := &plan.Plan{Path: "hour.hcl", Hash: run.PlanHash, Gate: plan.Gate{Policy: policy}, Servers: []*plan.Server{server}, Workloads: mix.Whole()}
	v := assert.Judge(p, run, assert.Options{})
	return New(run, p, v, Meta{ExitCode: v.ExitCode(false), Host: "runner-7", Folder: "results/hour"})
}
