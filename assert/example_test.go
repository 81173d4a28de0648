package assert_test

import (
	"fmt"
	"time"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
)

// The example judges a recorded run against a plan, without a server. One in four of the 100
// requests took longer than 250 ms.
func ExampleJudge() {
	p, diags := decode.File(decode.Options{Path: "gate.hcl", Source: []byte(`
server "sim" {
  simulator {}
}

workload "chat" {
  input_tokens  = 1000
  output_tokens = 10
  load {
    concurrency = 1
    requests    = 100
    seeds       = [1, 2, 3, 4, 5]
  }
  sla {
    ttft = "p95 < 200ms"
    e2e  = "p95 < 250ms"
  }
}
`)})
	if diags.HasErrors() {
		fmt.Println(diags)
		return
	}
	run := &metric.Run{Servers: []*metric.ServerRun{{Address: "sim"}}, Levels: []*metric.Level{measured(p)}}
	verdicts := assert.Judge(p, run, assert.Options{})
	for _, v := range verdicts.List {
		fmt.Println(v.Outcome, v.Name+":", v.Message)
	}
	fmt.Println("exit", verdicts.ExitCode(false))
	// Output:
	// pass start: ready; the same server was still running at the end
	// pass load at 1: 100 of 100 requests completed in 5 rounds; the load lasted 96 s, so an event rarer than once in 32 s may have been missed
	// pass sla.ttft.p95 at 1: ttft p95 118 ms < 200 ms: 0 of 100 requests over (0%, allowed 5%), 95% bounds 118 ms to 119 ms
	// fail sla.e2e.p95 at 1: e2e p95 253 ms > 250 ms: 25 of 100 requests over (25%, allowed 5%), 95% bounds 253 ms to 254 ms
	// pass sla.success.implied at 1: success 100% > 98%: 0 of 100 requests failed (0%, allowed 2%)
	// exit 1
}

// measured returns a level that a run of the plan may have recorded: 5 rounds of 20 requests, one
// request at a time.
func measured(p *plan.Plan) *metric.Level {
	l := &metric.Level{Server: "sim", Workload: p.Workloads[0].Address(), Name: "1", Kind: metric.ClosedLoop, N: 1, Exact: true}
	for i := range 5 {
		r := &metric.Round{Index: i, Seed: int64(i + 1), Due: 20, Complete: true, Busy: 1}
		for k := range 20 {
			sent := time.Duration(20*i+k) * time.Second
			first := sent + time.Duration(100+k)*time.Millisecond
			x := &metric.Sample{Round: i, Order: k, Phase: metric.Measured, Sent: sent, First: first, FirstAnswer: first, Last: first + 135*time.Millisecond,
				End: first + 135*time.Millisecond, Chunks: 10, FirstTokens: 1, InputAsked: 1000, OutputAsked: 10, Status: 200, Usage: &metric.Usage{Input: 1000, Output: 10}}
			r.Samples, r.WindowEnd, r.End = append(r.Samples, x), x.End, x.End
		}
		r.Start, r.WindowStart = r.Samples[0].Sent, r.Samples[0].Sent
		l.Rounds = append(l.Rounds, r)
	}
	return l
}
