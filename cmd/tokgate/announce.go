package main

import (
	"fmt"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// saturations announces the load that measures the largest rate of a server, and says what its absence
// means.
func (x *expansion) saturations() {
	saturates, forbidden := false, false
	for _, c := range exec.Cases(x.p) {
		saturates = saturates || exec.Saturates(x.p, c)
		forbidden = forbidden || c.Load.Open != nil && c.Load.Open.Unsaturated
	}
	for _, c := range exec.Searches(x.p) {
		if s := c.Workload.Capacity; s.Over == metric.OpenLoop {
			saturates, forbidden = saturates || s.Largest == 0, forbidden || s.Largest > 0
		}
	}
	if saturates {
		x.para("  ", fmt.Sprintf("Before the first rate of a workload on a server, %d requests are kept in flight for %s and its warm-up (more if the server answers all of them at once). This saturation measures the largest rate that the server can sustain. After a level whose backlog grew, another of 20 to 60 seconds shows whether the server still sustains the rate.",
			plan.SaturationSlots, plan.PlainDuration(plan.Saturation)))
	}
	if forbidden {
		x.para("  ", "With saturate = false or largest_rate the server is not saturated. Then only the backlog of a level shows that the server sustains its rate, and percentiles need several times as many requests.")
	}
}

// residues announces the requests that show what a server keeps of a level.
func (x *expansion) residues(cases []exec.Case) {
	asked, bursts := 0, 0
	for _, c := range cases {
		if of := x.p.Residual(c.Server, c.Workload, c.Level); of != nil && of.Burst {
			bursts++
		} else if of != nil {
			asked++
		}
	}
	if asked > 0 {
		x.para("  ", fmt.Sprintf("Before %s, up to %d whole requests and some of one token are sent, and some of one token after it, to see what the server keeps.", verdict.Count(asked, "levels"), exec.MostFirst))
	}
	if bursts > 0 {
		x.para("  ", fmt.Sprintf("Before and after %s, %d requests are sent at once, to see how many the server still takes.", verdict.Count(bursts, "levels"), plan.ResidueBurst))
	}
}
