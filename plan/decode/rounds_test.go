package decode

import (
	"fmt"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

func TestDefaultRequestsAndRounds(t *testing.T) {
	for _, tt := range []struct {
		n        int
		requests string // number of requests in the plan's syntax; "" if the plan sets none
		total    int
		rounds   int
	}{
		{1, "", 200, 20}, // 20 batches of ten requests
		{10, "", 200, 20},
		{11, "", 220, 20}, // 20 waves of 11
		{128, "", 2560, 20},
		{30, "900", 900, 20}, // 20 batches of 45 requests
		{30, "300", 300, 10}, // ten batches of a wave
		{30, "150", 150, 5},  // a batch for each wave
		{30, "120", 120, 4},  // too few to certify anything
		{1, "20", 20, 5},     // 20 requests are 20 waves of one, so at least five batches
		{1, "3", 3, 1},
		{4, "40", 40, 5}, // four batches of ten, but ten waves of 4
		// Seeds choose prompts and lengths only.
		{8, "null\nseeds = range(1, 150)", 200, 20},
		{8, "null\nseeds = [1, 2]", 200, 20},
	} {
		requests := ""
		if tt.requests != "" {
			requests = "requests = " + tt.requests
		}
		src := fmt.Sprintf(`
server "s" {
  endpoint { url = "http://127.0.0.1:1" }
}
workload "w" {
  input_tokens  = 10
  output_tokens = 10
  load {
    concurrency = %d
    %s
  }
  sla { ttft = "p95 < 2s" }
}
`, tt.n, requests)
		p, diags := File(Options{Path: "plan.hcl", Source: []byte(src)})
		must.Need(t, !diags.HasErrors(), "%v", diags)
		l := p.Workloads[0].Loads[0].Levels[0]
		if l.Requests != tt.total || l.Rounds != tt.rounds {
			t.Errorf("level %d, requests %q: %d in %d rounds, want %d in %d", tt.n, tt.requests, l.Requests, l.Rounds, tt.total, tt.rounds)
		}
	}
}

// A p99 needs more requests than the plan's usual default. The preset therefore raises the default
// for levels, bursts and searches. A number in the plan still wins.
func TestPresetRequests(t *testing.T) {
	p, diags := File(Options{Path: "plan.hcl", Source: []byte(`
server "s" {
  endpoint { url = "http://127.0.0.1:1" }
}
workload "w" {
  preset        = "mlperf_llama2_70b"
  input_tokens  = 10
  output_tokens = 10
  load { concurrency = [1, 8, 64, 100] }
  load { burst = [1, 7, 64] }
  load {
    concurrency = 2
    requests    = 450
  }
  capacity { up_to = 64 }
}
`)})
	must.Need(t, !diags.HasErrors(), "%v", diags)
	w := p.Workloads[0]
	var got []string
	for _, load := range w.Loads {
		for _, l := range load.Levels {
			got = append(got, fmt.Sprintf("%s: %d in %d", l.Name, l.Requests, l.Rounds))
		}
	}
	want := []string{
		"1: 600 in 20", "8: 600 in 20", "64: 1280 in 20", "100: 2000 in 20",
		"burst 1: 600 in 600", "burst 7: 602 in 86", "burst 64: 640 in 10",
		"2: 450 in 20",
	}
	must.Same(t, "", want, got)
	l := w.Capacity.Level(8)
	must.Hold(t, l.Requests == 600, "a probe of 8 has %d requests", l.Requests)
}
