package decode

import (
	"fmt"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

func TestWaves(t *testing.T) {
	for _, tt := range []struct{ n, waves, requests, batches int }{
		{32, 20, 640, 20},
		{32, 10, 320, 10},
		{32, 40, 1280, 20},
		{8, 20, 200, 20}, // a wave has at least ten requests
		{1, 5, 50, 5},
		{64, 5, 320, 5},
		{64, 4, 256, 4}, // too few to certify anything
	} {
		p, diags := File(Options{Path: "plan.hcl", Source: fmt.Appendf(nil, `
server "s" {
  endpoint { url = "http://127.0.0.1:1" }
}
workload "w" {
  input_tokens  = 10
  output_tokens = 10
  load {
    concurrency = %d
    waves       = %d
    seeds       = [7, 8] # they choose prompts, and not how many batches there are
  }
  sla { ttft = "p95 < 2s" }
}
`, tt.n, tt.waves)})
		must.Need(t, !diags.HasErrors(), "%v", diags)
		if l := p.Workloads[0].Loads[0].Levels[0]; !l.Batches || l.Requests != tt.requests || l.Rounds != tt.batches {
			t.Errorf("%d waves of %d: %d requests in %d batches, want %d in %d", tt.waves, tt.n, l.Requests, l.Rounds, tt.requests, tt.batches)
		}
	}
}
