package server

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// TensorRT-LLM and vLLM have the same version page. The owner of the models tells them apart.
func TestDetectByOwner(t *testing.T) {
	for owner, want := range map[string]string{"tensorrt_llm": "trtllm", "vllm": "vllm", "": "vllm"} {
		mux := http.NewServeMux()
		mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"data":[{"id":"m","owned_by":"` + owner + `"}]}`))
		})
		mux.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"version":"1.2.0"}`)) })
		s := httptest.NewServer(mux)
		found, err := Detect(t.Context(), clock.NewReal(), Network{}, s.URL, "")
		s.Close()
		must.Hold(t, err == nil && found.Engine == want && found.Version == "1.2.0", "models of %q: %+v, %v; want %s", owner, found, err, want)
	}
}

// Dynamo has no page for its version, but names of its own on its metrics page.
func TestDetectByPage(t *testing.T) {
	for page, want := range map[string]string{"dynamo_frontend_inflight_requests{model=\"m\"} 0\n": "dynamo", "up 1\n": "openai"} {
		mux := http.NewServeMux()
		mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"data":[{"id":"m","owned_by":"nvidia"}]}`))
		})
		mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(page)) })
		s := httptest.NewServer(mux)
		found, err := Detect(t.Context(), clock.NewReal(), Network{}, s.URL, "")
		s.Close()
		must.Hold(t, err == nil && found.Engine == want && slices.Equal(found.Models, []string{"m"}), "%q: %+v, %v; want %s", page, found, err, want)
	}
}

// If the context length in the server's list of models differs from the flag in the plan, it is an
// error, unless the engine's slots share the context. Every engine has its own name for this flag.
func TestDeclaredContext(t *testing.T) {
	for _, e := range engine.All {
		for _, flag := range e.Flags.Context {
			s := &plan.Server{Engine: e.Name, Process: &plan.Process{}, Flags: []plan.Flag{{Name: flag, Value: cty.NumberIntVal(4096)}}}
			err := declared(s, metric.Fingerprint{}, client.Model{Context: 2048})
			if refuses := len(e.Flags.Slots) == 0; (err != nil) != refuses || refuses && !strings.Contains(err.Error(), "4096 tokens was declared, but one of 2048") {
				t.Errorf("%s, %s: %v", e.Name, flag, err)
			}
			for _, told := range []int{0, 4096} { // 0: not told
				if err := declared(s, metric.Fingerprint{}, client.Model{Context: told}); err != nil {
					t.Errorf("%s, %s, %d told: %v", e.Name, flag, told, err)
				}
			}
		}
	}
}
