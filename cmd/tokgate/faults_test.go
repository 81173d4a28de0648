package main

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// faultPlan gates an endpoint. It decides by point estimates, so that few requests are enough.
const faultPlan = `
gate {
  decide = "estimate"
}
server "s" {
  endpoint { url = %q }
  ready { timeout = "30s" }
}
workload "w" {
  input_tokens  = 64
  output_tokens = { mean = 16, jitter = "10%%" }
  load {
    concurrency = 4
    requests    = 24
    seeds       = [1, 2]
    timeout     = "30s"
  }
  sla {
    ttft = "p95 < 2s"
  }
}
`

// A server may claim tokens that it did not generate or send, so that its answers seem to have the
// requested lengths. tokgate finds such lies in a sample of the answers.
func TestLongLies(t *testing.T) {
	long := strings.NewReplacer("mean = 16", "mean = 64", `server "s" {`, "server \"s\" {\n  engine = \"vllm\"").Replace(faultPlan)
	for _, tt := range []struct {
		name, rule string
		code       int
		words      string
	}{
		{"none", "comments", 0, "PASS"},
		{"half of the tokens are sent", "overcount", 4, "its own tokenizer makes"},
		{"the same to everybody", "canned", 4, "answers to different prompts have the same text"},
		{"the same prompt again", "replay", 4, "repeated answers come from a cache"},
		{"no tokenizer is there to ask", "http-500:path=/tokenize", 0, "PASS"},
	} {
		t.Run(tt.name, inBubble(func(t *testing.T) {
			plan := long
			if strings.Contains(tt.rule, "/tokenize") {
				plan = faultPlan // only engine = "vllm" needs /tokenize
			}
			r := tokgate(t, "run", "--out", t.TempDir(), writePlan(t, fmt.Sprintf(plan, simServer(t, tt.rule).URL())))
			r.check(t, tt.code, tt.words)
		}))
	}
}

// TestFaults runs plans against faulty servers and networks, and checks the results.
func TestFaults(t *testing.T) { faults(t, 7) }

func TestLongFaults(t *testing.T) { faults(t, 1) }

// faults runs the plan with faults of the list: with all of them if the parameter every is 1, with
// every seventh if it is 7. The short tests need no more, because the tests of sim, exec/client and
// exec/server try all faults.
func faults(t *testing.T, every int) {
	tests := []struct {
		name  string
		rules []string
		code  int
		words []string
	}{
		{"nothing is wrong", nil, 0, []string{"PASS"}},
		// If no request completed, there is no verdict. A latency of 0 ms must not pass.
		{"every request 500", []string{"http-500:from=5"}, 4, []string{"scripted fault: Internal Server Error"}},
		{"not even ready", []string{"http-500"}, 4, []string{"Internal Server Error"}},
		// Failed requests count as slower than every latency limit.
		{"30 % answer 500", []string{"http-500:from=5,share=0.3"}, 1, []string{"FAIL"}},
		{"30 % answer 429", []string{"http-429:from=5,share=0.3"}, 1, []string{"FAIL"}},
		{"30 % answer 503", []string{"http-503:from=5,share=0.3"}, 1, []string{"FAIL"}},
		{"an error in the stream", []string{"error-event:from=5,share=0.5,text=CUDA out of memory"}, 1, []string{"CUDA out of memory"}},
		{"the older error in the stream", []string{"error-event-legacy:from=5,share=0.5,text=CUDA out of memory"}, 1, []string{"CUDA out of memory"}},
		{"empty streams", []string{"empty-stream:from=5,share=0.5"}, 1, []string{"empty"}},
		{"no finish_reason", []string{"no-finish:from=5,share=0.5"}, 1, []string{"finish_reason"}},
		{"cut streams", []string{"cut:from=5,share=0.5"}, 1, nil},
		{"no usage anywhere", []string{"no-usage"}, 4, []string{"usage"}},
		{"no [DONE] is complete", []string{"no-done"}, 0, []string{"PASS"}},
		{"not an event stream", []string{"not-sse:from=5"}, 4, nil},
		{"reasoning", []string{"reasoning"}, 0, nil},
		{"reasoning_content", []string{"reasoning-content"}, 0, nil},
		{"tool calls only", []string{"tool-call"}, 0, nil},
		{"several tokens a chunk", []string{"multi-token"}, 0, nil},
		{"empty last delta", []string{"empty-delta"}, 0, nil},
		{"comments", []string{"comments"}, 0, nil},
		{"CR LF", []string{"crlf"}, 0, nil},
		{"byte order mark", []string{"bom"}, 0, nil},
		{"data: without a space", []string{"no-space"}, 0, nil},
		{"usage null before", []string{"usage-null"}, 0, nil},
		{"usage of zeros before", []string{"usage-zero"}, 0, nil},
		{"usage in the finish chunk", []string{"usage-in-finish"}, 0, nil},
		{"an event of 2 MB", []string{"big-event:every=10"}, 0, nil},
		{"byte by byte", []string{"byte-by-byte"}, 0, nil},
		{"stops at 3 tokens", []string{"early-stop"}, 4, []string{"output"}},
		{"everything from the cache", []string{"cached"}, 4, []string{"cache"}},
		{"prompts cut in silence", []string{"truncate-prompt:from=5,tokens=16"}, 4, []string{"input"}},
		{"Connection: close", []string{"conn-close"}, 0, nil},
		{"closes in spite of keep-alive", []string{"close-after"}, 0, nil},
		{"a redirect", []string{"redirect"}, 0, nil},
		{"gzip", []string{"gzip"}, 0, nil},
		{"unknown fields refused", []string{"reject-unknown"}, 0, nil},
		{"dies mid-run", []string{"die:from=20"}, 4, nil},
		{"streams that never end", []string{"never-ends:from=5,every=5"}, 1, []string{"time"}},
		{"hostile text in errors", []string{"hostile-error:from=5,share=0.5"}, 1, nil},
		// The server does not count the tokens of hostile text. If every answer had such text,
		// tokgate would find the server's count wrong.
		{"hostile text in answers", []string{"hostile-text:every=24"}, 0, nil},
		{"hostile model names", []string{"hostile-model"}, 0, nil},
	}
	for i, tt := range tests {
		if i%every > 0 {
			continue
		}
		t.Run(tt.name, inBubble(func(t *testing.T) {
			dir := t.TempDir()
			r := tokgate(t, "run", "--out", dir, writePlan(t, fmt.Sprintf(faultPlan, simServer(t, tt.rules...).URL())))
			r.check(t, tt.code, tt.words...)
			wellFormed(t, filepath.Join(dir, "junit.xml"))
			harmless(t, "stdout", r.out)
			harmless(t, "stderr", r.err)
			harmless(t, "report.md", read(t, filepath.Join(dir, "report.md")))
		}))
	}
}

func TestServerDown(t *testing.T) {
	inBubble(func(t *testing.T) {
		tokgate(t, "run", "--out", t.TempDir(), writePlan(t, fmt.Sprintf(faultPlan, "http://127.0.0.1:1"))).check(t, 4, "connection refused")
	})(t)
}

// wellFormed parses a whole XML file.
func wellFormed(t *testing.T, path string) {
	t.Helper()
	src := must.Get(os.ReadFile(path))(t)
	var any struct {
		XMLName xml.Name `xml:"testsuites"`
	}
	err := xml.Unmarshal(src, &any)
	must.Hold(t, err == nil, "%s does not parse: %v", path, err)
}

// harmless fails if the text s has control characters or workflow commands. With these, foreign
// text could give commands to a terminal or a CI system.
func harmless(t *testing.T, name, s string) {
	t.Helper()
	for i, r := range s {
		if r < ' ' && r != '\n' && r != '\t' {
			t.Errorf("%s holds control character %U at %d", name, r, i)
			return
		}
		if r == ':' && (i == 0 || s[i-1] == '\n') && len(s) > i+1 && s[i+1] == ':' {
			t.Errorf("%s has a line that begins with a workflow command", name)
			return
		}
	}
}
