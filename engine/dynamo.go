package engine

import "github.com/tokgate/tokgate/metric"

// dynamo is NVIDIA Dynamo's frontend, behind which vLLM, SGLang or TensorRT-LLM run.
var dynamo = Engine{
	Name: "dynamo", Title: "Dynamo",
	Sources: "Dynamo's metrics catalog; lib/runtime/src/metrics/prometheus_names.rs; frontend and mocker of 1.6.0",
	Launch:  Launch{Port: 8000},
	Flags:   Flags{Equals: true},
	Pages:   Pages{Health: "/health", Metrics: "/metrics"},
	Dialect: Dialect{IgnoreEOS: true, MinTokens: true, BothLimits: true, ContinuousUsage: true},
	Series: []Series{
		{Name: "dynamo_frontend_inflight_requests", Kind: GaugeSum, Ours: "running"},
		{Name: "dynamo_frontend_queued_requests", Kind: GaugeSum, Ours: "waiting"},
		{Name: "dynamo_frontend_time_to_first_token_seconds", Kind: Buckets, Ours: "server_ttft"},
		{Name: "dynamo_frontend_inter_token_latency_seconds", Kind: Buckets, Ours: "server_itl"},
		{Name: "dynamo_frontend_request_duration_seconds", Kind: Buckets, Ours: "server_e2e"},
		{Name: "dynamo_frontend_input_sequence_tokens", Kind: Sum, Ours: metric.CacheQueries},
		{Name: "dynamo_frontend_cached_tokens", Kind: Sum, Ours: metric.CacheHits},
		{Name: "dynamo_frontend_output_tokens_total", Kind: Counter, Ours: metric.GeneratedTokens},
	},
	Guess: Guess{Words: []string{"dynamo"}, Owner: "nvidia"},
	Without: map[string]string{
		"Launch":            "it is several programs: name its frontend as an endpoint, or set command",
		"Flags":             "the flags are those of the engine behind it",
		"Pages.Version":     "no page tells the version",
		"Pages.VersionKey":  "no page tells the version",
		"Pages.Tokenize":    "it has none",
		"Pages.Template":    "it has none",
		"Pages.Reset":       "it has none",
		"Dialect.Tokenizer": "it has none",
		"Dialect.Natural":   "what it passes on of other APIs' requests depends on the engine behind it",
		"Log":               "what the engine behind it logs is not seen",
		"Died":              "what the engine behind it logs is not seen",
		"Labels":            "its labels name models and workers",
		"Scores":            "whether it passes log-probabilities of a prompt on depends on the engine behind it",
		"Hints":             "its page is always there",
	},
}
