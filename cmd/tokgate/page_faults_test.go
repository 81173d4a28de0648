package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
)

// pageFaultPlan has thresholds on metrics that only the server's metrics page reports. Its format
// verbs stand for the URL of the server, the URL of its page, and the thresholds.
const pageFaultPlan = `
gate {
  decide = "estimate"
}
server "s" {
  engine = "vllm"
  endpoint { url = %q }
  telemetry {
    metrics_url = %q
    interval    = "100ms"
  }
}
workload "w" {
  api           = "completions"
  input_tokens  = 64
  output_tokens = 40
  load {
    concurrency = 4
    requests    = 40
    seeds       = [1]
  }
  sla {
    %s
  }
}
`

const (
	gaugeThresholds   = `waiting = "max <= 1000 requests"`
	counterThresholds = `preemptions = "<= 1000"`
	bucketThresholds  = `queue_wait = "p95 < 20s"`
)

// TestPageFaults checks the results of thresholds on a metrics page that fails during the
// load, through the whole program. The requests succeed, and the limits are so wide that
// only missing readings can keep them from passing.
func TestPageFaults(t *testing.T) { pageFaults(t, 6) }

func TestLongPageFaults(t *testing.T) { pageFaults(t, 1) }

// pageFaults tries every n-th fault of the list, where n is the parameter every. The tests of
// package exec/telemetry try all faults with the race detector.
func pageFaults(t *testing.T, every int) {
	// waiting returns a function that changes the metrics page: it sets the number of waiting
	// requests.
	waiting := func(value string) func([]byte) []byte {
		line := regexp.MustCompile(`(?m)^(vllm:num_requests_waiting(?:\{.*\})?) .*$`)
		return func(page []byte) []byte { return line.ReplaceAll(page, []byte("${1} "+value)) }
	}
	answer := func(change func([]byte) []byte) func(http.ResponseWriter, []byte) {
		return func(w http.ResponseWriter, page []byte) { _, _ = w.Write(change(page)) }
	}
	whole := answer(func(page []byte) []byte { return page })
	missing := func(w http.ResponseWriter, _ []byte) { http.Error(w, "no such page", http.StatusNotFound) }
	sometimes := func(every int64) func(int64) bool { return func(n int64) bool { return n%every == 0 } }
	later := func(n int64) bool { return n > 4 }
	always := func(int64) bool { return true }
	comments := strings.Repeat("# "+strings.Repeat("x", 1021)+"\n", 10<<10)
	anew := regexp.MustCompile(`(?m)^([^#\n]*) [0-9.e+]+$`)
	for i, tt := range []struct {
		name      string
		when      func(n int64) bool // whether the fault hits the n-th reading of the page
		then      func(w http.ResponseWriter, page []byte)
		threshold string
		code      int
		words     string
	}{
		{"nothing is wrong", always, whole, gaugeThresholds + "\n" + counterThresholds + "\n" + bucketThresholds, verdict.ExitPass, "PASS"},
		{"gzip", always, func(w http.ResponseWriter, page []byte) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			_, _ = z.Write(page)
		}, gaugeThresholds + "\n" + counterThresholds + "\n" + bucketThresholds, verdict.ExitPass, "PASS"},
		{"it disappears", later, missing, gaugeThresholds, verdict.ExitError, "no such page"},
		{"it disappears, counters", later, missing, counterThresholds, verdict.ExitError, "no such page"},
		{"it disappears, buckets", later, missing, bucketThresholds, verdict.ExitError, "no such page"},
		{"it fails now and then", sometimes(4), missing, gaugeThresholds, verdict.ExitError, "readings failed: its metrics could not be read: HTTP 404"},
		// For a counter the first and the last reading are enough, so other failed readings do not
		// matter.
		{"it fails now and then, counters", sometimes(4), missing, counterThresholds + "\n" + bucketThresholds, verdict.ExitPass, "PASS"},
		{"it begins anew", later, answer(func(page []byte) []byte { return anew.ReplaceAll(page, []byte("${1} 0")) }),
			gaugeThresholds, verdict.ExitError, "it was restarted"},
		{"it begins anew, counters", later, answer(func(page []byte) []byte { return anew.ReplaceAll(page, []byte("${1} 0")) }),
			bucketThresholds, verdict.ExitError, "it was restarted"},
		{"NaN", later, answer(waiting("NaN")), gaugeThresholds, verdict.ExitError, "waiting max has no value"},
		{"infinite", later, answer(waiting("+Inf")), gaugeThresholds, verdict.ExitError, "waiting max has no value"},
		{"no number", later, answer(waiting("many")), gaugeThresholds, verdict.ExitError, `"many" is no`},
		{"the gauge disappears", later, answer(func(page []byte) []byte {
			return bytes.ReplaceAll(page, []byte("vllm:num_requests_waiting"), []byte("vllm:something"))
		}), gaugeThresholds, verdict.ExitError, "waiting max has no value"},
		{"a series twice", later, answer(func(page []byte) []byte { return append(page, page...) }), gaugeThresholds, verdict.ExitError, "it appears twice"},
		{"cut in the middle", later, answer(func(page []byte) []byte { return page[:len(page)/2] }), gaugeThresholds, verdict.ExitError, "cut off"},
		{"shorter than its length", later, func(w http.ResponseWriter, page []byte) {
			w.Header().Set("Content-Length", fmt.Sprint(len(page)+1))
			_, _ = w.Write(page)
		}, gaugeThresholds, verdict.ExitError, "unexpected EOF"},
		{"10 MB", sometimes(8), func(w http.ResponseWriter, page []byte) {
			_, _ = w.Write(page)
			_, _ = io.WriteString(w, comments)
		}, gaugeThresholds, verdict.ExitError, "the answer is longer than"},
	} {
		if i%every > 0 {
			continue
		}
		t.Run(tt.name, inBubble(func(t *testing.T) {
			server := simServer(t)
			var reads atomic.Int64
			page := front(t, func(w http.ResponseWriter, r *http.Request) {
				page := httptest.NewRecorder()
				server.ServeHTTP(page, r)
				if tt.when(reads.Add(1)) {
					tt.then(w, page.Body.Bytes())
				} else {
					whole(w, page.Body.Bytes())
				}
			})
			page.Start()
			r := tokgate(t, "run", "--out", t.TempDir(), writePlan(t, fmt.Sprintf(pageFaultPlan, server.URL(), page.URL+"/metrics", tt.threshold)))
			r.check(t, tt.code, tt.words, "40 of 40 requests completed")
		}))
	}
}
