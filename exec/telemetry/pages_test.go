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
	want, wantErr := ParsePage([]byte(page), model)
	must.Same(t, fmt.Sprintf("after %q, the error of %q (-alone +then)", before, page), fmt.Sprint(wantErr), fmt.Sprint(err))
	must.Same(t, fmt.Sprintf("after %q, the reading of %q (-alone +then)", before, page), want, got, cmpopts.EquateNaNs())
}

// The result for a page does not depend on the pages that were read before it.
func TestPages(t *testing.T) {
	anew := regexp.MustCompile(`(?m)^([^#\n]*) ([0-9.e+]+)$`)
	with := func(old, new string) string {
		if !strings.Contains(vllmPage, old) {
			t.Fatalf("the page does not hold %q", old)
		}
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
	if _, ok := pages.last.read([]byte(anew.ReplaceAllString(vllmPage, "${1} 1${2}"))); !ok {
		t.Error("other values alone make it another page")
	}
}

func FuzzPages(f *testing.F) {
	f.Add(vllmPage, vllmPage, "m")
	f.Add("vllm:num_requests_running 1\n", "vllm:num_requests_running 2 3\n", "")
	f.Add("vllm:num_requests_running 1\nx 2 \n", "vllm:num_requests_running 2\nx \"model_name=\\\"m\\\"\n", "m")
	f.Add("sglang:token_usage{tp_rank=\"1\"} 1\nsglang:token_usage 1\n", "sglang:token_usage{tp_rank=\"1\"} 9\nsglang:token_usage 7\n", "")
	f.Fuzz(func(t *testing.T, before, page, model string) { sameAsAlone(t, model, before, page) })
}
