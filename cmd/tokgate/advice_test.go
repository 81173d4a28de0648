package main

import (
	"strings"
	"testing"

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
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
