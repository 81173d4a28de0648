package compare

import (
	"slices"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Warm starts are compared by their mean, as two groups. The first observation of a comparison is left
// out: the first start of one side reads the weights from disk, and that of the other finds them in
// memory. So a change of warm starts has looks of its own, each with one observation less than the
// look at the comparison, and none before it has leastWarm.

// warm returns the observations in which every start was warm, without the first.
func (m matched) warm() matched {
	out := m
	control, candidate := *m.control, *m.candidate
	control.Rounds, candidate.Rounds, out.sessions, out.design = nil, nil, nil, stat.Groups
	for i := m.block; i+m.block <= len(m.candidate.Rounds) && i+m.block <= len(m.control.Rounds); i += m.block {
		if slices.Contains(m.sessions, i/m.block) && len(control.Rounds) > 0 {
			out.sessions = append(out.sessions, len(control.Rounds)/m.block)
		}
		a, b := m.control.Rounds[i:i+m.block], m.candidate.Rounds[i:i+m.block]
		if slices.ContainsFunc(a, func(r *metric.Round) bool { return !m.control.Warm(r) }) ||
			slices.ContainsFunc(b, func(r *metric.Round) bool { return !m.candidate.Warm(r) }) {
			continue
		}
		control.Rounds, candidate.Rounds = append(control.Rounds, a...), append(candidate.Rounds, b...)
	}
	out.control, out.candidate = &control, &candidate
	return out
}

// startsJudged judges a change of warm starts. Before the fourth start of each side it is undecided.
func (x *comparison) startsJudged(m matched, claim *plan.Claim, ch *plan.ChangeBound) Change {
	warm, alpha := m.warm(), x.nominalOf(ch.Metric)(x.whole)
	row := Change{Metric: ch.Metric, Stat: ch.Stat}
	if n := len(warm.candidate.Rounds) / m.block; n < leastWarm {
		row.Workload, row.Level, row.Confidence, row.Outcome = m.workload.Address(), m.level, m.confidence, verdict.Inconclusive
		row.require(ch, claim, x.Block.Policy, alpha)
		row.Why = "too few warm starts of each server: " + verdict.Count(n, "starts")
		row.Message, row.Needs = row.line(), "needs a fourth start of each server, because the first is cold"
		return row
	}
	warm.measure(&row, alpha)
	row.require(ch, claim, x.Block.Policy, alpha)
	return row
}
