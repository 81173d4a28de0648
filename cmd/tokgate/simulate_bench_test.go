package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/exec/server"
	"github.com/tokgate/tokgate/record"
)

// BenchmarkSimulatedHour simulates shipped plans. It reports the processor time of the whole
// command for an hour of virtual time, including the recording, the verdict and the reports.
func BenchmarkSimulatedHour(b *testing.B) {
	plans, err := filepath.Glob(filepath.Join(plansDir, "reference", "*.hcl"))
	if err != nil || len(plans) == 0 {
		b.Fatal("no plans:", err)
	}
	for _, plan := range append(plans, filepath.Join(plansDir, "pull-request.hcl")) {
		b.Run(filepath.Base(plan), func(b *testing.B) {
			dir := b.TempDir()
			before, known := server.CPUTime()
			if !known {
				b.Skip("the system does not report processor time")
			}
			for b.Loop() {
				var out, errs bytes.Buffer
				code := Main(context.Background(), []string{"run", "--simulate", "--quiet", "--out", dir, plan}, os.Environ(), Streams{Out: &out, Err: &errs})
				if code != assert.ExitPass && code != assert.ExitFail {
					b.Fatalf("exit %d: %s\n%.3000s", code, &errs, &out)
				}
			}
			after, _ := server.CPUTime()
			run, _, err := record.Read(dir)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric((after-before).Seconds()/float64(b.N)/run.End.Hours(), "cpu-s/hour")
			b.ReportMetric(run.End.Hours(), "hours")
			b.ReportMetric(0, "ns/op")
		})
	}
}
