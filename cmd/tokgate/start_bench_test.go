package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
)

// BenchmarkStart runs a small gate on the built-in server in a new process. It reports how long the
// first measured request takes to begin: after the start of the process, and after the server is
// ready.
func BenchmarkStart(b *testing.B) {
	plan := writePlan(b, `gate { decide = "estimate" }
server "s" {
  simulator {}
}
workload "w" {
  input_tokens  = 256
  output_tokens = 4
  load {
    concurrency = 1
    requests    = 5
    warmup      = 0
  }
  sla { ttft = "p95 < 60s" }
}
`)
	for _, row := range []string{"first", "met"} {
		b.Run(row, func(b *testing.B) {
			state := b.TempDir()
			var all, ready []float64
			if row == "met" {
				started(b, plan, state)
			}
			for n := 0; b.Loop(); n++ {
				if row == "first" {
					state = filepath.Join(b.TempDir(), fmt.Sprint(n))
				}
				run, begin := started(b, plan, state)
				sent := run.Levels[0].Rounds[0].Samples[0].Sent
				for _, s := range run.Levels[0].Rounds[0].Samples {
					if s.Phase == metric.Measured {
						sent = min(sent, s.Sent)
					}
				}
				all = append(all, float64(run.Started.Add(sent).Sub(begin).Microseconds())/1e3)
				ready = append(ready, float64((sent-run.Servers[0].Starts[0].Ready).Microseconds())/1e3)
			}
			slices.Sort(all)
			slices.Sort(ready)
			b.ReportMetric(all[len(all)/2], "start-ms")
			b.ReportMetric(all[len(all)-1], "slowest-ms")
			b.ReportMetric(ready[len(ready)/2], "ready-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// started runs a plan with a state folder in a new process. It returns the recording, and the time
// at which the process began.
func started(b *testing.B, plan, state string) (*metric.Run, time.Time) {
	out := filepath.Join(b.TempDir(), "out")
	cmd := exec.Command(os.Args[0], "run", "--out", out, plan)
	cmd.Env = append(os.Environ(), asProgram+"=real", "TOKGATE_STATE_DIR="+state)
	begin := time.Now()
	said, failed := cmd.CombinedOutput() // even if the run fails as invalid, its start was measured
	run, _, err := record.Read(out)
	must.Need(b, err == nil && len(run.Levels) != 0 && len(run.Levels[0].Rounds) != 0, "%v, %v: %s", err, failed, said)
	return run, begin
}
