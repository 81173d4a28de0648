package telemetry

import (
	"slices"

	"github.com/tokgate/tokgate/metric"
)

// Kind is what a page's series is to us.
type Kind string

const (
	GaugeSum  Kind = "gauge"             // summed over label sets
	GaugeMost Kind = "gauge, the most"   // the largest of the label sets
	Counter   Kind = "counter"           // summed over label sets
	Buckets   Kind = "histogram"         // added up over label sets
	Sum       Kind = "histogram's sum"   // as a counter
	Events    Kind = "histogram's count" // as a counter
)

// Name maps one series of an engine's page to one of our names.
type Name struct {
	Engine string // as a plan has it
	Series string // without _bucket, _sum, _count
	// Label and Value select series: "" takes all.
	Label, Value string
	Kind         Kind
	Ours         string // a metric.Def's name, or a counter of metric.Telemetry
	// Old says what is to be known of a name that another one has replaced.
	Old string
}

// Names are the series that are read, of all engines; a page holds those of
// one. Where a page has several of one engine for the same name of ours, the
// first in this order counts.
//
// The names are those of the engines' own sources: vLLM's
// vllm/v1/metrics/loggers.py and vllm/v1/spec_decode/metrics.py, SGLang's
// python/sglang/srt/observability/metrics_collector.py, and llama.cpp's
// tools/server.
var Names = []Name{
	{Engine: "vllm", Series: "vllm:num_requests_running", Kind: GaugeSum, Ours: "running"},
	{Engine: "vllm", Series: "vllm:num_requests_waiting", Kind: GaugeSum, Ours: "waiting"},
	{Engine: "vllm", Series: "vllm:kv_cache_usage_perc", Kind: GaugeMost, Ours: "kv_usage"},
	{Engine: "vllm", Series: "vllm:gpu_cache_usage_perc", Kind: GaugeMost, Ours: "kv_usage", Old: "older versions"},
	{Engine: "vllm", Series: "vllm:num_preemptions_total", Kind: Counter, Ours: metric.Preempted},
	{Engine: "vllm", Series: "vllm:num_preemptions", Kind: Counter, Ours: metric.Preempted, Old: "other exporters"},
	{Engine: "vllm", Series: "vllm:request_queue_time_seconds", Kind: Buckets, Ours: "queue_wait"},
	{Engine: "vllm", Series: "vllm:request_prefill_time_seconds", Kind: Buckets, Ours: "prefill"},
	{Engine: "vllm", Series: "vllm:request_decode_time_seconds", Kind: Buckets, Ours: "decode"},
	{Engine: "vllm", Series: "vllm:request_prefill_kv_computed_tokens", Kind: Sum, Ours: metric.PrefillTokens},
	{Engine: "vllm", Series: "vllm:request_prompt_tokens", Kind: Sum, Ours: metric.PrefillTokens, Old: "cached ones included"},
	{Engine: "vllm", Series: "vllm:request_prefill_time_seconds", Kind: Sum, Ours: metric.PrefillSeconds},
	{Engine: "vllm", Series: "vllm:prefix_cache_queries_total", Kind: Counter, Ours: metric.CacheQueries},
	{Engine: "vllm", Series: "vllm:gpu_prefix_cache_queries_total", Kind: Counter, Ours: metric.CacheQueries, Old: "older versions"},
	{Engine: "vllm", Series: "vllm:prefix_cache_hits_total", Kind: Counter, Ours: metric.CacheHits},
	{Engine: "vllm", Series: "vllm:gpu_prefix_cache_hits_total", Kind: Counter, Ours: metric.CacheHits, Old: "older versions"},
	{Engine: "vllm", Series: "vllm:spec_decode_num_drafts_total", Kind: Counter, Ours: metric.Drafts},
	{Engine: "vllm", Series: "vllm:spec_decode_num_draft_tokens_total", Kind: Counter, Ours: metric.DraftTokens},
	{Engine: "vllm", Series: "vllm:spec_decode_num_accepted_tokens_total", Kind: Counter, Ours: metric.AcceptedTokens},
	{Engine: "vllm", Series: "vllm:spec_decode_num_accepted_tokens_per_pos_total", Label: "position", Kind: Counter, Ours: metric.AcceptedTokens + "[i]"},
	{Engine: "vllm", Series: "vllm:generation_tokens_total", Kind: Counter, Ours: metric.GeneratedTokens},

	{Engine: "sglang", Series: "sglang:num_running_reqs", Kind: GaugeSum, Ours: "running"},
	{Engine: "sglang", Series: "sglang:num_queue_reqs", Kind: GaugeSum, Ours: "waiting"},
	{Engine: "sglang", Series: "sglang:token_usage", Kind: GaugeMost, Ours: "kv_usage"},
	{Engine: "sglang", Series: "sglang:num_retracted_requests_total", Kind: Counter, Ours: metric.Preempted},
	{Engine: "sglang", Series: "sglang:queue_time_seconds", Kind: Buckets, Ours: "queue_wait"},
	{Engine: "sglang", Series: "sglang:per_stage_req_latency_seconds", Label: "stage", Value: "prefill_forward", Kind: Buckets, Ours: "prefill"},
	{Engine: "sglang", Series: "sglang:prompt_tokens_total", Kind: Counter, Ours: metric.CacheQueries},
	{Engine: "sglang", Series: "sglang:cached_tokens_total", Kind: Counter, Ours: metric.CacheHits},
	{Engine: "sglang", Series: "sglang:spec_accept_rate", Kind: GaugeMost, Ours: "accept_rate"},
	{Engine: "sglang", Series: "sglang:spec_accept_length", Kind: GaugeMost, Ours: "accept_length"},
	{Engine: "sglang", Series: "sglang:generation_tokens_total", Kind: Counter, Ours: metric.GeneratedTokens},

	{Engine: "llama.cpp", Series: "llamacpp:requests_processing", Kind: GaugeSum, Ours: "running"},
	{Engine: "llama.cpp", Series: "llamacpp:requests_deferred", Kind: GaugeSum, Ours: "waiting"},
	{Engine: "llama.cpp", Series: "llamacpp:kv_cache_usage_ratio", Kind: GaugeMost, Ours: "kv_usage", Old: "older versions"},
	{Engine: "llama.cpp", Series: "llamacpp:prompt_tokens_total", Kind: Counter, Ours: metric.PrefillTokens},
	{Engine: "llama.cpp", Series: "llamacpp:prompt_seconds_total", Kind: Counter, Ours: metric.PrefillSeconds},
	{Engine: "llama.cpp", Series: "llamacpp:prompt_tokens_cached_total", Kind: Counter, Ours: metric.CacheHits},
	{Engine: "llama.cpp", Series: "llamacpp:spec_decode_num_drafts_total", Kind: Counter, Ours: metric.Drafts},
	{Engine: "llama.cpp", Series: "llamacpp:spec_decode_num_draft_tokens_total", Kind: Counter, Ours: metric.DraftTokens},
	{Engine: "llama.cpp", Series: "llamacpp:spec_decode_num_accepted_tokens_total", Kind: Counter, Ours: metric.AcceptedTokens},
	{Engine: "llama.cpp", Series: "llamacpp:tokens_predicted_total", Kind: Counter, Ours: metric.GeneratedTokens},
}

// Tells says whether the page of an engine, in any version that is known, holds
// what a metric of the server is made of. Of a plain OpenAI server nothing is
// known: it may.
func Tells(engine, name string) bool {
	sources := map[string][]string{
		"accept_rate":   {"accept_rate", metric.AcceptedTokens},
		"accept_length": {"accept_length", metric.AcceptedTokens},
		"preemptions":   {metric.Preempted},
	}[name]
	if sources == nil {
		sources = []string{name}
	}
	known := false
	for _, n := range Names {
		known = known || n.Engine == engine
		if n.Engine == engine && slices.Contains(sources, n.Ours) {
			return true
		}
	}
	return !known
}
