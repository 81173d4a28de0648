package main

import (
	"testing"
	"time"

	"github.com/tokgate/tokgate/plan"
)

// Before the first recorded start, the start time is estimated from the size in the model's name.
// If the name has no size, the start time is unknown.
func TestAssumedStart(t *testing.T) {
	for model, want := range map[string]time.Duration{
		"Qwen/Qwen3-8B":                     76 * time.Second,  // 60 s + 16 GB at 1 GB/s
		"Qwen/Qwen3-30B-A3B-FP8":            90 * time.Second,  // 60 + 30
		"meta-llama/Llama-3.1-70B-AWQ-INT4": 95 * time.Second,  // 60 s + 35 GB at 1 GB/s
		"mistralai/Mixtral-8x7B-v0.1":       172 * time.Second, // 60 s + 8 · 7 · 2 GB at 1 GB/s
		"Qwen/Qwen2.5-0.5B":                 61 * time.Second,
		"google/gemma-3-270m-it":            61 * time.Second, // 0.27 · 2, rounded
		"gpt-oss":                           0,
		"v0.19.1":                           0,
		"":                                  0,
	} {
		if got, ok := assumedStart(model); got.took != want || ok != (want > 0) {
			t.Errorf("%s: %+v %v, want %s", model, got, ok, want)
		}
	}
	server := &plan.Server{Name: "a", Engine: "vllm", Model: "Qwen/Qwen3-8B", Container: &plan.Container{Image: "i"}}
	w := &plan.Workload{Name: "w", Servers: []*plan.Server{server}, Loads: []*plan.Load{{Levels: []plan.Level{{Name: "1", N: 1, Requests: 10, Rounds: 1}}}}}
	p := &plan.Plan{Path: "gate.hcl", Servers: []*plan.Server{server}, Workloads: []*plan.Workload{w}}
	t.Chdir(t.TempDir())
	want := "about 1m16s in all: 1 start, each assumed: a minute, and 16 GB of weights at 1 GB/s; plus the pull of up to 1 image"
	if got := startsOf(p, startTimes(p, nil)); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
