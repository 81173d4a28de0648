package telemetry

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// The pages are in the format of each engine, with invented numbers.
const vllmPage = `# HELP python_gc_objects_collected_total Objects collected during gc
# TYPE python_gc_objects_collected_total counter
python_gc_objects_collected_total{generation="0"} 1234.0
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 7.0
vllm:num_requests_running{engine="1",model_name="m"} 5.0
vllm:num_requests_waiting{engine="0",model_name="m"} 3.0
vllm:num_requests_waiting{engine="1",model_name="m"} 8.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.98
vllm:num_preemptions_total{engine="0",model_name="m"} 14.0
vllm:num_preemptions_created{engine="0",model_name="m"} 1.7e+09
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 1e+06
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 25000.0
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 100.0
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 200.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 130.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 80.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="1"} 50.0
vllm:generation_tokens_total{engine="0",model_name="m"} 230.0
vllm:request_prompt_tokens_sum{engine="0",model_name="m"} 8192.0
vllm:request_prompt_tokens_count{engine="0",model_name="m"} 8.0
vllm:request_queue_time_seconds_bucket{engine="0",le="0.3",model_name="m"} 4.0
vllm:request_queue_time_seconds_bucket{engine="0",le="0.5",model_name="m"} 6.0
vllm:request_queue_time_seconds_bucket{engine="0",le="+Inf",model_name="m"} 8.0
vllm:request_queue_time_seconds_count{engine="0",model_name="m"} 8.0
vllm:request_queue_time_seconds_sum{engine="0",model_name="m"} 3.5
vllm:request_queue_time_seconds_bucket{engine="1",le="0.3",model_name="m"} 1.0
vllm:request_queue_time_seconds_bucket{engine="1",le="0.5",model_name="m"} 1.0
vllm:request_queue_time_seconds_bucket{engine="1",le="+Inf",model_name="m"} 1.0
vllm:request_queue_time_seconds_count{engine="1",model_name="m"} 1.0
vllm:request_queue_time_seconds_sum{engine="1",model_name="m"} 0.25
vllm:request_prefill_time_seconds_bucket{engine="0",le="+Inf",model_name="m"} 8.0
vllm:request_prefill_time_seconds_sum{engine="0",model_name="m"} 2.0
vllm:request_prefill_time_seconds_count{engine="0",model_name="m"} 8.0
`

func TestParsePage(t *testing.T) {
	for _, tt := range []struct {
		name, page, model string
		want              Reading
	}{
		{"vLLM, two engines", vllmPage, "m", Reading{
			// The page has two engines. Counts of requests are added: 7+5 run and 3+8 wait. For
			// kv_usage the fuller cache counts.
			Gauges: map[string]float64{"running": 12, "waiting": 11, "kv_usage": 0.98},
			Counters: map[string]float64{
				metric.Preempted: 14, metric.CacheQueries: 1e6, metric.CacheHits: 25000, metric.Drafts: 100, metric.DraftTokens: 200,
				metric.AcceptedTokens: 130, "accepted_tokens[0]": 80, "accepted_tokens[1]": 50, metric.GeneratedTokens: 230,
				metric.PrefillTokens: 8192, metric.PrefillSeconds: 2,
			},
			Histograms: map[string]metric.Histogram{
				// The buckets of both engines are added: 4 and 1 observations up to 0.3 s, 2 and 0
				// from there to 0.5 s, and 2 and 0 above.
				"queue_wait": {Bounds: []float64{0.3, 0.5}, Counts: []float64{5, 2, 2}, Sum: 3.75},
				"prefill":    {Bounds: []float64{}, Counts: []float64{8}, Sum: 2},
			},
		}},
		{"old names", "vllm:gpu_cache_usage_perc{model_name=\"m\"} 0.25\nvllm:gpu_prefix_cache_hits_total 3\nvllm:gpu_prefix_cache_queries_total 9\n", "", Reading{
			Gauges:   map[string]float64{"kv_usage": 0.25},
			Counters: map[string]float64{metric.CacheHits: 3, metric.CacheQueries: 9},
		}},
		{"old and new name: the new one counts", "vllm:gpu_cache_usage_perc{engine=\"0\"} 0.9\nvllm:kv_cache_usage_perc 0.25\nvllm:gpu_cache_usage_perc{engine=\"1\"} 0.8\n", "", Reading{
			Gauges: map[string]float64{"kv_usage": 0.25},
		}},
		{"prompt tokens without the cached ones, where told", "vllm:request_prompt_tokens_sum 900\nvllm:request_prefill_kv_computed_tokens_sum 600\n", "", Reading{
			Counters: map[string]float64{metric.PrefillTokens: 600},
		}},
		{"of two models that which was asked for", "vllm:num_requests_running{model_name=\"a\"} 1\nvllm:num_requests_running{model_name=\"b \\\"x\\\" \\\\ }\"} 2\n", `b "x" \ }`, Reading{
			Gauges: map[string]float64{"running": 2},
		}},
		{"a model under another name", "vllm:num_requests_running{engine=\"0\",model_name=\"a\"} 1\nvllm:num_requests_running{engine=\"1\",model_name=\"a\"} 2\n", "c", Reading{
			Gauges: map[string]float64{"running": 3},
		}},
		{"SGLang", `sglang:num_running_reqs{model_name="m",tp_rank="0",pp_rank="0"} 3.0
sglang:num_running_reqs{model_name="m",tp_rank="1",pp_rank="0"} 3.0
sglang:num_queue_reqs{model_name="m"} 2.0
sglang:token_usage{model_name="m"} 0.28
sglang:num_retracted_requests_total{model_name="m"} 4.0
sglang:prompt_tokens_total{model_name="m"} 1000.0
sglang:cached_tokens_total{model_name="m",cache_source="device"} 100.0
sglang:cached_tokens_total{model_name="m",cache_source="host"} 50.0
sglang:spec_accept_length{model_name="m"} 2.5
sglang:queue_time_seconds_bucket{le="0.1",model_name="m"} 2.0
sglang:queue_time_seconds_bucket{le="+Inf",model_name="m"} 3.0
sglang:queue_time_seconds_sum{model_name="m"} 0.5
sglang:queue_time_seconds_count{model_name="m"} 3.0
sglang:per_stage_req_latency_seconds_bucket{le="1.0",stage="prefill_forward"} 2.0
sglang:per_stage_req_latency_seconds_bucket{le="+Inf",stage="prefill_forward"} 2.0
sglang:per_stage_req_latency_seconds_sum{stage="prefill_forward"} 0.4
sglang:per_stage_req_latency_seconds_bucket{le="+Inf",stage="tokenize"} 9.0
`, "m", Reading{
			Gauges:   map[string]float64{"running": 3, "waiting": 2, "kv_usage": 0.28, "accept_length": 2.5},
			Counters: map[string]float64{metric.Preempted: 4, metric.CacheQueries: 1000, metric.CacheHits: 150},
			Histograms: map[string]metric.Histogram{
				"queue_wait": {Bounds: []float64{0.1}, Counts: []float64{2, 1}, Sum: 0.5},
				"prefill":    {Bounds: []float64{1}, Counts: []float64{2, 0}, Sum: 0.4},
			},
		}},
		{"llama.cpp", `llamacpp:prompt_tokens_total 600
llamacpp:prompt_tokens_cached_total 400
llamacpp:prompt_seconds_total 1.5
llamacpp:tokens_predicted_total 77
llamacpp:requests_processing 4
llamacpp:requests_deferred 2
llamacpp:n_decode_total 12
`, "m", Reading{
			Gauges: map[string]float64{"running": 4, "waiting": 2},
			// The page counts 600 computed and 400 cached prompt tokens, so 1000 were looked up in
			// the cache.
			Counters: map[string]float64{metric.PrefillTokens: 600, metric.CacheHits: 400, metric.CacheQueries: 1000, metric.PrefillSeconds: 1.5, metric.GeneratedTokens: 77},
		}},
		{"spaces, time stamps, CRLF, exponents", "vllm:num_requests_running { engine=\"0\", model_name=\"m\" }  1.2e1 1700000000000\r\nvllm:num_requests_waiting\t3\n", "", Reading{
			Gauges: map[string]float64{"running": 12, "waiting": 3},
		}},
		{"buckets that shrink cost no more than themselves", "vllm:request_queue_time_seconds_bucket{le=\"1\"} 12\nvllm:request_queue_time_seconds_bucket{le=\"2\"} 3\nvllm:request_queue_time_seconds_bucket{le=\"+Inf\"} 12\nvllm:num_requests_waiting 1\n", "", Reading{
			Gauges: map[string]float64{"waiting": 1}, None: map[string]string{"queue_wait": "the server's histogram cannot be used: its buckets do not add up"},
		}},
		{"a sum that is none, a counter beyond belief", "vllm:request_queue_time_seconds_bucket{le=\"+Inf\"} 12\nvllm:request_queue_time_seconds_sum NaN\nvllm:num_preemptions_total 1e300\n", "", Reading{
			None: map[string]string{"queue_wait": "the server's histogram cannot be used: its sum is no number", "preemptions": "the server reports 1e+300, which is impossible"},
		}},
		{"what is not a number is not told", "vllm:num_requests_running NaN\nvllm:kv_cache_usage_perc +Inf\nvllm:num_requests_waiting 1\n", "", Reading{
			Gauges: map[string]float64{"waiting": 1},
		}},
		{"a line that is not wanted may be anything", "vllm:num_requests_waiting 1\nvllm:other{x=\"} y\nbroken{ 7\n", "", Reading{
			Gauges: map[string]float64{"waiting": 1},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := must.Get(ParsePage([]byte(tt.page), tt.model))(t)
			for _, m := range []*map[string]float64{&tt.want.Gauges, &tt.want.Counters} {
				if *m == nil {
					*m = map[string]float64{}
				}
			}
			if tt.want.Histograms == nil {
				tt.want.Histograms = map[string]metric.Histogram{}
			}
			if tt.want.None == nil {
				tt.want.None = map[string]string{}
			}
			must.Same(t, "", &tt.want, got)
		})
	}
}

func TestParsePageRefuses(t *testing.T) {
	for _, tt := range []struct{ name, page, want string }{
		{"nothing", "", "empty"},
		{"an answer cut in the middle of a number", "vllm:num_requests_running 12\nvllm:num_requests_waiting 12", "cut off"},
		{"another server's page", "# nothing\nhttp_requests_total 3\n", "no metric of vLLM, SGLang, llama.cpp"},
		{"HTML", "<html><body>404</body></html>\n", "no metric of vLLM"},
		{"no value", "vllm:num_requests_running{engine=\"0\"}\n", "there is no value"},
		{"text for a value", "vllm:num_requests_running twelve\n", `"twelve" is no number`},
		{"a series twice", "vllm:num_requests_running{engine=\"0\"} 3\nvllm:num_requests_running{engine=\"1\"} 3\nvllm:num_requests_running{engine=\"0\"} 4\n", "vllm:num_requests_running: it appears twice"},
		{"labels without an end", "vllm:num_requests_running{engine=\"0 12\n", "its labels do not end"},
		{"labels without quotes", "vllm:num_requests_running{engine=0} 12\n", "its labels cannot be read"},
		{"a bucket without a bound", "vllm:request_queue_time_seconds_bucket{engine=\"0\"} 12\n", "is no bound"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParsePage([]byte(tt.page), "")
			must.Hold(t, err != nil && strings.Contains(err.Error(), tt.want), "got %v, error %v, want one with %q", got, err, tt.want)
		})
	}
}

// tokgate has a name for every series of an engine. The summary of a window includes all these
// names.
func TestNames(t *testing.T) {
	counters := map[string]bool{"accepted_tokens[i]": true}
	for _, c := range serverCounters {
		counters[c] = true
	}
	seen := map[string]bool{}
	for _, n := range allSeries() {
		if key := fmt.Sprint(n.Name, n.Value, n.Kind); seen[key] {
			t.Errorf("%s is there twice", n.Name)
		} else {
			seen[key] = true
		}
		def, ok := metric.Lookup(n.Ours)
		must.Hold(t, (ok || counters[n.Ours]) && (!ok || def.Source == metric.Server), "%s leads to %q, which nobody asks for", n.Name, n.Ours)
		labels := ""
		if n.Label != "" {
			labels = fmt.Sprintf("{%s=%q}", n.Label, cmpOr(n.Value, "0"))
		}
		line := n.Name + labels + " 3\n"
		switch n.Kind {
		case engine.Sum:
			line = n.Name + "_sum" + labels + " 3\n"
		case engine.Buckets:
			line = n.Name + "_count" + labels + " 3\n"
		}
		r, err := ParsePage([]byte(line), "")
		if err != nil {
			t.Errorf("%s: %v", n.Name, err)
			continue
		}
		got := r.String()
		must.Hold(t, strings.Contains(" "+got+" ", " "+strings.Replace(n.Ours, "[i]", "[0]", 1)+" "), "%q gives %q, want %s", line, got, n.Ours)
	}
}

func allSeries() (all []engine.Series) {
	for _, e := range engine.All {
		all = append(all, e.Series...)
	}
	return all
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// vLLM 0.32 reports facts about its cache in labels.
func TestLabels(t *testing.T) {
	const page = "# TYPE vllm:cache_config_info gauge\n" +
		`vllm:cache_config_info{block_size="128",enable_prefix_caching="True",engine="0",kv_cache_size_tokens="2097152",mamba_block_size="None"} 1.0` + "\n" +
		`vllm:cache_config_info{block_size="64",engine="1"} 1.0` + "\n"
	of := engine.Of("vllm").Labels
	want := map[string]string{"kv_cache_tokens": "2097152", "block_size": "128", "prefix_caching": "true"}
	must.Same(t, "", want, Labels([]byte(page), of))
	for _, page := range []string{"", "vllm:cache_config_info 1\n", `vllm:cache_config_info{block_size="None"} 1` + "\n", `vllm:cache_config_info{block_size="1`} {
		got := Labels([]byte(page), of)
		must.Hold(t, len(got) <= 0, "%q tells %v", page, got)
	}
}

func FuzzParsePage(f *testing.F) {
	f.Add(vllmPage, "m")
	f.Add("sglang:token_usage{tp_rank=\"1\",x=\"\\\"\"} 1 2\n", "")
	f.Add("vllm:request_queue_time_seconds_bucket{le=\"0x1p-2\"} 1\nvllm:request_queue_time_seconds_bucket{le=\"-Inf\"} 1e308\n", "")
	f.Add("llamacpp:requests_processing{ } -0\n", "\\")
	f.Fuzz(func(t *testing.T, page, model string) {
		Labels([]byte(page), engine.Of("vllm").Labels)
		r, err := ParsePage([]byte(page), model)
		must.Need(t, (r == nil) != (err == nil), "reading %v and error %v", r, err)
		if err != nil {
			return
		}
		// Recorded numbers must be finite, because JSON can write neither infinities nor NaN.
		for name, v := range r.Gauges {
			must.Hold(t, !math.IsNaN(v), "%s is NaN", name)
		}
		for name, h := range r.Histograms {
			must.Hold(t, len(h.Counts) == len(h.Bounds)+1 && (h.N() >= 0) && !math.IsInf(h.N(), 0), "%s: %+v", name, h)
			for i, b := range h.Bounds {
				must.Hold(t, !math.IsInf(b, 0) && !math.IsNaN(b) && (i <= 0 || b > h.Bounds[i-1]), "%s: bounds %v", name, h.Bounds)
			}
		}
	})
}

// If a page has several models, but not the wanted one, the model under load is unknown.
func TestPageOfOtherModels(t *testing.T) {
	engine := 0
	line := func(model string, n int) string {
		engine++
		return fmt.Sprintf("vllm:num_requests_waiting{engine=\"%d\",model_name=%q} %d\n", engine, model, n)
	}
	// Dynamo's frontend has a page for all its models.
	dynamo := func(model string, n int) string {
		return fmt.Sprintf("dynamo_frontend_queued_requests{model=%q} %d\n", model, n)
	}
	for _, tt := range []struct {
		page string
		want float64 // -1: an error
	}{
		{line("m", 3) + line("x", 8), 3},
		{line("alias", 3) + line("alias", 2), 5}, // one model, on two engines: values add up
		{line("x", 3) + line("y", 8), -1},
		{line("x", 3) + line("xy", 8), -1},
		{line("x", 3) + line(`x"y`, 8), -1},
		{dynamo("m", 3) + dynamo("x", 8), 3},
		{dynamo("x", 3) + dynamo("m", 8), 8},
		{dynamo("alias", 3), 3},
		{dynamo("x", 3) + dynamo("y", 8), -1},
	} {
		r, err := ParsePage([]byte(tt.page), "m")
		if tt.want < 0 {
			must.Hold(t, err != nil && strings.Contains(err.Error(), `the page has several models, but not "m"`), "%q: %v, %v", tt.page, r, err)
		} else if err != nil || r.Gauges["waiting"] != tt.want {
			t.Errorf("%q: %v, %v", tt.page, r, err)
		}
	}
	r, err := ParsePage([]byte(dynamo("qwen/qwen3-8b", 3)+dynamo("x", 8)), "Qwen/Qwen3-8B")
	must.Hold(t, err == nil && r.Gauges["waiting"] == 3, "a name in small letters: %v, %v", r, err)
	_, err = ParsePage([]byte("vllm:num_requests_waiting{model_name=\"cut} 1\n"), "m")
	must.Hold(t, err != nil, "a label without an end was read")
}

// realistic returns a page of 1,500 lines. It is like a page of vLLM with two engines, with the
// metrics of Python and of vLLM's HTTP server. tokgate reads a tenth of the page's lines.
func realistic() []byte {
	var b strings.Builder
	b.WriteString(vllmPage)
	lines := strings.Count(vllmPage, "\n")
	for i := 0; lines < 1500; i++ {
		for _, name := range []string{"time_to_first_token_seconds", "inter_token_latency_seconds", "e2e_request_latency_seconds", "iteration_tokens_total", "request_params_n"} {
			fmt.Fprintf(&b, "vllm:%s_bucket{engine=\"%d\",le=\"%g\",model_name=\"Qwen/Qwen3.6-35B-A3B-FP8\"} %d.0\n", name, i%2, 0.001*float64(i+1), 37*i)
			lines++
		}
		if i < 20 {
			for engine := range 2 {
				for _, name := range []string{"request_queue_time_seconds", "request_prefill_time_seconds", "request_decode_time_seconds"} {
					fmt.Fprintf(&b, "vllm:%s_bucket{engine=\"%d\",le=\"%g\",model_name=\"m\"} %d.0\n", name, engine, 1000+float64(i), 1000*(i+1))
					lines++
				}
			}
		}
		fmt.Fprintf(&b, "http_request_duration_seconds_bucket{handler=\"/v1/chat/completions\",le=\"%g\",method=\"POST\"} %d.0\n", 0.1*float64(i), i)
		lines++
	}
	for _, name := range []string{"request_queue_time_seconds", "request_prefill_time_seconds", "request_decode_time_seconds"} {
		fmt.Fprintf(&b, "vllm:%s_bucket{engine=\"2\",le=\"+Inf\",model_name=\"m\"} 1e6\n", name)
	}
	return []byte(b.String())
}

// BenchmarkParsePage reports which share of a processor core it takes to read a realistic page once
// a second.
func BenchmarkParsePage(b *testing.B) {
	page := realistic()
	if r, err := ParsePage(page, "m"); err != nil || len(r.Histograms) != 3 {
		b.Fatal(r, err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		must.Get(ParsePage(page, "m"))(b)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e9*100, "%core/(1/s)")
}
