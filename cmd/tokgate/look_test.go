package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/report"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record"
)

func TestLastLimits(t *testing.T) {
	s := &plan.Server{Name: "s"}
	w := &plan.Workload{Name: "w", Capacity: &plan.Capacity{Over: metric.ClosedLoop}}
	for _, tt := range []struct {
		file string
		want int
	}{
		{"", 0},
		{"no JSON", 0},
		{`{"server":"s","workload":"w","over":"closed","kind":"exact","pass":39,"fail":40}`, 39},
		{`{"server":"s","workload":"w","over":"closed","kind":"server_cap","pass":64}`, 64},
		{`{"server":"s","workload":"w","over":"closed","kind":"at_least","pass":8}`, 0}, // the capacity may be above 8
		{`{"server":"s","workload":"w","over":"burst","kind":"exact","pass":39,"fail":40}`, 0},
		{`{"server":"other","workload":"w","over":"closed","kind":"exact","pass":39,"fail":40}`, 0},
	} {
		dir := t.TempDir()
		src := tt.file
		if strings.HasPrefix(src, "{") {
			src = sealed(t, fmt.Sprintf(`{"schema":"tokgate.results/2","run":{"capacities":[%s]}}`, src))
		}
		if src != "" {
			must.Do(t, os.WriteFile(filepath.Join(dir, "results.json"), []byte(src), 0o644))
		}
		must.Same(t, tt.file, tt.want, lastLimits(dir)(s, w))
	}
}

// sealed returns a results document with its checksum, as the command run writes it.
func sealed(t *testing.T, src string) string {
	t.Helper()
	var d report.Document
	must.Do(t, json.Unmarshal([]byte(src), &d))
	var b strings.Builder
	must.Do(t, d.Write(&b))
	return b.String()
}

// A capacity search is recorded, and judging the recording gives the same verdict.
func TestCapacity(t *testing.T) { inBubble(testCapacityOverASocket)(t) }

func testCapacityOverASocket(t *testing.T) {
	server := simServer(t)
	dir := t.TempDir()
	path := writePlan(t, fmt.Sprintf(`
gate {
  decide = "estimate" # what is tried here is the way, not the statistics
}
server "s" {
  endpoint { url = %q }
}
workload "w" {
  input_tokens  = 32
  output_tokens = { mean = 24, jitter = "25%%" }
  sla {
    at      = "capacity"
    success = "rate >= 90%%"
  }
  capacity {
    from     = 2
    up_to    = 4
    require  = 3
    requests = 20
  }
}
`, server.URL()))
	tokgate(t, "run", "--out", dir, path).check(t, 0, "4+ requests in flight", "the plan requires 3")
	run, problems, err := record.Read(dir)
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	must.Need(t, len(run.Capacities) == 1 && run.Capacities[0].Pass == 4 && len(run.Capacities[0].Probes) >= 2, "capacities %+v", run.Capacities)
	for _, l := range run.Levels {
		must.Hold(t, l.Probe != nil && len(l.Rounds) != 0 && len(l.Looks) != 0, "level %+v", l)
	}
	// The judge command sees only the recording, and must give the same verdict.
	tokgate(t, "judge", dir, path).check(t, 0, "4+ requests in flight", "the plan requires 3")
	tokgate(t, "run", "--only", "w/capacity", "--out", t.TempDir(), path).check(t, 0, "4+ requests in flight")
}
