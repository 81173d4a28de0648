package compare

import (
	"slices"

	"github.com/tokgate/tokgate/metric"
)

// Lost is a prompt to which the candidate gave an answer that counts as bad where the
// control's does not.
type Lost struct {
	Metrics            []string // of answers, by which it counts so
	Control, Candidate *metric.Sample
}

// lose adds the prompts of a level on which the candidate does worse, by the metrics
// of answers that are bounded, and of which the text of its answer was kept.
func (x *comparison) lose(m matched) {
	var defs []metric.Def
	for _, claim := range x.required {
		for _, ch := range claim.Changes {
			if ch.Metric.OfAnswers && slices.Contains(claim.Workloads, m.workload) {
				defs = append(defs, ch.Metric)
			}
		}
	}
	if len(defs) == 0 {
		return
	}
	control := map[place]*metric.Sample{}
	m.each(m.control, func(at place, s *metric.Sample) {
		if control[at] == nil {
			control[at] = s
		}
	})
	m.each(m.candidate, func(at place, s *metric.Sample) {
		against := control[at]
		if against == nil || s.Said == nil || s.Said.Hash != "" {
			return
		}
		found := Lost{Control: against, Candidate: s}
		for _, def := range defs {
			if s.Bad(def) && against.Says(def) != metric.Unasked && !against.Bad(def) && !slices.Contains(found.Metrics, def.Name) {
				found.Metrics = append(found.Metrics, def.Name)
			}
		}
		if len(found.Metrics) > 0 {
			x.out.Lost = append(x.out.Lost, found)
		}
	})
}

// each calls f with the answers of a side, and what it was asked that the other side
// was asked too. Against a recorded run only items are.
func (m matched) each(l *metric.Level, f func(place, *metric.Sample)) {
	for i, r := range l.Rounds {
		for _, s := range r.MeasuredSamples() {
			if s.Canceled() || s.Answer == nil {
				continue
			}
			at := place{item: s.Answer.Item}
			if at.item == "" {
				if m.unpaired {
					continue
				}
				at.round, at.order = i, s.Order
			}
			f(at, s)
		}
	}
}
