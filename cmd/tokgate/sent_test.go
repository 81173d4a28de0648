package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// A closed loop sends at most three waves more than it measures: one to warm up, and what is in flight
// when the level ends. All probes of a capacity search together send at most 1.4 times what they measure, or 1.5 times
// where each ends at its first look, after five waves.
// So of every shipped plan.
func TestLongClosedLoopsSendLittleMore(t *testing.T) {
	levels, searches := 0, 0
	for _, path := range append(shipped(t), documented(t)...) {
		a := &app{color: "auto", environ: append(slices.Clone(shippedEnviron), "TOKGATE_STATE_DIR="+t.TempDir()), Streams: Streams{Out: t.Output(), Err: t.Output()}}
		p, diags := a.load(path, inputs{}, false)
		if diags.HasErrors() || len(plan.Groups(p)) > 0 || !slices.ContainsFunc(p.Workloads, closedLoop) {
			continue
		}
		for _, s := range p.Servers {
			if s.Simulator == nil {
				s.Simulator = &plan.Simulator{Profile: "default", Seed: 1}
			}
		}
		run := must.Get(simulatedRun(t.Context(), p, 0, nil))(t)
		searched := map[[2]string]searchSent{}
		for _, l := range run.Levels {
			sent, measured := 0, 0
			for _, r := range slices.Concat(l.Rounds, l.Voided) {
				sent += len(r.Samples)
			}
			for _, r := range l.Rounds {
				if r.Complete {
					measured += r.Due
				}
			}
			leave := slices.ContainsFunc(p.Workloads, func(w *plan.Workload) bool { return w.Address() == l.Workload && w.Cancel != nil })
			if l.Kind != metric.ClosedLoop || l.Of != "" || measured == 0 || leave {
				continue // what saturates a rate measures nothing, and clients that leave come on top
			}
			if key := [2]string{l.Server, l.Workload}; l.Probe != nil {
				x := searched[key]
				searched[key] = searchSent{x.sent + sent, x.measured + measured, x.longer || measured > 5*max(l.N, 10)}
			}
			levels++
			most := measured + 3*l.N // (w + 3) / w of w·N requests
			for _, w := range p.Workloads {
				if w.Address() == l.Workload && len(w.Loads) > 0 {
					most += max(w.Loads[0].Warmup-l.N, 0) // the plan asks for more warm-up than a wave
				}
			}
			if sent > most {
				t.Errorf("%s: %s at %s sends %d requests for %d that it measures, %.1f waves", path, l.Workload, l.Name, sent, measured, float64(measured)/float64(l.N))
			}
		}
		for key, x := range searched {
			searches++
			most := 1.5
			if x.longer {
				most = 1.4
			}
			if t.Logf("%s: the search %v sends %d requests for %d that it measures", path, key, x.sent, x.measured); float64(x.sent) > most*float64(x.measured) {
				t.Errorf("%s: that is more than %v times as many", path, most)
			}
		}
	}
	if levels < 30 || searches < 3 {
		t.Errorf("only %d levels and %d searches were counted", levels, searches)
	}
	t.Log(levels, "levels,", searches, "searches")
}

// searchSent is what the probes of a search send and measure, and whether one goes on after its first look.
type searchSent struct {
	sent, measured int
	longer         bool
}

func closedLoop(w *plan.Workload) bool {
	return w.Capacity != nil && w.Capacity.Over == metric.ClosedLoop ||
		slices.ContainsFunc(w.Loads, func(l *plan.Load) bool { return l.Kind == metric.ClosedLoop })
}

// documented writes the plans of the documentation that have a file name into a folder.
func documented(t *testing.T) (paths []string) {
	t.Helper()
	for _, page := range pages(t) {
		for _, m := range fencedPlan.FindAllStringSubmatch(read(t, page), -1) {
			if filepath.Ext(m[1]) == ".hcl" {
				paths = append(paths, writePlan(t, m[2]))
			}
		}
	}
	return paths
}
