package plan

import (
	"fmt"
	"testing"
)

func TestDefaultRequestsAndRounds(t *testing.T) {
	for _, tt := range []struct {
		n        int
		requests string // as the plan writes it; "": not at all
		total    int
		rounds   int
	}{
		{1, "", 200, 10},
		{10, "", 200, 10}, // 10 rounds of 20: two waves of 10
		{11, "", 300, 10}, // 300 / 11 = 27, and there are ten seeds
		{15, "", 300, 10},
		{16, "", 300, 10},
		{30, "", 300, 10}, // ten rounds of one wave
		{31, "", 310, 10},
		{128, "", 1280, 10},
		{30, "600", 600, 10},
		{30, "120", 120, 4}, // five rounds would leave a slot without a request
		{1, "3", 3, 3},
		{4, "40", 40, 10}, // 40 / 4
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
		p, diags := LoadFile(LoadOptions{Path: "plan.hcl", Source: []byte(src)})
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		l := p.Workloads[0].Loads[0].Levels[0]
		if l.Requests != tt.total || l.Rounds != tt.rounds {
			t.Errorf("level %d, requests %q: %d in %d rounds, want %d in %d", tt.n, tt.requests, l.Requests, l.Rounds, tt.total, tt.rounds)
		}
	}
}
