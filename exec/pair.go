package exec

import (
	"fmt"
	"slices"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// place is a workload and a level at which servers are compared in turns.
type place struct {
	workload *plan.Workload
	level    string
}

func placeOf(c Case) place { return place{c.Workload, c.Level.Name} }

// has reports whether the side (one of the compared servers) has a case at one of the places.
func (x *side) has(places []place) bool {
	return slices.ContainsFunc(x.cases, func(c Case) bool { return slices.Contains(places, placeOf(c)) })
}

// places lists the places of all cases of the given sides, each place once.
func (t *alternation) places(sides []*side) []place {
	var out []place
	for _, x := range sides {
		for _, c := range x.cases {
			if p := placeOf(c); !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// settle ends a round of servers that took turns. At each place it decides about the turns (legs)
// of all servers together. If the generator's machine disturbed one of them, and the function voids
// allows it, all of them are measured again with another seed. The decision uses only the
// generator's own records, before anything is compared. settle returns the places to measure again;
// nil if the round is not complete.
func (t *alternation) settle(sides []*side, whole bool, voids func(d metric.Disturbance, voided int) bool) (again []place) {
	for _, p := range t.places(sides) {
		var legs []*levelRun
		for _, x := range sides {
			for i, s := range x.runs {
				if placeOf(x.cases[i]) == p && s.held != nil {
					legs = append(legs, s)
				}
			}
		}
		var found metric.Disturbance
		var on string // name of the server that was disturbed
		for _, s := range legs {
			// If one server had a different load and another was late, the different load is the
			// reason.
			if d := s.level.Disturbed(s.held); found == (metric.Disturbance{}) || found.Load == "" && d.Load != "" {
				found, on = d, s.level.Server
			}
		}
		void := whole && t.check() && len(legs) > 0 && voids(found, len(legs[0].level.Voided))
		for _, s := range legs {
			if void {
				s.held.Void = s.level.Disturbed(s.held).String()
				if s.held.Void == "" {
					s.held.Void = fmt.Sprintf("its pair on %s: %s", on, found)
				}
			}
			s.keep(s.held)
			s.held = nil
		}
		if void {
			again = append(again, p)
		}
	}
	return again
}
