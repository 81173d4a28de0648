package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/report"
)

// windowed returns a plan of one closed loop in a window.
func windowed(waves, gate, sla string) string {
	return `
server "sim" {
  simulator {}
}
` + gate + `
workload "chat" {
  input_tokens  = 512
  output_tokens = { mean = 64, jitter = "30%" }
  load {
    concurrency = [32]
    waves       = ` + waves + `
  }
  sla {
    ` + sla + `
  }
}
`
}

// A closed loop with waves is one window. It ends at its first certain look, and may be extended. The
// recording gives the same verdict and the same figures, also of what was in flight at the end.
func TestWaves(t *testing.T) {
	extend := "gate { on_inconclusive = \"extend\" }\n"
	for _, tt := range []struct {
		name             string
		waves, gate, sla string
		code             int
		words            []string
		requests         int // that are judged
		most             float64
	}{
		// A mean far from its limit passes after five of twenty waves: those, one to ramp up, and up to
		// two that were in flight or began meanwhile.
		{"far below", "20", "", `e2e = "mean < 10s"`, verdict.ExitPass, []string{"5 batches", "passed after 160 of 640 requests"}, 160, 8},
		{"far above", "20", "", `e2e = "mean < 1s"`, verdict.ExitFail, []string{"5 batches", "failed after 160 of 640 requests"}, 160, 8},
		{"near", "20", "", `e2e = "mean < 2.6s"`, verdict.ExitPass, []string{"20 batches"}, 640, 23},
		{"few waves", "5", "", `e2e = "mean < 10s"`, verdict.ExitPass, []string{"5 batches"}, 160, 8},
		{"extended", "5", extend, `e2e = "mean < 2.45s"`, verdict.ExitPass, []string{"batches"}, 0, 23},
		{"p99", "20", "", `ttft = "p99 < 2s"`, verdict.ExitPass, []string{"batches"}, 0, 23},
	} {
		t.Run(tt.name, inBubble(func(t *testing.T) {
			path, dir := writePlan(t, windowed(tt.waves, tt.gate, tt.sla)), t.TempDir()
			tokgate(t, "run", "--simulate", "--out", dir, path).check(t, tt.code, tt.words...)
			first := figures(t, dir)
			tokgate(t, "judge", dir, path).check(t, tt.code, tt.words...)
			must.Same(t, "judged again", first, figures(t, dir))
			judged, sent := requestsOf(t, dir)
			must.Hold(t, (tt.requests <= 0 || judged == tt.requests) && judged != 0, "%d requests judged, want %d", judged, tt.requests)
			waves := float64(sent) / 32
			must.Hold(t, waves <= tt.most, "%.1f waves sent for %.1f judged, at most %.0f", waves, float64(judged)/32, tt.most)
		}))
	}
}

// figures returns what results.json says.
func figures(t *testing.T, dir string) map[string]any {
	t.Helper()
	var out map[string]any
	must.Do(t, json.Unmarshal([]byte(read(t, filepath.Join(dir, "results.json"))), &out))
	return out
}

// requestsOf returns how many requests of a run's only level are judged, and how many were sent.
func requestsOf(t *testing.T, dir string) (judged, sent int) {
	t.Helper()
	d := must.Get(report.ReadDocument(strings.NewReader(read(t, filepath.Join(dir, "results.json")))))(t)
	for i := range d.Cases {
		judged += d.Cases[i].Due()
	}
	raw := must.Get(os.ReadFile(filepath.Join(dir, "samples.jsonl")))(t)
	return judged, strings.Count(string(raw), `"type":"sample"`)
}

func TestWavesAreRefused(t *testing.T) {
	for name, tt := range map[string]struct{ plan, words string }{
		"too few":  {windowed("4", "", `ttft = "p95 < 2s"`), "needs a window of at least 5 waves of 32 requests"},
		"by round": {windowed("300", "gate { clusters = \"round\" }\n", `success = "rate > 99%"`), "a closed loop is one window and has no rounds"},
	} {
		t.Run(name, func(t *testing.T) {
			tokgate(t, "validate", writePlan(t, tt.plan)).check(t, verdict.ExitPlan, tt.words)
		})
	}
}
