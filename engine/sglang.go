package engine

import (
	"regexp"

	"github.com/tokgate/tokgate/metric"
)

var sglang = Engine{
	Name: "sglang", Title: "SGLang",
	Sources: "docs/advanced_features/server_arguments.md and docker/Dockerfile; python/sglang/srt/entrypoints; " +
		"python/sglang/srt/observability/metrics_collector.py; logs of 0.4 to 0.5 (managers/scheduler.py, " +
		"model_executor/model_runner.py, mem_cache/memory_pool.py)",
	Launch: Launch{
		Program: []string{"python3", "-m", "sglang.launch_server"}, Model: "--model-path", Metrics: []string{"enable-metrics"},
		Port: 30000, SharedMemory: "16g",
	},
	Flags: Flags{
		Models: []string{"model-path", "model"}, Admission: []string{"max-running-requests"}, Context: []string{"context-length"},
		Drafts: []string{"speculative-algorithm", "speculative-algo"},
		Equals: true,
	},
	Pages: Pages{
		Health: "/health", Version: []string{"/server_info", "/get_server_info"}, VersionKey: "version",
		Tokenize: "/tokenize", Reset: "/flush_cache", Metrics: "/metrics",
	},
	Dialect: Dialect{IgnoreEOS: true, MinTokens: true, Natural: []API{Responses, Messages}, BothLimits: true,
		ContinuousUsage: true, PromptIDs: true, Tokenizer: SGLangTokenizer},
	Series: []Series{
		{Name: "sglang:num_running_reqs", Kind: GaugeSum, Ours: "running"},
		{Name: "sglang:num_queue_reqs", Kind: GaugeSum, Ours: "waiting"},
		{Name: "sglang:token_usage", Kind: GaugeMost, Ours: "kv_usage"},
		{Name: "sglang:num_retracted_requests_total", Kind: Counter, Ours: metric.Preempted},
		{Name: "sglang:queue_time_seconds", Kind: Buckets, Ours: "queue_wait"},
		{Name: "sglang:per_stage_req_latency_seconds", Label: "stage", Value: "prefill_forward", Kind: Buckets, Ours: "prefill"},
		{Name: "sglang:time_to_first_token_seconds", Kind: Buckets, Ours: "server_ttft"},
		{Name: "sglang:inter_token_latency_seconds", Kind: Buckets, Ours: "server_itl"},
		{Name: "sglang:e2e_request_latency_seconds", Kind: Buckets, Ours: "server_e2e"},
		{Name: "sglang:num_aborted_requests_total", Kind: Counter, Ours: metric.Aborted},
		{Name: "sglang:prompt_tokens_total", Kind: Counter, Ours: metric.CacheQueries},
		{Name: "sglang:cached_tokens_total", Kind: Counter, Ours: metric.CacheHits},
		{Name: "sglang:spec_accept_rate", Kind: GaugeMost, Ours: "accept_rate"},
		{Name: "sglang:spec_accept_length", Kind: GaugeMost, Ours: "accept_length"},
		{Name: "sglang:generation_tokens_total", Kind: Counter, Ours: metric.GeneratedTokens},
	},
	Log: []LogFact{
		{Key: Phase, Has: "Load weight begin", Is: "loading the weights"},
		{Key: Phase, Has: "Load weight end", Is: "making the KV cache"},
		{Key: Phase, Has: "Capture cuda graph begin", Is: "capturing CUDA graphs"},
		{Key: Phase, Has: "Capture cuda graph end", Is: "beginning to listen"},
		{Key: "kv_cache_tokens", Has: "max_total_num_tokens=", Value: regexp.MustCompile(`max_total_num_tokens=(\d+)`)},
		{Key: "admission_cap", Has: "max_running_requests=", Value: regexp.MustCompile(`max_total_num_tokens=.*max_running_requests=(\d+)`)},
		{Key: "architecture", Has: "Load weight end", Value: regexp.MustCompile(`Load weight end\..*[ ,]type=(\w+)`)},
		{Key: "weights_memory", Has: "Load weight end", Value: regexp.MustCompile(`Load weight end\..*mem usage=([\d.]+ GB)`)},
		{Key: "cudagraph_mode", Has: "Capture cuda graph end", Is: "FULL"},
		{Key: "cudagraph_mode", Has: "disable_cuda_graph=True", Is: "NONE"},
		{Key: "revision", Has: "revision=", Value: regexp.MustCompile(`[ ,(]revision='?([0-9A-Za-z._/-]+)'?,`)},
		{Key: "quantization", Has: "quantization=", Value: regexp.MustCompile(`[ ,(]quantization='?([0-9A-Za-z._-]+)'?,`)},
	},
	Died:   []string{"Scheduler hit an exception", "Received sigquit from a child process"},
	Labels: []LabelFact{{Series: "sglang:cache_config_info", Label: "page_size", Key: "block_size"}},
	Guess:  Guess{Words: []string{"sglang"}},
	// SGLang does not use its radix cache if log-probabilities begin at position 0
	// (logprob_start_len).
	Scores: Scores{
		Path: "/generate", Prompt: "input_ids", Values: "meta_info.input_token_logprobs",
		Fields: map[string]any{
			"sampling_params": map[string]any{"max_new_tokens": 1, "temperature": 0},
			"return_logprob":  true, "logprob_start_len": 0,
		},
	},
	Hints: Hints{NoPage: "SGLang has metrics when it is started with --enable-metrics"},
	Without: map[string]string{
		"Launch.Entrypoint": "python3 is on the image's PATH",
		"Launch.Hub":        "a path and a name on the hub are given alike",
		"Launch.File":       "a path and a name on the hub are given alike",
		"Launch.Env":        "nothing is needed",
		"Flags.Slots":       "context-length is of one request",
		"Flags.Unified":     "context-length is of one request",
		"Flags.Negated":     "its flags are switched off by others, such as disable-radix-cache",
		"Pages.Template":    "the chat template's part is learnt from usage",
		"Guess.Owner":       "its page for the version is its own",
		"Hints.NoSeries":    "its page has them once it is there",
	},
}
