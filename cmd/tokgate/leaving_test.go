package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

const leavingPlan = `
server "s" {
  simulator {}
}
workload "w" {
  input_tokens  = 300
  output_tokens = { mean = 64, jitter = "40%" }
  load { LOAD }
  sla { success = "observed >= 100%" }
  CANCEL
}
`

// samplesOf returns the recorded requests of a run.
func samplesOf(t *testing.T, dir string) (out []metric.Sample) {
	t.Helper()
	f := must.Get(os.Open(filepath.Join(dir, "samples.jsonl")))(t)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var l struct{ Sample *metric.Sample }
		if err := json.Unmarshal(lines.Bytes(), &l); err == nil && l.Sample != nil {
			out = append(out, *l.Sample)
		}
	}
	return out
}

// Clients leave in every shape of load, as many as the plan says. Those that stay send what they send
// without the others; at a rate, also at the same times.
func TestClientsThatLeave(t *testing.T) {
	for _, tt := range []struct {
		name, load string
		rate       bool
	}{
		{"a closed loop", "concurrency = 4\n    requests = 100\n    seeds = [1, 2, 3, 4, 5]", false},
		{"one window", "concurrency = 4\n    waves = 10", false},
		{"a burst", "burst = 20\n    seeds = [1, 2, 3, 4, 5]", false},
		{"a rate", "rate = \"3 req/s\"\n    duration = \"60s\"", true},
		{"stages", "max_in_flight = 100\n    stage \"a\" {\n      rate = \"3 req/s\"\n      duration = \"60s\"\n    }", true},
		{"users", "users = 8\n    duration = \"60s\"\n    think_time = \"1s\"", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			with := func(cancel string) map[string][]metric.Sample {
				src := strings.NewReplacer("LOAD", "\n    "+tt.load+"\n  ", "CANCEL", cancel).Replace(leavingPlan)
				if tt.name == "stages" {
					src = strings.Replace(src, "  sla { ", "  sla {\n    at = [\"a\"]\n    ", 1)
					src = strings.Replace(src, "100%\" }", "100%\"\n  }", 1)
				}
				out := t.TempDir()
				tokgate(t, "run", "--simulate", "--out", out, writePlan(t, src)).check(t, verdict.ExitPass)
				by := map[string][]metric.Sample{}
				for _, s := range samplesOf(t, out) {
					if s.Level != metric.SaturationName && !strings.HasPrefix(s.Level, metric.SaturationName+" ") {
						by[string(s.Phase)] = append(by[string(s.Phase)], s)
					}
				}
				return by
			}
			alone, left := with(""), with("cancel {\n    share = \"20%\"\n    after = \"300ms\"\n  }")
			n, stay := len(left["left"]), len(left["measured"])
			must.Hold(t, abs(4*n-stay) <= 4 && n != 0, "%d clients left and %d stayed, want one in five", n, stay)
			canceled := 0
			for _, s := range left["left"] {
				if s.Canceled() {
					canceled++
					d := s.End - s.Sent
					must.Hold(t, d <= 300*time.Millisecond, "%v left after %v", &s, d)
				} else if !s.Completed() {
					t.Errorf("%v failed: %v", &s, s.Failure)
				}
			}
			must.Hold(t, canceled >= len(left["left"])/2, "only %d of %d left before the end", canceled, len(left["left"]))
			asked := func(list []metric.Sample) map[string]string {
				out := map[string]string{}
				for _, s := range list {
					said := fmt.Sprintf("%d %d", s.InputAsked, s.OutputAsked)
					if tt.rate {
						began := list[slices.IndexFunc(list, func(x metric.Sample) bool { return x.Round == s.Round })].Scheduled
						said += fmt.Sprint(" ", s.Scheduled-began) // each round has a warm-up, which ends when it ends
					}
					out[fmt.Sprintf("%d/%d", s.Round, s.Order)] = said
				}
				return out
			}
			byOrder := func(a, b metric.Sample) int { return int(a.Scheduled - b.Scheduled) }
			slices.SortStableFunc(alone["measured"], byOrder)
			slices.SortStableFunc(left["measured"], byOrder)
			if tt.name == "users" { // what they send, and how much, depends on when they come back
				return
			}
			want, got := asked(alone["measured"]), asked(left["measured"])
			must.Hold(t, len(got) >= 20 && cmp.Equal(want, got), "those that stay (-without others +with them):\n%s", cmp.Diff(want, got))
		})
	}
}

func abs(n int) int { return max(n, -n) }
