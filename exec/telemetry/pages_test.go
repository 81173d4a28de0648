package telemetry

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tokgate/tokgate/internal/must"
)

// sameAsAlone checks that reading another page first does not change the result for a page.
func sameAsAlone(t *testing.T, model, before, page string) {
	t.Helper()
	pages := &Pages{Model: model}
	_, _ = pages.Parse([]byte(before))
	got, err := pages.Parse([]byte(page))
	want, wantErr := pageOf([]byte(page), model)
	must.Same(t, fmt.Sprintf("after %q, the error of %q (-alone +then)", before, page), fmt.Sprint(wantErr), fmt.Sprint(err))
	must.Same(t, fmt.Sprintf("after %q, the reading of %q (-alone +then)", before, page), want, got, cmpopts.EquateNaNs())
}

// The result for a page does not depend on the pages that were read before it.
func TestPages(t *testing.T) {
	anew := regexp.MustCompile(`(?m)^([^#\n]*) ([0-9.e+]+)$`)
	with := func(old, new string) string {
		must.Need(t, strings.Contains(vllmPage, old), "the page does not hold %q", old)
		return strings.Replace(vllmPage, old, new, 1)
	}
	half := vllmPage[:strings.Index(vllmPage[len(vllmPage)/2:], "\n")+len(vllmPage)/2+1]
	for name, page := range map[string]string{
		"the same":              vllmPage,
		"other values":          anew.ReplaceAllString(vllmPage, "${1} 1${2}"),
		"zeros":                 anew.ReplaceAllString(vllmPage, "${1} 0"),
		"NaN":                   anew.ReplaceAllString(vllmPage, "${1} NaN"),
		"with their time":       anew.ReplaceAllString(vllmPage, "${1} ${2} 1700000000000"),
		"no numbers":            anew.ReplaceAllString(vllmPage, "${1} many"),
		"quoted":                anew.ReplaceAllString(vllmPage, "${1} ${2} # {model_name=\"m\"} 1"),
		"another model":         strings.ReplaceAll(vllmPage, `model_name="`, `model_name="another-`),
		"a line more":           vllmPage + "vllm:num_requests_swapped 1\n",
		"half":                  half,
		"cut off":               vllmPage[:len(vllmPage)-1],
		"twice":                 vllmPage + vllmPage,
		"nothing":               "",
		"of another engine":     "llamacpp:requests_processing 1\n",
		"a line is called anew": with("vllm:num_requests_running", "vllm:num_requests_walking"),
	} {
		t.Run(name, func(t *testing.T) {
			for _, model := range []string{"", "m", "another-m"} {
				sameAsAlone(t, model, vllmPage, page)
				sameAsAlone(t, model, page, vllmPage)
			}
		})
	}
	pages := &Pages{}
	must.Get(pages.Parse([]byte(vllmPage)))(t)
	_, ok := pages.last.read([]byte(anew.ReplaceAllString(vllmPage, "${1} 1${2}")))
	must.Hold(t, ok, "other values alone make it another page")
}

func FuzzPages(f *testing.F) {
	f.Add(vllmPage, vllmPage, "m")
	f.Add("vllm:num_requests_running 1\n", "vllm:num_requests_running 2 3\n", "")
	f.Add("vllm:num_requests_running 1\nx 2 \n", "vllm:num_requests_running 2\nx \"model_name=\\\"m\\\"\n", "m")
	f.Add("sglang:token_usage{tp_rank=\"1\"} 1\nsglang:token_usage 1\n", "sglang:token_usage{tp_rank=\"1\"} 9\nsglang:token_usage 7\n", "")
	f.Fuzz(func(t *testing.T, before, page, model string) { sameAsAlone(t, model, before, page) })
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
	if r, err := pageOf(page, "m"); err != nil || len(r.Histograms) != 3 {
		b.Fatal(r, err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		must.Get(pageOf(page, "m"))(b)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e9*100, "%core/(1/s)")
}
