package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
)

// saltedPlan has what a salt draws: the noise of steps and of starts, a fault with a share, and the
// arrivals of a rate.
const saltedPlan = `server "s" {
  simulator {
    profile = "noisy.json"
    seed    = 3
  }
}

workload "loop" {
  input_tokens  = 64
  output_tokens = 8
  load {
    concurrency = 4
    requests    = 100
  }
  sla { success = "rate > 50%" }
}

workload "rate" {
  input_tokens  = 64
  output_tokens = 8
  load {
    rate     = "20 req/s"
    requests = 100
  }
  sla { ttft = "p50 < 1m" }
}
`

const noisyProfile = `{"base": "default", "noise": {"step_cv": 0.02, "start_cv": 0.05},
	"faults": [{"fault": "http-503", "share": 0.1}]}`

// Each salt of a simulation draws other noise, faults and arrivals. Salt 0 is the run without one,
// and any salt repeats itself.
func TestSaltIsAnotherRun(t *testing.T) {
	path := writePlan(t, saltedPlan)
	must.Do(t, os.WriteFile(filepath.Join(filepath.Dir(path), "noisy.json"), []byte(noisyProfile), 0o644))
	type figures struct {
		Took    time.Duration   // of the first request in the closed loop that completed
		Failed  []int           // measured requests of the closed loop that failed, by order of start
		Arrived []time.Duration // of the measured requests at the rate, from the first on
	}
	measured := func(salt ...string) (f figures) {
		dir := t.TempDir()
		tokgate(t, append([]string{"run", "--simulate", "--out", dir, path}, salt...)...)
		run, problems, err := record.Read(dir)
		if err != nil || len(problems) > 0 {
			t.Fatal(problems, err)
		}
		for _, l := range run.Levels {
			for _, r := range l.Rounds {
				for _, s := range r.MeasuredSamples() {
					switch {
					case l.Kind == metric.OpenLoop:
						f.Arrived = append(f.Arrived, s.Scheduled)
					case !s.Completed():
						f.Failed = append(f.Failed, s.Order)
					case l.Name == "4" && f.Took == 0:
						f.Took = s.End - s.Sent
					}
				}
			}
		}
		must.Need(t, len(f.Arrived) == 100 && len(f.Failed) != 0, "%d requests at the rate, %d failed in the closed loop", len(f.Arrived), len(f.Failed))
		first := f.Arrived[0]
		for i := range f.Arrived {
			f.Arrived[i] -= first
		}
		return f
	}
	zero := measured()
	must.Same(t, "salt 0 is not the run without a salt", zero, measured("--salt", "0"))
	one, two := measured("--salt", "1"), measured("--salt", "2")
	must.Same(t, "salt 1 does not repeat itself", one, measured("--salt", "1"))
	for _, pair := range [][2]figures{{zero, one}, {zero, two}, {one, two}} {
		a, b := pair[0], pair[1]
		if a.Took == b.Took || cmp.Equal(a.Failed, b.Failed) || cmp.Equal(a.Arrived, b.Arrived) {
			t.Errorf("two salts drew the same noise, faults or arrivals:\n%v %v %v\n%v %v %v", a.Took, a.Failed, a.Arrived[:5], b.Took, b.Failed, b.Arrived[:5])
		}
	}
	tokgate(t, "run", "--salt", "1", "--out", t.TempDir(), path).check(t, verdict.ExitPlan, "--salt is for simulated runs only")
}
