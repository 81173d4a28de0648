package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
)

// Some engines accept token ids as prompts of the completions API. These prompts have exactly the
// requested length. A server that does not accept ids gets prompts of text.
func TestPromptsOfTokenIDs(t *testing.T) {
	for _, tt := range []struct {
		engine string
		refuse bool
		ids    bool
	}{{"vllm", false, true}, {"vllm", true, false}, {"openai", false, false}} {
		t.Run(fmt.Sprintf("%s, refuse %t", tt.engine, tt.refuse), inBubble(func(t *testing.T) {
			backend := simServer(t)
			var ids, text atomic.Int64
			f := front(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if r.URL.Path == "/v1/completions" {
					if bytes.Contains(body, []byte(`"prompt":[`)) {
						if tt.refuse {
							http.Error(w, `{"error":{"message":"a prompt is a string"}}`, http.StatusBadRequest)
							return
						}
						ids.Add(1)
					} else {
						text.Add(1)
					}
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				backend.ServeHTTP(w, r)
			})
			f.Start()
			src := fmt.Sprintf(smallPlan, f.URL, `ttft = "p95 < 2s"`)
			src = strings.Replace(src, "input_tokens  = 64", "api = \"completions\"\n  input_tokens  = 64", 1)
			src = strings.Replace(src, "endpoint {", fmt.Sprintf("engine = %q\n  endpoint {", tt.engine), 1)
			tokgate(t, "run", "--out", t.TempDir(), writePlan(t, src)).check(t, verdict.ExitPass, "20 of 20 requests completed")
			// The test asks only that all measured requests, at least 20, send the same kind of
			// prompt: token ids or text. The ready check and the calibration may send the other
			// kind.
			got := ids.Load() >= 20
			must.Hold(t, got == tt.ids, "engine %s, refuse %t: %d prompts of ids, %d of text", tt.engine, tt.refuse, ids.Load(), text.Load())
		}))
	}
}
