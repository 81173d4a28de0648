package compare

import (
	"fmt"
	"math"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// leastApart is the smallest distance between two groups of starts that counts, as a logarithm.
const leastApart = 0.05

// slowStarts says that some starts of a recorded comparison were slower than all others by far, as if
// the servers had a slow state; "" if none were. Each start counts beside the median of its side, in
// the time of whole requests or the throughput.
func (c *Comparison) slowStarts() string {
	if !c.Paired || c.Restart != plan.RestartLeg {
		return ""
	}
	for i := range c.Changes {
		row := &c.Changes[i]
		if row.Metric.Name != "e2e" && row.Metric.Name != "throughput" || row.Points || row.Stat.Kind == metric.Percentile {
			continue
		}
		var control, candidate []metric.Value
		for _, p := range row.Pairs {
			control, candidate = append(control, p.Control), append(candidate, p.Candidate)
		}
		var all []float64
		for _, side := range [][]metric.Value{control, candidate} {
			logs := row.logs(side, 1)
			mid := median(logs)
			for _, x := range logs {
				all = append(all, x-mid)
			}
		}
		if high, apart := stat.Split(all, leastApart); high > 0 {
			slower := metric.FormatDigits(metric.Ratio, math.Expm1(apart), 2)
			return fmt.Sprintf("%d of %s were slower by %s (%s of %s at %s)",
				high, verdict.Count(len(all), "recorded starts"), slower, row.Name(), row.Workload, row.Level)
		}
	}
	return ""
}

// Heed makes a comparison that has not run yet look at five starts first, if the recorded comparisons
// of the same name had a group of slow starts: three starts mostly miss a state that one of seven falls
// into.
func Heed(p *plan.Plan, recorded []*Comparison) {
	for _, c := range p.Compares {
		least := LeastStarts * c.Unit()
		if c.Restart != plan.RestartLeg || c.LeastRounds == 0 || c.LeastRounds >= min(least, c.Rounds) {
			continue
		}
		for _, r := range recorded {
			if why := r.slowStarts(); r.Name == c.Name && why != "" {
				c.LeastRounds, c.Heeded = min(least, c.Rounds), "the first look comes after "+verdict.Count(min(least, c.Rounds), "rounds")+": in the last comparison "+why
			}
		}
	}
}
