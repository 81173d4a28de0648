package main

import (
	"os"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/report"
)

func looks(p *plan.Plan) exec.Judge {
	return func(w *plan.Workload, l *metric.Level, at exec.Look) exec.Judgement {
		return assert.JudgeLook(p, w, l, at)
	}
}

func comparisonLooks(p *plan.Plan) exec.JudgeComparison {
	return func(c *plan.Compare, run *metric.Run) (metric.Outcome, bool) {
		return assert.JudgeComparison(p, c, run)
	}
}

// lastLimits reads the capacities of the last run from its results folder. A search begins near the
// last capacity, and needs fewer probes if the capacity is still about the same. The returned
// function returns 0 if the capacity is not known, or if the last run was simulated.
func lastLimits(dir string) func(*plan.Server, *plan.Workload) int {
	type key struct{ server, workload, over string }
	limits := map[key]int{}
	if f, err := record.OpenIn(dir, "results.json", os.O_RDONLY); err == nil {
		defer f.Close()
		if doc, err := report.ReadDocument(f); err == nil && !doc.Run.Simulated {
			for _, c := range doc.Run.Capacities {
				if c.Fail > 0 || c.Kind == metric.CapacityServerCap {
					limits[key{c.Server, c.Workload, string(c.Over)}] = c.Pass
				}
			}
		}
	}
	return func(s *plan.Server, w *plan.Workload) int {
		return limits[key{s.Address(), w.Address(), string(w.Capacity.Over)}]
	}
}
