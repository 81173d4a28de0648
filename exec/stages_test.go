package exec_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// The load makes two passes of two stages: 2 req/s for 10 s, and then 4 req/s for 5 s. A stage is a
// level with one round for each pass. Its window begins when the window of the stage before ends.
func TestStages(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		stage := func(name string, rate float64, requests int) plan.Level {
			return plan.Level{Name: name, Rate: rate, Requests: requests, Rounds: 2, Stage: &metric.Stage{From: rate, To: rate}}
		}
		load := rateLoad(2, 40, 2)
		load.Seeds = []int64{1, 2}
		load.Levels = []plan.Level{stage("calm", 2, 40), stage("spike", 4, 40)}
		b := newBench(t, c, planOf(3, load), steady(400*ms, 400*ms))
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		must.Need(t, len(run.Levels) == 2, "%d levels: a stage has no saturation", len(run.Levels))
		calm, spike := run.Levels[0], run.Levels[1]
		for i, l := range run.Levels {
			length := []time.Duration{10 * time.Second, 5 * time.Second}[i]
			for k, r := range l.Rounds {
				if !r.Complete || r.Index != k || r.Due != 20 || len(r.MeasuredSamples()) != 20 || r.WindowEnd-r.WindowStart != length || r.Seed != int64(k+1) {
					t.Errorf("%s: round %d of %v: %+v with %d requests", l.Name, k, r.WindowEnd-r.WindowStart, r.Index, len(r.MeasuredSamples()))
				}
				if slices.ContainsFunc(r.Samples, func(s *metric.Sample) bool { return s.Level != l.Name || s.Round != k }) {
					t.Errorf("%s: round %d holds requests of another", l.Name, k)
				}
			}
		}
		for k := range 2 {
			if spike.Rounds[k].WindowStart != calm.Rounds[k].WindowEnd {
				t.Errorf("pass %d: the spike begins %v after the calm", k, spike.Rounds[k].WindowStart-calm.Rounds[k].WindowEnd)
			}
		}
		// phases holds, for each stage, the phases of the requests in the first pass that are not
		// measured.
		var phases [2][]metric.Phase
		for i, l := range run.Levels {
			for _, s := range l.Rounds[0].Samples {
				if s.Phase != metric.Measured && !slices.Contains(phases[i], s.Phase) {
					phases[i] = append(phases[i], s.Phase)
				}
			}
		}
		must.Same(t, "", [2][]metric.Phase{{metric.Warmup}, {metric.Filler}}, phases)
	})
}
