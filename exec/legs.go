package exec

import (
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// fewestRounds is the smallest number of rounds of a comparison that is judged once, with a short
// budget.
const fewestRounds = 5

// Legs returns how many legs a case has at most in a run of the plan. A leg is a server's turn: one, or in
// a comparison one for each round. beside reports whether the legs of a round run at the same time.
func Legs(p *plan.Plan, c Case) (n int, beside bool) {
	for _, g := range plan.Groups(p) {
		if slices.Contains(g.Servers, c.Server) && slices.Contains(g.Workloads(p), c.Workload) {
			return slices.Max(g.Compares[0].Looks()), g.Compares[0].SideBySide
		}
	}
	return 1, false
}

// LeastLoad returns the time in which requests of a case must arrive so that it can be decided: less of it
// is never left out for a short budget. It is 0 if the plan sets no time.
func LeastLoad(p *plan.Plan, c Case) time.Duration {
	l := c.Level
	whole := max(l.Duration, l.Lasts())
	if l.Stage != nil {
		whole = 0 // a load of stages has its own time
	}
	if legs, beside := Legs(p, c); legs > 1 {
		for _, g := range plan.Groups(p) {
			if slices.Contains(g.Servers, c.Server) {
				legs = min(g.Compares[0].Looks()[0], fewestRounds)
			}
		}
		whole = whole / time.Duration(l.Rounds) * time.Duration(legs)
		if beside {
			whole /= 2
		}
		return whole
	}
	if !c.Load.Kind.Windowed() && !l.Batches && l.Rounds > metric.LeastRounds {
		whole = whole / time.Duration(l.Rounds) * metric.LeastRounds
	}
	return whole
}

// Saturates reports whether the server is saturated before a level, and perhaps after it: before rates
// that are constant, unless the plan says saturate = false. Compared servers, conversations and replays are
// not saturated.
func Saturates(p *plan.Plan, c Case) bool {
	legs, _ := Legs(p, c)
	return c.Load.Kind == metric.OpenLoop && !c.Load.Open.Unsaturated && legs == 1 &&
		c.Level.Stage == nil && c.Level.Speedup == 0 && !c.Workload.Prompt.Turns.Several()
}
