package assert

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

var (
	windowsFurther     = flag.Int("windows-further", 2, "simulated gates of each server, for other windows of batches")
	windowFurtherTable = flag.String("windows-further-table", "", "write the characteristics of other gates of windows to this file, as Markdown")
)

// TestLongWindowsFurther counts how often gates on other windows than twenty waves with one threshold
// are wrong: of ten waves, extended to eighty, with two thresholds, and on a share of requests.
func TestLongWindowsFurther(t *testing.T) {
	var out strings.Builder
	for _, size := range strings.Split(*windowSizes, ",") {
		n := 0
		must.Get(fmt.Sscan(size, &n))(t)
		furtherAt(t, &out, n)
	}
	failuresIn(t, &out)
	t.Log("\n" + out.String())
	if *windowFurtherTable != "" {
		must.Do(t, os.WriteFile(*windowFurtherTable, []byte(out.String()), 0o644))
	}
}

// further is a kind of gate on a window whose thresholds are at their limits.
type further struct {
	name          string
	batches, most int // planned, and as far as the window may be extended
	p95, mean     float64
}

func furtherAt(t *testing.T, out *strings.Builder, n int) {
	kinds := []further{
		{"p95 in ten waves", 10, 10, 1, 0}, {"mean in ten waves", 10, 10, 0, 1},
		{"p95", 20, 20, 1, 0}, {"mean", 20, 20, 0, 1},
		{"p95 and mean", 20, 20, 1, 1}, {"p95, mean at twice", 20, 20, 1, 2}, {"mean, p95 at twice", 20, 20, 2, 1},
		{"p95, extended", 20, 80, 1, 0}, {"mean, extended", 20, 80, 0, 1},
	}
	servers := slices.DeleteFunc(engines(n), func(e engine) bool { return !strings.Contains(e.name, *windowOnly) })
	got := make([][]tally, len(servers))
	var jobs []func()
	for i, e := range servers {
		jobs = append(jobs, func() {
			x := e.truths(n, max(200_000, 500**windowsFurther))
			got[i] = make([]tally, len(kinds))
			p95, mean := claims()[0], claims()[4]
			for g := range *windowsFurther {
				levels := map[int]*metric.Level{}
				for k, kind := range kinds {
					if levels[kind.most] == nil {
						levels[kind.most], _ = e.windowOf(n, kind.most, uint64(g))
					}
					var ths []*plan.Threshold
					if p95.at = kind.p95; kind.p95 > 0 {
						ths = append(ths, p95.threshold(x))
					}
					if mean.at = kind.mean; kind.mean > 0 {
						ths = append(ths, mean.threshold(x))
					}
					outcome, _ := gateOfPlanned(levels[kind.most], kind.batches, ths...)
					got[i][k].add(outcome, 0)
				}
			}
		})
	}
	twoAtATime(jobs)
	fmt.Fprintf(out, "**Gates at their limits, %d in flight, %d gates a row: %% pass / fail**\n\n| server |", n, *windowsFurther)
	for _, kind := range kinds {
		fmt.Fprintf(out, " %s |", kind.name)
	}
	out.WriteString("\n|---|" + strings.Repeat("---|", len(kinds)) + "\n")
	for i, e := range servers {
		fmt.Fprintf(out, "| %s |", e.name)
		for _, x := range got[i] {
			fmt.Fprintf(out, " %.1f / %.1f |", 100*float64(x.pass)/float64(*windowsFurther), 100*float64(x.fail)/float64(*windowsFurther))
		}
		out.WriteString("\n")
		if worst, both := max(got[i][2].pass, got[i][3].pass), got[i][4].pass; float64(both-worst) > 0.015*float64(*windowsFurther)+2 {
			t.Errorf("%d in flight, %s: both thresholds at their limits pass in %d of %d, the worst alone in %d", n, e.name, both, *windowsFurther, worst)
		}
	}
	out.WriteString("\n")
}

// failuresIn counts how often "success > 99%" passes if 1 % of the requests fail, alone or in bursts.
func failuresIn(t *testing.T, out *strings.Builder) {
	const n = 8
	sizes := []int{300, 600, 1000}
	success := &plan.Threshold{Metric: metric.MustLookup("success"), Stat: metric.Stat{Kind: metric.Rate}, Text: "rate > 99%", Op: plan.Greater, Limit: 0.99}
	fmt.Fprintf(out, "**success > 99 %% where 1 %% fail, %d in flight, %d gates a row: %% pass / fail**\n\n| failures come |", n, *windowsFurther)
	for _, waves := range sizes {
		fmt.Fprintf(out, " %d waves |", waves)
	}
	out.WriteString("\n|---|---|---|---|\n")
	for _, of := range []struct {
		name string
		size int
	}{{"alone", 1}, {"in bursts of half a wave", leastBatchSize / 2}, {"in bursts of a wave", leastBatchSize}} {
		got := make([]tally, len(sizes))
		var jobs []func()
		for i, waves := range sizes {
			jobs = append(jobs, func() {
				for g := range *windowsFurther {
					r := rand.New(rand.NewPCG(uint64(g), uint64(of.size)))
					l := failsIn(n, waves*leastBatchSize, of.size, r)
					outcome, _ := gateOf(l, success)
					got[i].add(outcome, 0)
				}
			})
		}
		twoAtATime(jobs)
		fmt.Fprintf(out, "| %s |", of.name)
		for i, x := range got {
			fmt.Fprintf(out, " %.1f / %.1f |", 100*float64(x.pass)/float64(*windowsFurther), 100*float64(x.fail)/float64(*windowsFurther))
			if low, _, ok := stat.ClopperPearson(float64(x.pass), float64(*windowsFurther), 0.01); ok && low > 0.05 {
				t.Errorf("failures %s, %d waves: %d of %d pass", of.name, sizes[i], x.pass, *windowsFurther)
			}
		}
		out.WriteString("\n")
	}
	out.WriteString("\n")
}

// failsIn returns a window of 20 batches in which 1 % of the requests fail, in bursts of the given size.
func failsIn(n, requests, size int, r *rand.Rand) *metric.Level {
	l, _ := engine{alone: true}.windowFrom(n, 20, requests, r.Uint64())
	left := 0
	for _, batch := range l.Rounds {
		for _, x := range batch.MeasuredSamples() {
			if left == 0 && r.Float64() < 1/float64(1+99*size) {
				left = size
			}
			if left > 0 {
				left--
				x.Status, x.Failure = 500, &metric.Failure{Kind: metric.FailStatus, Message: "Internal Server Error"}
			}
		}
	}
	return l
}
