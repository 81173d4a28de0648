package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// A window of three minutes is too short for requests of 20 s. A p95 needs 32 times the duration of
// a request.
//
// The command validate first warns because of the plan's thresholds, and later because of the last
// run. The run itself warns because of its warm-up.
func TestLongWindowTooShort(t *testing.T) {
	t.Chdir(t.TempDir())
	const src = `
server "sim" {
  simulator { profile = "qwen3-coder-30b-a3b-instruct-fp8.1x-h200-sxm" }
}
workload "chat" {
  input_tokens  = 100
  output_tokens = 1000
  load {
    rate     = "4 req/s"
    duration = "3m"
  }
  sla {
    ttft  = "p95 < 2s"
    speed = "mean > 50 tok/s"
  }
}
`
	must.Do(t, os.WriteFile("gate.hcl", []byte(src), 0o600))
	// A request takes up to 2 s + 999 · 20 ms, almost 22 s. The window must be 31.6 times as long,
	// almost 12 min. A window of 180 s suits only requests of up to 180 s / 31.6 = 5.7 s.
	const warns = "Percentile may pass only by its margin"
	tokgate(t, "validate", "gate.hcl").check(t, verdict.ExitPass, warns, "takes up to 22s", `Set duration = "12m"`)
	tokgate(t, "plan", "gate.hcl").check(t, verdict.ExitPass, "720 requests are enough for a rate", "of up to 64% of the largest rate; the window is long enough", "than 5.7 s")
	r := tokgate(t, "run", "--simulate", "gate.hcl")
	must.Hold(t, strings.Contains(r.err, "so ttft p95 takes a window of "), "the run does not say that its window is too short:\n%s", r.err)
	a := &app{color: "auto", Streams: Streams{Out: t.Output(), Err: t.Output()}}
	p, _ := a.load("gate.hcl", inputs{}, false)
	last := readLastRun("gate.hcl")
	if d := movingTogether(p, last); len(d) > 0 {
		t.Errorf("it passed in the last run, and yet: %s", d[0].Detail)
	}
	last.passes = nil
	d := movingTogether(p, last)
	must.Hold(t, len(d) == 1 && strings.Contains(d[0].Detail, ", by the simulation in results/gate-simulated/results.json, so that is "), "%v", d)
	// If no request completed in the last run, the plan's limits give the duration of a request.
	for key := range last.requests {
		last.requests[key] = 0
	}
	if d := movingTogether(p, last); len(d) != 1 || !strings.Contains(d[0].Detail, "takes up to 22s") {
		t.Errorf("nothing completed in the last run: %v", d)
	}
	// The warning names the first threshold that did not pass in the last run. Here ttft p95
	// passed, so the warning must name e2e p90.
	key := caseKey(p.Servers[0].Address(), p.Workloads[0].Address(), "sla.ttft.p95 at 4 req/s")
	last.passes = map[string]bool{key: true}
	p.Workloads[0].SLAs[0].Thresholds = append(p.Workloads[0].SLAs[0].Thresholds, &plan.Threshold{Metric: metric.MustLookup("e2e"), Stat: metric.Stat{Kind: metric.Percentile, P: 90}, Op: plan.Less, Limit: 30})
	if d := movingTogether(p, last); len(d) != 1 || !strings.Contains(d[0].Detail, "e2e p90") {
		t.Errorf("ttft passed, e2e was not judged: %v", d)
	}
	p.Gate.MeasureOnly = true
	if d := movingTogether(p, nil); len(d) > 0 {
		t.Errorf("nothing is required, and yet: %s", d[0].Detail)
	}
}

// The window of a rate must be long enough for the thresholds. If it is 4 h at 100 req/s, no
// product of requests and nanoseconds may overflow 64 bits.
//
// A request takes 22 s. So a window of one minute is shorter than four requests in a row, and one
// of three minutes is shorter than ten.
func TestRateWindows(t *testing.T) {
	const counted = "server_ttft = \"p95 < 2s\"\n    e2e = \"mean < 22s\""
	for _, tt := range []struct{ sla, duration, want string }{
		{`ttft = "p95 < 2s"`, "4h", ""}, {`ttft = "p95 < 2s"`, "1m", "Percentile cannot pass"}, {`ttft = "p95 < 2s"`, "4m", "Percentile may pass only by its margin"},
		{counted, "4h", ""}, {counted, "4m", "Percentile cannot pass"}, // it has no margin
		{`goodput = "share >= 95%"`, "4h", ""}, {`goodput = "share >= 95%"`, "3m", "Goodput share cannot pass"}, {`goodput = "share >= 95%"`, "4m", "Goodput share may not pass"},
	} {
		path := filepath.Join(t.TempDir(), "gate.hcl")
		must.Do(t, os.WriteFile(path, []byte(fmt.Sprintf(`
server "vllm" {
  engine = "vllm"
  endpoint { url = "http://127.0.0.1:8000" }
}
workload "chat" {
  input_tokens  = 100
  output_tokens = 1000
  load {
    rate     = "100 req/s"
    duration = %q
  }
  good {
    e2e = "< 22s"
  }
  sla {
    %s
    speed = "mean > 50 tok/s"
  }
}
`, tt.duration, tt.sla)), 0o600))
		a := &app{color: "auto", Streams: Streams{Out: t.Output(), Err: t.Output()}}
		p, err := a.load(path, inputs{}, false)
		must.Need(t, err == nil, "%v", err)
		var got string
		for _, d := range movingTogether(p, nil) {
			got += d.Summary
		}
		must.Hold(t, got == tt.want, "%+v: %q", tt, got)
	}
}
