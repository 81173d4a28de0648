package search_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/search"
)

// judgedOracle answers probes in the same way as a run. It simulates rounds of requests by the
// plan's defaults, and judges them by assert.JudgeLook.
type judgedOracle struct {
	*oracle
	plan   *plan.Plan
	levels map[[2]int]*metric.Level
}

const judgedPlan = `
gate { measure_only = true }
server "s" {
  endpoint { url = "http://127.0.0.1:1" }
}
workload "w" {
  input_tokens  = 100
  output_tokens = 1
  sla {
    at   = "capacity"
    ttft = "p95 < 2s"
  }
  capacity { up_to = 128 }
}
`

// judged returns a plan with a capacity block. The tests search with the defaults of this block, and
// with max_requests if it is not 0.
func judged(t *testing.T, most int) *plan.Plan {
	t.Helper()
	p, diags := decode.File(decode.Options{Path: "capacity.hcl", Source: []byte(judgedPlan)})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	p.Workloads[0].Capacity.MaxRequests = most
	return p
}

// looks returns the numbers of requests at which a run would judge level n.
func (o *judgedOracle) looks(certify bool) func(int) []int {
	return func(n int) (out []int) {
		for _, at := range o.plan.Workloads[0].ProbeLooks(n, certify) {
			out = append(out, at.Requests)
		}
		return out
	}
}

func (o *judgedOracle) measure(p search.Probe) search.Result {
	w := o.plan.Workloads[0]
	key := [2]int{p.N, p.Set}
	l := o.levels[key]
	if l == nil {
		l = &metric.Level{Server: "s", Workload: "w", Name: fmt.Sprintf("probe %d set %d", p.N, p.Set), Kind: metric.ClosedLoop, N: p.N, Exact: true, Batches: true, Probe: &metric.Probe{}}
		o.levels[key] = l
	}
	r := search.Result{N: p.N, Outcome: metric.Inconclusive}
	have, first := p.Have, w.Capacity.Level(p.N).Requests
	for _, k := range p.Looks {
		for _, due := range w.Capacity.Level(p.N).More(k - have) {
			o.batch(l, due)
		}
		have = k
		look := metric.Look{Requests: k, Planned: p.Planned, Spent: w.SpentAtProbe(p.N, p.Planned, k)}
		v := assert.JudgeLook(o.plan, w, l, look)
		if v.Invalid != "" {
			panic("not valid: " + v.Invalid)
		}
		l.Looks = append(l.Looks, look)
		r = v.Result(p.N, k, l)
		if r.Outcome != metric.Inconclusive || r.Needs < 0 && k >= first {
			break
		}
	}
	if r.Outcome == metric.Pass && o.server.cap > 0 && p.N > o.server.cap {
		r.Outcome, r.Cap = metric.Capped, o.server.cap
	}
	r.Spent = o.server.spent(p.N, r.Requests-p.Have)
	o.spent += r.Spent
	o.sent += r.Requests - p.Have
	return r
}

// batch adds a batch of requests, slot by slot. Each shifts the latency by a random offset.
func (o *judgedOracle) batch(l *metric.Level, requests int) {
	start := time.Second
	if n := len(l.Rounds); n > 0 {
		start = l.Rounds[n-1].WindowEnd
	}
	shift := o.server.tau * o.rng.NormFloat64()
	mu := o.server.margin(l.N) - z95*math.Hypot(o.server.sigma, o.server.tau) + shift
	r := &metric.Round{Index: len(l.Rounds), Due: requests, Start: start, WindowStart: start, Busy: 1, Complete: true}
	next := make([]time.Duration, l.N)
	for slot := range next {
		next[slot] = start + time.Duration(slot)*time.Millisecond
	}
	samples := make([]metric.Sample, requests)
	for i := range samples {
		slot := i % l.N
		sent := next[slot]
		first := sent + time.Duration(2e9*math.Exp(mu+o.server.sigma*o.rng.NormFloat64()))
		samples[i] = metric.Sample{Round: r.Index, Slot: slot, Order: i, Phase: metric.Measured, Scheduled: sent, Sent: sent, First: first, Last: first, End: first,
			Chunks: 1, FirstTokens: 1, InputAsked: 100, OutputAsked: 1, Usage: &judgedUsage}
		next[slot] = first
		r.End = max(r.End, first)
		r.Samples = append(r.Samples, &samples[i])
	}
	r.WindowEnd = r.End
	l.Rounds = append(l.Rounds, r)
}

var judgedUsage = metric.Usage{Input: 100, Output: 1}
