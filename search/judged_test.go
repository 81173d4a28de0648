package search_test

import (
	"cmp"
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

// judged returns a plan with a capacity block. The tests search with the defaults of this block.
func judged(t *testing.T) *plan.Plan {
	t.Helper()
	p, diags := decode.File(decode.Options{Path: "capacity.hcl", Source: []byte(judgedPlan)})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return p
}

// looks returns the numbers of requests at which a run would judge level n.
func (o *judgedOracle) looks(n int) []int {
	first := o.plan.Workloads[0].Capacity.Level(n).Requests
	return search.Doubling(first, 4*first)(n)
}

func (o *judgedOracle) deep(most int) func(int) []int {
	return func(n int) []int {
		first := o.plan.Workloads[0].Capacity.Level(n).Requests
		return search.Halving(8*first, cmp.Or(most, o.plan.Workloads[0].MostRequests(first)))
	}
}

func (o *judgedOracle) measure(p search.Probe) search.Result {
	w := o.plan.Workloads[0]
	level := w.Capacity.Level(p.N)
	key := [2]int{p.N, p.Set}
	l := o.levels[key]
	if l == nil {
		l = &metric.Level{Server: "s", Workload: "w", Name: fmt.Sprintf("probe %d set %d", p.N, p.Set), Kind: metric.ClosedLoop, N: p.N, Exact: true, Probe: &metric.Probe{}}
		o.levels[key] = l
	}
	r := search.Result{N: p.N, Outcome: search.Inconclusive}
	have := p.Have
	for _, k := range p.Looks {
		// Divide the requests as a run does, so that all rounds have about the same size.
		add := k - have
		rounds := max(1, min((add*level.Rounds+level.Requests-1)/level.Requests, add/p.N))
		for i := range rounds {
			o.round(l, add*(i+1)/rounds-add*i/rounds)
		}
		have = k
		v := assert.JudgeLook(o.plan, w, l, metric.Look{Requests: k, Planned: p.Planned})
		if v.Invalid != "" {
			panic("not valid: " + v.Invalid)
		}
		r = v.Judgement().Result(p.N, k, l)
		if r.Outcome != search.Inconclusive || r.Needs < 0 {
			break
		}
	}
	if r.Outcome == search.Pass && o.server.cap > 0 && p.N > o.server.cap {
		r.Outcome, r.Cap = search.Capped, o.server.cap
	}
	r.Spent = o.server.spent(p.N, r.Requests-p.Have)
	o.spent += r.Spent
	o.sent += r.Requests - p.Have
	return r
}

// round adds a round of requests, slot by slot. Each round shifts the latency by a random offset.
func (o *judgedOracle) round(l *metric.Level, requests int) {
	start := time.Second
	if n := len(l.Rounds); n > 0 {
		start = l.Rounds[n-1].End + time.Second
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
