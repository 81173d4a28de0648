package engine

import (
	"regexp"

	"github.com/tokgate/tokgate/metric"
)

var vllm = Engine{
	Name: "vllm", Title: "vLLM",
	Sources: "`vllm serve --help`, its Dockerfile and docs/serving; vllm/entrypoints/openai; " +
		"vllm/entrypoints/anthropic/protocol.py; vllm/v1/metrics/loggers.py and vllm/v1/spec_decode/metrics.py; " +
		"logs of 0.10 to 0.20 (vllm/v1/core/kv_cache_utils.py, vllm/config/model.py, vllm/v1/engine/core.py, gpu_model_runner.py, default_loader.py)",
	Launch: Launch{
		Program: []string{"vllm", "serve"}, Port: 8000, SharedMemory: "16g",
		// vLLM has the page /reset_prefix_cache only with this variable.
		Env: map[string]string{"VLLM_SERVER_DEV_MODE": "1"},
	},
	Flags: Flags{
		Models: []string{"model"}, Admission: []string{"max-num-seqs"}, Context: []string{"max-model-len"},
		Drafts:  []string{"speculative-config", "sc", "spec-method", "speculative-model"},
		Negated: []string{"*"}, Equals: true,
	},
	Pages: Pages{
		Health: "/health", Version: []string{"/version"}, VersionKey: "version",
		Tokenize: "/tokenize", Reset: "/reset_prefix_cache", Metrics: "/metrics",
	},
	Dialect: Dialect{IgnoreEOS: true, MinTokens: true, Natural: []API{Messages}, BothLimits: true,
		ContinuousUsage: true, PromptIDs: true, Tokenizer: VLLMTokenizer},
	Series: []Series{
		{Name: "vllm:num_requests_running", Kind: GaugeSum, Ours: "running"},
		{Name: "vllm:num_requests_waiting", Kind: GaugeSum, Ours: "waiting"},
		{Name: "vllm:num_requests_waiting_by_reason", Label: "reason", Value: "capacity", Kind: GaugeSum, Ours: "waiting_for_room"},
		{Name: "vllm:num_requests_waiting_by_reason", Label: "reason", Value: "deferred", Kind: GaugeSum, Ours: "waiting_deferred"},
		{Name: "vllm:kv_cache_usage_perc", Kind: GaugeMost, Ours: "kv_usage"},
		{Name: "vllm:gpu_cache_usage_perc", Kind: GaugeMost, Ours: "kv_usage", Old: "older versions"},
		{Name: "vllm:num_preemptions_total", Kind: Counter, Ours: metric.Preempted},
		{Name: "vllm:num_preemptions", Kind: Counter, Ours: metric.Preempted, Old: "other exporters"},
		{Name: "vllm:request_queue_time_seconds", Kind: Buckets, Ours: "queue_wait"},
		{Name: "vllm:request_prefill_time_seconds", Kind: Buckets, Ours: "prefill"},
		{Name: "vllm:request_decode_time_seconds", Kind: Buckets, Ours: "decode"},
		{Name: "vllm:time_to_first_token_seconds", Kind: Buckets, Ours: "server_ttft"},
		{Name: "vllm:inter_token_latency_seconds", Kind: Buckets, Ours: "server_itl"},
		{Name: "vllm:time_per_output_token_seconds", Kind: Buckets, Ours: "server_itl", Old: "older versions"},
		{Name: "vllm:e2e_request_latency_seconds", Kind: Buckets, Ours: "server_e2e"},
		{Name: "vllm:request_success_total", Label: "finished_reason", Value: "abort", Kind: Counter, Ours: metric.Aborted},
		{Name: "vllm:request_success_total", Label: "finished_reason", Value: "error", Kind: Counter, Ours: metric.Errors},
		{Name: "vllm:admission_rejections_total", Kind: Counter, Ours: metric.Rejected},
		{Name: "vllm:request_prefill_kv_computed_tokens", Kind: Sum, Ours: metric.PrefillTokens},
		{Name: "vllm:request_prompt_tokens", Kind: Sum, Ours: metric.PrefillTokens, Old: "cached ones included"},
		{Name: "vllm:request_prefill_time_seconds", Kind: Sum, Ours: metric.PrefillSeconds},
		{Name: "vllm:prefix_cache_queries_total", Kind: Counter, Ours: metric.CacheQueries},
		{Name: "vllm:gpu_prefix_cache_queries_total", Kind: Counter, Ours: metric.CacheQueries, Old: "older versions"},
		{Name: "vllm:prefix_cache_hits_total", Kind: Counter, Ours: metric.CacheHits},
		{Name: "vllm:gpu_prefix_cache_hits_total", Kind: Counter, Ours: metric.CacheHits, Old: "older versions"},
		{Name: "vllm:spec_decode_num_drafts_total", Kind: Counter, Ours: metric.Drafts},
		{Name: "vllm:spec_decode_num_draft_tokens_total", Kind: Counter, Ours: metric.DraftTokens},
		{Name: "vllm:spec_decode_num_accepted_tokens_total", Kind: Counter, Ours: metric.AcceptedTokens},
		{Name: "vllm:spec_decode_num_accepted_tokens_per_pos_total", Label: "position", Kind: Counter, Ours: metric.AcceptedTokens + "[i]"},
		{Name: "vllm:generation_tokens_total", Kind: Counter, Ours: metric.GeneratedTokens},
	},
	Log: []LogFact{
		{Key: Phase, Has: "Starting to load model", Is: "loading the weights"},
		{Key: Phase, Has: "Model loading took", Is: "profiling and compiling"},
		{Key: Phase, Has: " KV cache size", Is: "making the KV cache"},
		{Key: Phase, Has: "Capturing CUDA graphs", Is: "capturing CUDA graphs"},
		{Key: Phase, Has: "Starting vLLM", Is: "beginning to listen"},
		{Key: "kv_cache_tokens", Has: " KV cache size", Value: regexp.MustCompile(`\] (?:CPU|XPU|GPU|GPU \+ host) KV cache size: ([\d,]+) tokens`)},
		{Key: "max_concurrency", Has: "Maximum concurrency for", Value: regexp.MustCompile(`Maximum concurrency for [\d,]+ tokens per request: ([\d.]+)x`)},
		{Key: "architecture", Has: "Resolved architecture", Value: regexp.MustCompile(`Resolved architecture: (\S+)`)},
		{Key: "cudagraph_mode", Has: "cudagraph_mode", Value: regexp.MustCompile(`'?cudagraph_mode'?(?:=|: )(?:<CUDAGraphMode\.|CUDAGraphMode\.)?([A-Z_]+)`)},
		{Key: "cudagraph_mode", Has: "enforce_eager=True", Is: "NONE"},
		{Key: "weights_time", Has: "Loading weights took", Value: regexp.MustCompile(`Loading weights took ([\d.]+ seconds)`)},
		{Key: "weights_memory", Has: "Model loading took", Value: regexp.MustCompile(`Model loading took ([\d.]+ G[i]?B)`)},
		{Key: "revision", Has: "revision=", Value: regexp.MustCompile(`[ ,]revision='?([0-9A-Za-z._/-]+)'?,`)},
		{Key: "quantization", Has: "quantization=", Value: regexp.MustCompile(`[ ,]quantization='?([0-9A-Za-z._-]+)'?,`)},
	},
	Died: []string{"engine core exited unexpectedly", "died unexpectedly", "EngineDeadError"},
	Labels: []LabelFact{
		{Series: "vllm:cache_config_info", Label: "kv_cache_size_tokens", Key: "kv_cache_tokens"},
		{Series: "vllm:cache_config_info", Label: "block_size", Key: "block_size"},
		{Series: "vllm:cache_config_info", Label: "enable_prefix_caching", Key: "prefix_caching"},
	},
	Guess: Guess{Words: []string{"vllm"}},
	// vLLM reports no log-probabilities for a prompt from the prefix cache
	// (vllm-project/vllm#42245). A new cache_salt prevents a cache hit.
	Scores: Scores{
		Path: "/v1/completions", Prompt: "prompt", Values: "choices[0].prompt_logprobs",
		Fields: map[string]any{"max_tokens": 1, "temperature": 0, "prompt_logprobs": 0, "cache_salt": ""},
	},
	Hints: Hints{NoSeries: "vLLM has none under --disable-log-stats"},
	Without: map[string]string{
		"Launch.Entrypoint": "its program is on the image's PATH",
		"Launch.Model":      "the model is a word",
		"Launch.Hub":        "a path and a name on the hub are given alike",
		"Launch.File":       "a path and a name on the hub are given alike",
		"Launch.Metrics":    "the page is always there",
		"Flags.Slots":       "max-model-len is of one request",
		"Flags.Unified":     "max-model-len is of one request",
		"Pages.Template":    "/tokenize applies the chat template",
		"Guess.Owner":       "/version is the plainest page, and servers that imitate vLLM have it",
		"Hints.NoPage":      "the page is always there",
	},
}
