package exec

import (
	"slices"

	"github.com/tokgate/tokgate/plan"
)

// Continuable explains why a run of the plan cannot go on in a later session; "" if it can. Only the
// rounds of comparisons can be continued, so nothing else may be measured.
func Continuable(p *plan.Plan) string {
	groups := plan.Groups(p)
	switch {
	case len(groups) != 1:
		return "only the servers of one comparison, or of several that share a control, can be continued"
	case groups[0].Compares[0].Restart != plan.RestartLeg:
		return `a comparison with restart = "never" is judged once`
	case len(Searches(p)) > 0:
		return "the plan searches for a capacity"
	}
	for _, c := range groups[0].Compares {
		if c.Answers != nil {
			return "the plan compares answers"
		}
	}
	for _, c := range Cases(p) {
		if !slices.Contains(groups[0].Servers, c.Server) || !slices.Contains(groups[0].Workloads(p), c.Workload) {
			return "the plan also measures " + c.Workload.Address() + " on " + c.Server.Address() + ", which is not compared"
		}
	}
	return ""
}
