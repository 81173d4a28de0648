package server

import (
	"cmp"
	"maps"
	"regexp"
	"strings"
	"sync"

	"github.com/tokgate/tokgate/metric"
)

// logLine is a line of an engine's log that says something of the server.
type logLine struct {
	has  string // what every such line holds: looked for first, since logs are long
	re   *regexp.Regexp
	keys []string // of the fingerprint, one for each group of re
}

// logLines are the lines worth reading, by engine. A later line takes the place
// of an earlier one. Seen in: vLLM 0.10 to 0.20 (vllm/v1/core/kv_cache_utils.py,
// vllm/config/model.py, vllm/v1/engine/core.py, gpu_model_runner.py,
// default_loader.py), SGLang 0.4 to 0.5 (managers/scheduler.py,
// model_executor/model_runner.py, mem_cache/memory_pool.py), llama.cpp b5000 to
// b11669 (src/llama-model.cpp, src/llama-context.cpp, tools/server).
var logLines = map[string][]logLine{
	"vllm": {
		{"GPU KV cache size", regexp.MustCompile(`GPU KV cache size: ([\d,]+) tokens`), []string{"kv_cache_tokens"}},
		{"Maximum concurrency for", regexp.MustCompile(`Maximum concurrency for [\d,]+ tokens per request: ([\d.]+)x`), []string{"max_concurrency"}},
		{"Resolved architecture", regexp.MustCompile(`Resolved architecture: (\S+)`), []string{"architecture"}},
		{"cudagraph_mode", regexp.MustCompile(`'?cudagraph_mode'?(?:=|: )(?:<CUDAGraphMode\.|CUDAGraphMode\.)?([A-Z_]+)`), []string{"cudagraph_mode"}},
		{"enforce_eager=True", regexp.MustCompile(`enforce_eager=True()`), []string{"cudagraph_mode"}},
		{"Loading weights took", regexp.MustCompile(`Loading weights took ([\d.]+ seconds)`), []string{"weights_time"}},
		{"Model loading took", regexp.MustCompile(`Model loading took ([\d.]+ G[i]?B)`), []string{"weights_memory"}},
		{"revision=", regexp.MustCompile(`[ ,]revision='?([0-9A-Za-z._/-]+)'?,`), []string{"revision"}},
		{"quantization=", regexp.MustCompile(`[ ,]quantization='?([0-9A-Za-z._-]+)'?,`), []string{"quantization"}},
	},
	"sglang": {
		{"max_total_num_tokens=", regexp.MustCompile(`max_total_num_tokens=(\d+)`), []string{"kv_cache_tokens"}},
		{"max_running_requests=", regexp.MustCompile(`max_total_num_tokens=.*max_running_requests=(\d+)`), []string{"admission_cap"}},
		{"Load weight end", regexp.MustCompile(`Load weight end\..*[ ,]type=(\w+)`), []string{"architecture"}},
		{"Load weight end", regexp.MustCompile(`Load weight end\..*mem usage=([\d.]+ GB)`), []string{"weights_memory"}},
		{"Capture cuda graph end", regexp.MustCompile(`Capture (cuda graph) end`), []string{"cudagraph_mode"}},
		{"disable_cuda_graph=True", regexp.MustCompile(`disable_cuda_graph=True()`), []string{"cudagraph_mode"}},
		{"revision=", regexp.MustCompile(`[ ,(]revision='?([0-9A-Za-z._/-]+)'?,`), []string{"revision"}},
		{"quantization=", regexp.MustCompile(`[ ,(]quantization='?([0-9A-Za-z._-]+)'?,`), []string{"quantization"}},
	},
	"llama.cpp": {
		{"arch ", regexp.MustCompile(`print_(?:info|meta): arch +[=:] (\S+)`), []string{"architecture"}},
		{"file type", regexp.MustCompile(`print_(?:info|meta): file type +[=:] (.+?)\s*$`), []string{"quantization"}},
		{"n_ctx ", regexp.MustCompile(`llama_\w+: n_ctx +[=:] (\d+)`), []string{"kv_cache_tokens"}},
		{"n_slots", regexp.MustCompile(`n_slots = (\d+)`), []string{"admission_cap"}},
		{"n_ctx", regexp.MustCompile(`(?:n_ctx_slot|new slot,? n_ctx) = (\d+)`), []string{"max_model_len"}},
		{"offloaded", regexp.MustCompile(`offloaded (\d+/\d+) layers to GPU`), []string{"gpu_layers"}},
		{"n_threads", regexp.MustCompile(`n_threads = (\d+)`), []string{"threads"}},
	},
}

// logFacts collects what an engine's log tells.
type logFacts struct {
	engine string

	mu    sync.Mutex
	found metric.Fingerprint
}

// line reads one line.
func (f *logFacts) line(line string) {
	for _, l := range logLines[f.engine] {
		if !strings.Contains(line, l.has) {
			continue
		}
		m := l.re.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		f.mu.Lock()
		if f.found == nil {
			f.found = metric.Fingerprint{}
		}
		for i, key := range l.keys {
			f.found[key] = tidy(key, m[i+1])
		}
		f.mu.Unlock()
	}
}

// tidy brings a value into one form for all engines.
func tidy(key, value string) string {
	switch {
	case key == "kv_cache_tokens":
		return strings.ReplaceAll(value, ",", "")
	case key == "cudagraph_mode":
		if value == "cuda graph" {
			return "FULL"
		}
		return cmp.Or(value, "NONE")
	}
	return value
}

// add puts what was found into a fingerprint; "None" is Python's way to say
// nothing.
func (f *logFacts) add(to metric.Fingerprint) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, value := range maps.All(f.found) {
		if value != "None" {
			to[key] = value
		}
	}
}
