package server

import (
	"strings"
	"testing"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// engineLogs has lines of logs as the engines write them, cut at the end.
var engineLogs = map[string]string{
	"vllm": `
(APIServer pid=1) INFO 11-06 10:51:10 [model.py:547] Resolved architecture: Qwen3MoeForCausalLM
(EngineCore_DP0 pid=283) INFO 11-06 10:51:23 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='Qwen/Qwen3-30B-A3B', revision=None, tokenizer_revision=None, dtype=torch.bfloat16, max_seq_len=32768, quantization=fp8, enforce_eager=False, compilation_config={"level":3,"cudagraph_mode":[2,1]}, 'cudagraph_mode': <CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>, 'use_cudagraph': True
(Worker_TP0 pid=322) INFO 11-06 10:51:31 [default_loader.py:384] Loading weights took 24.84 seconds
(Worker_TP0 pid=322) INFO 11-06 10:51:32 [gpu_model_runner.py:4879] Model loading took 12.66 GiB memory and 31.657031 seconds
(EngineCore_DP0 pid=283) INFO 11-06 10:51:48 [kv_cache_utils.py:1229] GPU KV cache size: 1,823,372 tokens
(EngineCore_DP0 pid=283) INFO 11-06 10:51:48 [kv_cache_utils.py:1234] Maximum concurrency for 120,000 tokens per request: 15.19x
(Worker_TP0 pid=322) WARNING 11-06 10:51:48 [gpu_model_runner.py:4199] CUDAGraphMode.FULL_AND_PIECEWISE is not supported with TritonMLABackend backend (support: AttentionCGSupport.NEVER); setting cudagraph_mode=PIECEWISE because attention is compiled piecewise
`,
	"sglang": `
[2026-11-21 04:05:36] server_args=ServerArgs(model_path='m', revision='main', quantization='fp8', disable_cuda_graph=False)
[2026-11-21 04:05:43 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=28.91 GB, mem usage=15.09 GB.
[2026-11-21 04:05:43 TP0] KV Cache is allocated. #tokens: 183133, K size: 11.18 GB, V size: 11.18 GB
[2026-11-21 12:50:15 TP0] Capture cuda graph end. Time elapsed: 5.37 s. mem usage=1.44 GB. avail mem=38.05 GB.
[2026-11-21 12:50:16 TP0] max_total_num_tokens=183133, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=131072, available_gpu_mem=5.00 GB
`,
	"llama.cpp": `
system_info: n_threads = 8 (n_threads_batch = 8) / 16 | CPU : SSE3 = 1 |
print_info: arch                  = qwen3
print_info: file type   = Q8_0
load_tensors: offloaded 49/49 layers to GPU
llama_context: n_ctx         = 327680
0.00.294.935 I srv    load_model: initializing, n_slots = 8, n_ctx_slot = 40960, kv_unified = 'false'
`,
	"trtllm": `
[TensorRT-LLM][INFO] [MemUsageChange] Allocated 26.91 GiB for max tokens in paged KV cache (220480).
[02/14/2025-09:38:53] [TRT-LLM] [I] max_seq_len=131072, max_num_requests=2048, max_num_tokens=8192, max_batch_size=2048
`,
}

func TestLogFacts(t *testing.T) {
	for name, want := range map[string]metric.Fingerprint{
		"vllm": {
			"architecture": "Qwen3MoeForCausalLM", "kv_cache_tokens": "1823372", "max_concurrency": "15.19", "cudagraph_mode": "PIECEWISE",
			"weights_time": "24.84 seconds", "weights_memory": "12.66 GiB", "quantization": "fp8",
		},
		"sglang": {
			"architecture": "LlamaForCausalLM", "kv_cache_tokens": "183133", "admission_cap": "2048", "cudagraph_mode": "FULL",
			"weights_memory": "15.09 GB", "quantization": "fp8", "revision": "main",
		},
		"llama.cpp": {
			"architecture": "qwen3", "kv_cache_tokens": "327680", "max_model_len": "40960", "admission_cap": "8", "gpu_layers": "49/49", "threads": "8", "quantization": "Q8_0",
		},
		"trtllm": {"kv_cache_tokens": "220480", "max_model_len": "131072", "admission_cap": "2048"},
		"openai": {},
	} {
		f := &logFacts{read: engine.Of(name).Facts}
		for line := range strings.Lines(engineLogs[name]) {
			f.line(line)
		}
		got := metric.Fingerprint{}
		f.add(got)
		must.Same(t, name+" (-want +got)", want, got)
		for key := range got {
			_, ok := metric.FactOf(key)
			must.Hold(t, ok, "%s: %q is no fact that is described", name, key)
		}
	}
	for _, name := range engine.Names(engine.Engine.Known) {
		must.Hold(t, engineLogs[name] != "" || engine.Of(name).Without["Log"] != "", "no log of %s is read", name)
	}
	eager := &logFacts{read: engine.Of("vllm").Facts}
	eager.line("with config: enforce_eager=True, kv_cache_dtype=auto")
	found := metric.Fingerprint{}
	if eager.add(found); found["cudagraph_mode"] != "NONE" {
		t.Errorf("eager: %v", found)
	}
}

// FuzzLogFacts checks that no text in a log causes a crash.
func FuzzLogFacts(f *testing.F) {
	for name, log := range engineLogs {
		f.Add(name, log)
	}
	f.Fuzz(func(t *testing.T, name, log string) {
		facts := &logFacts{read: engine.Of(name).Facts}
		for line := range strings.Lines(log) {
			facts.line(line)
		}
		facts.add(metric.Fingerprint{})
		exception(log, nil)
	})
}

// vLLM's log line on the size of the cache names the cache's device, which may be any device.
func TestCacheOfAnyDevice(t *testing.T) {
	for line, want := range map[string]string{
		"(EngineCore pid=1) INFO 11-22 04:05:22 [kv_cache_utils.py:2327] CPU KV cache size: 4,194,304 tokens":     "4194304",
		"(EngineCore pid=1) INFO 11-22 04:05:22 [kv_cache_utils.py:2327] XPU KV cache size: 1,024 tokens":         "1024",
		"(EngineCore pid=1) INFO 11-22 04:05:22 [kv_cache_utils.py:2327] GPU + host KV cache size: 65,536 tokens": "65536",
		"(EngineCore pid=1) INFO 11-22 04:05:22 [kv_cache_utils.py:2327] Reserved KV cache size: 5 tokens":        "",
	} {
		f := &logFacts{read: engine.Of("vllm").Facts}
		f.line(line)
		must.Same(t, line, want, f.found["kv_cache_tokens"])
	}
}

func TestMeets(t *testing.T) {
	for _, tt := range []struct {
		key, got, want string
		ok             bool
	}{
		{"gpu", "1 x NVIDIA RTX PRO 6000 Blackwell Server Edition", "1 x RTX PRO 6000", true},
		{"gpu", "1 x NVIDIA H100 80GB HBM3", "1 x nvidia h100", true},
		{"gpu", "2 x NVIDIA H100 80GB HBM3", "1 x H100", false},
		{"gpu", "1 x NVIDIA RTX PRO 6000 Blackwell", "1 x RTX 6000", false}, // another card
		{"gpu", "1 x NVIDIA H1000", "1 x H100", false},
		{"gpu", "1 x NVIDIA H100", "1 x ", false},
		{"gpu", "none", "1 x H100", false},
		{"gpu", "1 x A + 1 x B", "1 x A", false}, // there are two
		{"version", "0.19.1", "0.19", false},
		{"version", "0.19.1", "0.19.1", true},
	} {
		got := meets(tt.key, tt.got, tt.want)
		must.Hold(t, got == tt.ok, "%s: %q meets %q: %v", tt.key, tt.got, tt.want, got)
	}
}
