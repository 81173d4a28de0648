package engine

import (
	"regexp"

	"github.com/tokgate/tokgate/metric"
)

// TensorRT-LLM's API server refuses unknown fields. A chat request may have max_tokens or
// max_completion_tokens, but not both.
var trtllm = Engine{
	Name: "trtllm", Title: "TensorRT-LLM",
	Sources: "docs/source/commands/trtllm-serve; tensorrt_llm/commands/serve.py; tensorrt_llm/serve/openai_server.py and " +
		"openai_protocol.py; tensorrt_llm/metrics/collector.py; logs of 0.18 to 1.2 (kvCacheManager.cpp, " +
		"_torch/pyexecutor/py_executor_creator.py)",
	Launch: Launch{Program: []string{"trtllm-serve"}, Port: 8000, SharedMemory: "16g"},
	Flags: Flags{
		Models: []string{"model"}, Admission: []string{"max_batch_size"}, Context: []string{"max_seq_len"}, Equals: true,
	},
	Pages:   Pages{Health: "/health", Version: []string{"/version"}, VersionKey: "version", Metrics: "/prometheus/metrics"},
	Dialect: Dialect{IgnoreEOS: true, MinTokens: true, Natural: []API{Responses}, ContinuousUsage: true, PromptIDs: true},
	Series: []Series{
		{Name: "trtllm_num_requests_running", Kind: GaugeSum, Ours: "running"},
		{Name: "trtllm_num_requests_waiting", Kind: GaugeSum, Ours: "waiting"},
		{Name: "trtllm_kv_cache_utilization", Kind: GaugeMost, Ours: "kv_usage"},
		{Name: "trtllm_time_to_first_token_seconds", Kind: Buckets, Ours: "server_ttft"},
		{Name: "trtllm_e2e_request_latency_seconds", Kind: Buckets, Ours: "server_e2e"},
		{Name: "trtllm_request_queue_time_seconds", Kind: Buckets, Ours: "queue_wait"},
		{Name: "trtllm_request_prefill_time_seconds", Kind: Buckets, Ours: "prefill"},
		{Name: "trtllm_request_decode_time_seconds", Kind: Buckets, Ours: "decode"},
		{Name: "trtllm_request_prefill_time_seconds", Kind: Sum, Ours: metric.PrefillSeconds},
		{Name: "trtllm_prompt_tokens_total", Kind: Counter, Ours: metric.CacheQueries},
		{Name: "trtllm_prompt_cached_tokens_total", Kind: Counter, Ours: metric.CacheHits},
		{Name: "trtllm_spec_decode_num_draft_tokens_total", Kind: Counter, Ours: metric.DraftTokens},
		{Name: "trtllm_spec_decode_num_accepted_tokens_total", Kind: Counter, Ours: metric.AcceptedTokens},
		{Name: "trtllm_generation_tokens_total", Kind: Counter, Ours: metric.GeneratedTokens},
	},
	Log: []LogFact{
		{Key: "kv_cache_tokens", Has: "for max tokens in paged KV cache", Value: regexp.MustCompile(`for max tokens in paged KV cache \((\d+)\)`)},
		{Key: "max_model_len", Has: "max_num_requests=", Value: regexp.MustCompile(`max_seq_len=(\d+), max_num_requests=`)},
		{Key: "admission_cap", Has: "max_num_requests=", Value: regexp.MustCompile(`max_seq_len=\d+, max_num_requests=(\d+)`)},
	},
	Guess: Guess{Words: []string{"tensorrt-llm", "tensorrt_llm", "trtllm-serve"}, Owner: "tensorrt_llm"},
	Hints: Hints{NoPage: "TensorRT-LLM has metrics when return_perf_metrics and enable_iter_perf_stats are true in the YAML file that --config names"},
	Without: map[string]string{
		"Launch.Entrypoint": "trtllm-serve is on the image's PATH",
		"Launch.Model":      "the model is a word",
		"Launch.Hub":        "a path and a name on the hub are given alike",
		"Launch.File":       "a path and a name on the hub are given alike",
		"Launch.Metrics":    "no flag switches them on: see Hints.NoPage",
		"Launch.Env":        "nothing is needed",
		"Flags.Drafts":      "speculative_config is in the YAML file that --config names",
		"Flags.Slots":       "max_seq_len is of one request",
		"Flags.Unified":     "max_seq_len is of one request",
		"Flags.Negated":     "its switches have no opposite",
		"Pages.Tokenize":    "its /_internal/tokenize knows no chat and came late: prompts are sized by usage",
		"Pages.Template":    "see Pages.Tokenize",
		"Pages.Reset":       "it has none",
		"Dialect.Tokenizer": "see Pages.Tokenize",
		"Scores":            "its API returns no log-probabilities of the prompt",
		"Died":              "what its log says of a dead worker is not known",
		"Labels":            "its page tells numbers alone",
		"Hints.NoSeries":    "its page has them once it is there",
	},
}
