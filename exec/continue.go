package exec

import (
	"slices"

	"github.com/tokgate/tokgate/metric"
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

// goesOn takes over the rounds, starts and looks of the run that is continued, so that the next
// round follows them.
func (t *turns) goesOn(before *metric.Run) {
	for i, rec := range t.records {
		j := slices.IndexFunc(before.Comparisons, func(c *metric.Comparison) bool { return c != nil && c.Name == rec.Name })
		if j < 0 || len(before.Comparisons[j].Looks) == 0 {
			continue
		}
		*rec = *before.Comparisons[j]
		rec.Looks, rec.Planned, rec.Notes = slices.Clone(rec.Looks), slices.Clone(rec.Planned), slices.Clone(rec.Notes)
		last := rec.Looks[len(rec.Looks)-1]
		if t.decided[i] = last.Outcome != metric.Inconclusive; !t.decided[i] {
			rec.Sessions = append(slices.Clone(rec.Sessions), last.Rounds)
			t.looks, t.rounds, t.earlier = rec.Planned, last.Rounds, last.Rounds
		}
	}
	for _, x := range t.sides {
		found := *before.Server(x.server.Address())
		x.found, x.starts = &found, len(found.Starts)
		t.runner.run.Servers = append(t.runner.run.Servers, x.found)
		for _, c := range x.cases {
			t.takesOver(x, c, before)
		}
	}
}

func (t *turns) takesOver(x *side, c Case, before *metric.Run) {
	i := slices.IndexFunc(before.Levels, func(l *metric.Level) bool {
		return l.Server == x.server.Address() && l.Workload == c.Workload.Address() && l.Name == c.Level.Name
	})
	l := *before.Levels[i]
	l.Rounds, l.Voided = slices.Clone(l.Rounds), slices.Clone(l.Voided)
	x.levels = append(x.levels, &l)
	t.runner.run.Levels = append(append(t.runner.run.Levels, &l), l.Parts...)
	for _, r := range slices.Concat(l.Rounds, l.Voided) {
		t.slot = max(t.slot, r.Leg.Slot+1)
		x.longest[placeOf(c)] = max(x.longest[placeOf(c)], r.End-r.Start)
		for _, s := range r.MeasuredSamples() {
			of := c.Workload
			for _, part := range of.Mix {
				if part.PartName() == s.Part {
					of = part
				}
			}
			t.sent[[2]string{x.server.Address(), of.Address()}]++
		}
	}
}
