package decode

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDefaultRequestsAndRounds(t *testing.T) {
	for _, tt := range []struct {
		n        int
		requests string // number of requests in the plan's syntax; "" if the plan sets none
		total    int
		rounds   int
	}{
		{1, "", 200, 10},
		{10, "", 200, 10}, // each of the ten rounds has two waves of 10 requests
		{11, "", 300, 10}, // there are enough requests for 27 rounds, but ten are the maximum
		{15, "", 300, 10},
		{16, "", 300, 10},
		{30, "", 300, 10}, // ten rounds of one wave
		{31, "", 310, 10},
		{128, "", 1280, 10},
		{30, "600", 600, 10},
		{30, "120", 120, 4}, // in five rounds, some slot would have no request in a round
		{1, "3", 3, 3},
		{4, "40", 40, 10}, // 40 / 4
		// Each seed of the plan has one round. A round has at least 8 requests, one for each slot.
		{8, "null\nseeds = range(1, 150)", 1192, 149}, // 149 · 8
		{8, "null\nseeds = [1, 2]", 200, 2},
		{8, "800\nseeds = range(1, 150)", 800, 100},
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
		if diags.HasErrors() {
			t.Fatal(diags)
		}
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
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	w := p.Workloads[0]
	var got []string
	for _, load := range w.Loads {
		for _, l := range load.Levels {
			got = append(got, fmt.Sprintf("%s: %d in %d", l.Name, l.Requests, l.Rounds))
		}
	}
	want := []string{
		"1: 600 in 10", "8: 600 in 10", "64: 640 in 10", "100: 1000 in 10",
		"burst 1: 600 in 600", "burst 7: 602 in 86", "burst 64: 640 in 10",
		"2: 450 in 10",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if l := w.Capacity.Level(8); l.Requests != 600 {
		t.Errorf("a probe of 8 has %d requests", l.Requests)
	}
}

// Every seed that the plan names gets one round, also in a search.
func TestSeedsOfASearch(t *testing.T) {
	for _, tt := range []struct {
		seeds  string // seeds in the plan's syntax; "" if the plan sets no seeds
		n      int
		total  int
		rounds int
	}{
		{"", 30, 300, 5}, // five rounds of 60 requests, so each slot sends two requests in a round
		{"seeds = [42]", 30, 300, 1},
		{"seeds = [42]", 1, 200, 1},
		{"seeds = [42, 123]", 30, 300, 2},
		{"seeds = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]", 30, 300, 10}, // not all seeds
	} {
		src := fmt.Sprintf(`
server "s" {
  endpoint { url = "http://127.0.0.1:1" }
}
workload "w" {
  input_tokens  = 10
  output_tokens = 10
  load {
    concurrency = 1
    requests    = 20
    %s
  }
  sla { ttft = "p95 < 2s" }
  capacity { up_to = 64 }
}
`, tt.seeds)
		p, diags := File(Options{Path: "plan.hcl", Source: []byte(src)})
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		l := p.Workloads[0].Capacity.Level(tt.n)
		if l.Requests != tt.total || l.Rounds != tt.rounds {
			t.Errorf("probe %d with %q: %d in %d rounds, want %d in %d", tt.n, tt.seeds, l.Requests, l.Rounds, tt.total, tt.rounds)
		}
	}
}
