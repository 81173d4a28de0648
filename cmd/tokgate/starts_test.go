package main

import (
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
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
		got, ok := assumedStart(model)
		must.Hold(t, got.took == want && ok == (want > 0), "%s: %+v %v, want %s", model, got, ok, want)
	}
	server := &plan.Server{Name: "a", Engine: "vllm", Model: "Qwen/Qwen3-8B", Container: &plan.Container{Image: "i"}}
	w := &plan.Workload{Name: "w", Servers: []*plan.Server{server}, Loads: []*plan.Load{{Levels: []plan.Level{{Name: "1", N: 1, Requests: 10, Rounds: 1}}}}}
	p := &plan.Plan{Path: "gate.hcl", Servers: []*plan.Server{server}, Workloads: []*plan.Workload{w}}
	t.Chdir(t.TempDir())
	want := "about 1m16s in all: 1 start, each assumed: a minute, and 16 GB of weights at 1 GB/s; plus the pull of up to 1 image"
	got := startsOf(p, startTimes(p, nil))
	must.Hold(t, got == want, "got  %q\nwant %q", got, want)
}

// The image of a container, that of a pod and those of the pod's template are pulled, each once.
func TestPullsOfStarts(t *testing.T) {
	template := plan.Tree{"spec": plan.Tree{"containers": []any{plan.Tree{"name": "server", "image": "replaced"}, plan.Tree{"name": "proxy", "image": "p"}}}}
	servers := []*plan.Server{
		{Name: "a", Engine: "vllm", Container: &plan.Container{Image: "v1"}},
		{Name: "b", Engine: "vllm", Pod: &plan.Pod{Image: "v1"}},
		{Name: "c", Engine: "vllm", Pod: &plan.Pod{Image: "v2", Template: template}},
	}
	w := &plan.Workload{Name: "w", Servers: servers, Loads: []*plan.Load{{Levels: []plan.Level{{Name: "1", N: 1, Requests: 10, Rounds: 1}}}}}
	p := &plan.Plan{Path: "gate.hcl", Servers: servers, Workloads: []*plan.Workload{w}}
	must.Same(t, "starts", "unknown: 3 starts, none of which was timed before; plus the pull of up to 3 images", startsOf(p, nil))
}

// Of a recording with a cold start and a warm one, the first start to come is priced like the cold one
// and each later one like the warm one.
func TestPriceOfStarts(t *testing.T) {
	server := func(name string) *plan.Server {
		return &plan.Server{Name: name, Engine: "vllm", Container: &plan.Container{Image: "i"}}
	}
	a, b := server("a"), server("b")
	w := &plan.Workload{Name: "w", Servers: []*plan.Server{a, b}, Loads: []*plan.Load{{Levels: []plan.Level{{Name: "1", N: 1, Requests: 120, Rounds: 12}}}}}
	p := &plan.Plan{Path: "gate.hcl", Servers: []*plan.Server{a, b}, Workloads: []*plan.Workload{w}, Compares: []*plan.Compare{
		{Name: "c", Control: plan.Control{Server: a}, Candidate: b, Restart: plan.RestartLeg, Rounds: 12, LeastRounds: 3}}}
	first, later, _ := metric.StartTimes([]metric.Start{{Ready: 695 * time.Second}, {Ready: 88 * time.Second}})
	last := &lastRun{loads: map[string]load{"a": {first, later}, "b": {first, later}}}
	times := startTimes(p, last)
	// 12 starts of each: 695 + 11 · 88 = 1663 s.
	if got, want := times[a].all(12), 1663*time.Second; got != want {
		t.Errorf("12 starts of one: %v, want %v", got, want)
	}
	f := last.forecast(p, nil, times)
	got, _ := f.Total()
	must.Hold(t, got == 2*1663*time.Second, "24 starts: %v, want %v", got, 2*1663*time.Second)
	want := "about 55m in all: 24 starts, each as long as the last ones (12m for the first on a machine, 1m28s for each later one); plus the pull of up to 1 image"
	if got := startsOf(p, times); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
