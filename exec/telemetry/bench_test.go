package telemetry

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

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
