package engine

import (
	"regexp"

	"github.com/tokgate/tokgate/metric"
)

var llamaCpp = Engine{
	Name: "llama.cpp", Title: "llama.cpp",
	Sources: "tools/server/README.md and its server code, .devops, common/arg.cpp; logs of b5000 to b11669 " +
		"(src/llama-model.cpp, src/llama-context.cpp, tools/server)",
	Launch: Launch{
		Program: []string{"llama-server"}, Entrypoint: "/app/llama-server", Model: "--model", Hub: "--hf-repo", File: ".gguf",
		Metrics: []string{"metrics"}, Port: 8080,
	},
	Flags: Flags{
		Models:    []string{"model", "m", "model-url", "mu", "hf-repo", "hf", "hfr", "docker-repo", "dr"},
		Admission: []string{"parallel", "np"}, Context: []string{"ctx-size", "c"},
		Slots: []string{"parallel", "np"}, Unified: []string{"kv-unified", "kvu"},
		Drafts: []string{"model-draft", "md", "spec-draft-model", "hf-repo-draft", "hfd", "hfrd", "spec-type"},
		Negated: []string{
			"cont-batching", "context-shift", "escape", "host", "jinja", "kv-offload", "kv-unified", "mmap", "mmproj", "mmproj-offload",
			"op-offload", "perf", "prefill-assistant", "repack", "slots", "ui", "warmup", "webui",
		},
	},
	Pages: Pages{
		Health: "/health", Version: []string{"/props"}, VersionKey: "build_info",
		Tokenize: "/tokenize", Template: "/apply-template", Metrics: "/metrics",
	},
	KVCached: true, // a slot keeps the cells of its last prompt
	Dialect: Dialect{IgnoreEOS: true, Natural: []API{Messages}, BothLimits: true, Timings: true, PromptIDs: true, Tokenizer: LlamaTokenizer,
		FreshConns: true},
	Series: []Series{
		{Name: "llamacpp:requests_processing", Kind: GaugeSum, Ours: "running"},
		{Name: "llamacpp:requests_deferred", Kind: GaugeSum, Ours: "waiting"},
		{Name: "llamacpp:kv_cache_usage_ratio", Kind: GaugeMost, Ours: "kv_usage", Old: "older versions"},
		{Name: "llamacpp:prompt_tokens_total", Kind: Counter, Ours: metric.PrefillTokens},
		{Name: "llamacpp:prompt_seconds_total", Kind: Counter, Ours: metric.PrefillSeconds},
		{Name: "llamacpp:prompt_tokens_cached_total", Kind: Counter, Ours: metric.CacheHits},
		{Name: "llamacpp:spec_decode_num_drafts_total", Kind: Counter, Ours: metric.Drafts},
		{Name: "llamacpp:spec_decode_num_draft_tokens_total", Kind: Counter, Ours: metric.DraftTokens},
		{Name: "llamacpp:spec_decode_num_accepted_tokens_total", Kind: Counter, Ours: metric.AcceptedTokens},
		{Name: "llamacpp:tokens_predicted_total", Kind: Counter, Ours: metric.GeneratedTokens},
		{Name: "llamacpp:tokens_predicted_seconds_total", Kind: Counter, Ours: metric.GeneratedSeconds},
	},
	Log: []LogFact{
		{Key: Phase, Has: "load_tensors:", Is: "loading the weights"},
		{Key: Phase, Has: "warming up the model", Is: "warming up"},
		{Key: "architecture", Has: "arch ", Value: regexp.MustCompile(`print_(?:info|meta): arch +[=:] (\S+)`)},
		{Key: "quantization", Has: "file type", Value: regexp.MustCompile(`print_(?:info|meta): file type +[=:] (.+?)\s*$`)},
		{Key: "kv_cache_tokens", Has: "n_ctx ", Value: regexp.MustCompile(`llama_\w+: n_ctx +[=:] (\d+)`)},
		{Key: "admission_cap", Has: "n_slots", Value: regexp.MustCompile(`n_slots = (\d+)`)},
		{Key: "max_model_len", Has: "n_ctx", Value: regexp.MustCompile(`(?:n_ctx_slot|new slot,? n_ctx) = (\d+)`)},
		{Key: "gpu_layers", Has: "offloaded", Value: regexp.MustCompile(`offloaded (\d+/\d+) layers to GPU`)},
		{Key: "threads", Has: "n_threads", Value: regexp.MustCompile(`n_threads = (\d+)`)},
	},
	Guess: Guess{Words: []string{"llama.cpp", "llama-server"}},
	Hints: Hints{NoPage: "llama.cpp's server has metrics when it is started with --metrics"},
	Without: map[string]string{
		"Launch.Env":          "nothing is needed",
		"Launch.SharedMemory": "it is one process",
		"Flags.Equals":        "it takes the next word, whatever it starts with, and no =",
		"Died":                "it is one process",
		"Labels":              "its page tells numbers alone",
		"Pages.Reset":         "a slot is emptied by its next request",
		"Guess.Owner":         "its page for the version is its own",
		"Scores":              "its server returns no log-probabilities of the prompt",
		"Hints.NoSeries":      "its page has them once it is there",
	},
}
