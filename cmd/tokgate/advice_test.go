package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

func TestUntold(t *testing.T) {
	endpoint, process := &plan.Endpoint{}, &plan.Process{}
	prices := &plan.Prices{PerHour: map[string]float64{"s": 2}}
	electric := &plan.Prices{PerHour: map[string]float64{"s": 2}, Electricity: 0.3}
	for _, tt := range []struct {
		name   string
		server plan.Server
		prices *plan.Prices
		metric string
		want   string // text in the reason; "" if the server may report the metric
	}{
		{"vLLM's queue", plan.Server{Engine: "vllm", Endpoint: endpoint}, nil, "queue_wait", ""},
		{"llama.cpp has no histogram", plan.Server{Engine: "llama.cpp", Process: process}, nil, "queue_wait", `engine "llama.cpp" does not report it`},
		{"nor preemptions", plan.Server{Engine: "llama.cpp", Process: process}, nil, "preemptions", "does not report it"},
		{"but it drafts", plan.Server{Engine: "llama.cpp", Process: process}, nil, "accept_rate", ""},
		{"a page of another kind", plan.Server{Engine: "llama.cpp", Endpoint: endpoint, Telemetry: plan.Telemetry{URL: "http://x"}}, nil, "queue_wait", ""},
		{"SGLang's decode", plan.Server{Engine: "sglang", Endpoint: endpoint}, nil, "decode", "does not report it"},
		{"SGLang's means", plan.Server{Engine: "sglang", Endpoint: endpoint}, nil, "accept_length", ""},
		{"who knows", plan.Server{Engine: "openai", Endpoint: endpoint}, nil, "queue_wait", ""},
		{"the simulator alone is like vLLM", plan.Server{Engine: "llama.cpp", Simulator: &plan.Simulator{}}, nil, "queue_wait", ""},
		{"off", plan.Server{Engine: "vllm", Endpoint: endpoint, Telemetry: plan.Telemetry{Off: true}}, nil, "kv_usage", "telemetry is off"},
		{"what the client sees", plan.Server{Engine: "vllm", Endpoint: endpoint, Telemetry: plan.Telemetry{Off: true}}, nil, "ttft", ""},
		{"power of a process", plan.Server{Process: process}, nil, "power", ""},
		{"of a process without GPUs", plan.Server{Process: &plan.Process{GPUs: &plan.GPUs{}}}, nil, "power", "it has no GPU"},
		{"of an endpoint", plan.Server{Endpoint: endpoint}, nil, "power", "list them in telemetry { gpus = [0] }"},
		{"of its named GPUs", plan.Server{Endpoint: endpoint, Telemetry: plan.Telemetry{GPUs: []string{"0"}}}, nil, "power", ""},
		{"by an exporter", plan.Server{Endpoint: endpoint, Telemetry: plan.Telemetry{DCGM: "http://x"}}, nil, "energy_per_token", ""},
		{"of the simulator", plan.Server{Simulator: &plan.Simulator{}}, nil, "power", "no GPU"},
		{"costs", plan.Server{Endpoint: endpoint}, prices, "cost_per_hour", ""},
		{"without prices", plan.Server{Endpoint: endpoint}, nil, "cost_per_hour", "prices says nothing"},
		{"with electricity", plan.Server{Endpoint: endpoint}, electric, "cost_per_million_tokens", "the power is not known"},
		{"with electricity and power", plan.Server{Process: process}, electric, "cost_per_million_tokens", ""},
	} {
		tt.server.Name = "s"
		def, _ := metric.Lookup(tt.metric)
		got := untoldBy(&plan.Plan{Prices: tt.prices}, &tt.server, def)
		must.Hold(t, (got == "") == (tt.want == "") && strings.Contains(got, tt.want), "%s: %q, want %q", tt.name, got, tt.want)
	}
}

// A budget below what the plan itself says its load takes is an error. Rates run to their end, and a
// closed loop may be cut to five rounds.
func TestUnderBudget(t *testing.T) {
	rate := func(requests int) *plan.Load {
		return &plan.Load{Kind: metric.OpenLoop, Open: &plan.Open{}, Levels: []plan.Level{{Name: "4 req/s", Rate: 4, Requests: requests, Rounds: 10}}}
	}
	closed := func(d time.Duration, rounds int) *plan.Load {
		return &plan.Load{Kind: metric.ClosedLoop, Levels: []plan.Level{{Name: "8", N: 8, Requests: 80, Duration: d, Rounds: rounds}}}
	}
	for _, tt := range []struct {
		name   string
		load   *plan.Load
		budget time.Duration
		want   string // in the error; "" if there is none
	}{
		{"no budget", rate(1200), 0, ""},
		{"1,200 requests at 4 req/s take 5 minutes", rate(1200), 5 * time.Minute, ""},
		{"a second less", rate(1200), 299 * time.Second, "The budget is 4m59s, but the load that can decide takes at least 5m"},
		{"five of ten rounds are 5 minutes", closed(10*time.Minute, 10), 5 * time.Minute, ""},
		{"less", closed(10*time.Minute, 10), 4 * time.Minute, "at least 5m"},
		{"five rounds are all", closed(10*time.Minute, 5), 9 * time.Minute, "at least 10m"},
		{"requests take an unknown time", closed(0, 10), time.Second, ""},
	} {
		s := &plan.Server{Name: "a"}
		p := &plan.Plan{Servers: []*plan.Server{s}, Workloads: []*plan.Workload{{Name: "w", Servers: []*plan.Server{s}, Loads: []*plan.Load{tt.load}}}}
		p.Gate.Budget = tt.budget
		got := ""
		for _, d := range underBudget(p) {
			got = d.Detail
		}
		must.Hold(t, (got == "") == (tt.want == "") && strings.Contains(got, tt.want), "%s: %q, want %q", tt.name, got, tt.want)
	}
}

// Slots whose answers are equally long send together, which a bound on TTFT feels.
func TestInStep(t *testing.T) {
	for _, tt := range []struct {
		name, output, load, sla string
		warns                   bool
	}{
		{"one length", "32", "concurrency = 8", `ttft = "p95 < 2s"`, true},
		{"almost", `{ mean = 100, jitter = "5%" }`, "concurrency = [1, 8]", `ttft = "mean < 2s"`, true},
		{"lengths that differ", `{ mean = 100, jitter = "10%" }`, "concurrency = 8", `ttft = "p95 < 2s"`, false},
		{"natural answers", "{ natural = true, max = 100 }", "concurrency = 8", `ttft = "p95 < 2s"`, false},
		{"one slot", "32", "concurrency = 1", `ttft = "p95 < 2s"`, false},
		{"a rate", "32", "rate = \"1 req/s\"", `ttft = "p95 < 2s"`, false},
		{"no bound on TTFT", "32", "concurrency = 8", `e2e = "p95 < 20s"`, false},
	} {
		got := tokgate(t, "validate", writePlan(t, fmt.Sprintf(`
server "s" {
  simulator {}
}
workload "w" {
  input_tokens  = 256
  output_tokens = %s
  load {
    %s
    duration = "2m"
  }
  sla { %s }
}
`, tt.output, tt.load, tt.sla)))
		must.Hold(t, got.code == 0 && strings.Contains(got.out+got.err, "Answers of one length") == tt.warns, "%s: %s%s", tt.name, got.out, got.err)
	}
}
