package exec_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/search"
)

// The server answers at most 20 req/s. The judge computes the TTFT as ρ/(1 − ρ) seconds, where ρ is
// the utilization. So the limit of 4 s is reached at ρ = 0.8, which is 16 req/s.
func TestRateCapacity(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		load := rateLoad(5, 20, 4)
		p := planOf(3, load)
		p.Workloads[0].Capacity = &plan.Capacity{
			Over: metric.OpenLoop, From: 1, UpTo: 200_000, Relative: 0.2, Requests: 50, MaxRequests: 4000,
			Load: &plan.Load{Kind: metric.OpenLoop, Seeds: []int64{1}, Timeout: 10 * time.Minute, Open: load.Open},
		}
		p.Workloads[0].SLAs = []*plan.SLA{{AtCapacity: true, Severity: plan.SeverityError}}
		b := newBench(t, c, p, func(_ int, r *client.Request) reply {
			if strings.Contains(r.Prompt.Text, metric.SaturationName) {
				// A request takes 1 s, so 20 in flight give 20 req/s.
				return reply{ttft: 400 * ms, itl: 300 * ms}
			}
			return reply{ttft: 20 * ms, itl: ms}
		})
		largest := 0.0
		b.Judge = func(_ *plan.Workload, l *metric.Level, look exec.Look) exec.Judgement {
			largest = 0
			for _, x := range l.Saturation {
				largest += x / float64(len(l.Saturation))
			}
			log := math.Log(l.Rate / (largest - l.Rate) / 4)
			j := exec.Judgement{Outcome: metric.Pass, Margins: []search.Margin{{Threshold: "ttft p95", Log: log, Low: log - 1, High: log + 1}}}
			if log > 0 {
				j.Outcome = metric.Fail
			}
			return j
		}
		run := must.Get(exec.Run(t.Context(), b.Config))(t)
		var names []string
		for _, l := range run.Levels {
			names = append(names, l.Name)
		}
		found := run.Capacities[0]
		near := func(n int, want float64) bool { return math.Abs(found.Load(n)/largest-want) < 0.01 }
		if found.Kind != metric.CapacityInterpolated || !near(found.Pass, 0.82*0.8) || math.Abs(found.Crossing*found.Step/largest-0.8) > 0.01 || found.Fail != 0 {
			t.Errorf("%+v of %v", found, largest)
		}
		var purposes []string
		for _, p := range found.Probes {
			purposes = append(purposes, p.Purpose)
		}
		must.Same(t, "", []string{"known", "estimate", "estimate", "certify"}, purposes)
		n := slices.Index(names, metric.SaturationName)
		must.Hold(t, len(names) == 5 && n >= 0 && !slices.Contains(names[n+1:], metric.SaturationName), "levels %q, want one saturation of 5", names)
		certified := run.Levels[len(run.Levels)-1]
		if certified.Rate != found.Load(found.Pass) || len(certified.Rounds) != 10 || certified.Saturation == nil {
			t.Errorf("certified at %v in %d rounds, saturation %v", certified.Rate, len(certified.Rounds), certified.Saturation)
		}
		must.Hold(t, strings.HasPrefix(found.Line, "certified "+found.Amount(found.Pass)+" req/s; estimate "), "line %q", found.Line)
	})
}
