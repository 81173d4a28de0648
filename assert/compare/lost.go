package compare

import (
	"cmp"
	"slices"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// Lost is a prompt on which the candidate gave a bad answer and the control did not.
type Lost struct {
	Metrics            []string // names of the metrics by which the candidate's answer is bad
	Why                string   // why the candidate's answer is odd; "" for the measured load
	Control, Candidate *metric.Sample
}

// oddest lists the prompts on which the candidate's answer is worst. The odd answers come first. If
// answer_nll fails, the answers whose likelihood fell most follow.
func (x *comparison) oddest(r *metric.PairedAnswers) {
	var out []Lost
	add := func(o Oddity, name, why string) {
		p := &r.Pairs[o.Pair]
		names := []string{name}
		for metric, bad := range map[string]bool{"empty": p.Candidate.Empty, "repetition": p.Candidate.Repeats, "invalid_text": p.Candidate.Invalid} {
			if bad {
				names = append(names, metric)
			}
		}
		slices.Sort(names[1:])
		side := func(a *metric.PairedAnswer) *metric.Sample {
			return &metric.Sample{Server: x.out.Candidate, Workload: p.Workload, Level: p.Level, Order: p.Order, Said: &metric.Said{Text: a.Text}}
		}
		if p.Control.Text != "" || p.Candidate.Text != "" { // a text was recorded
			out = append(out, Lost{Metrics: names, Why: why + o.rarity(), Control: side(p.Control), Candidate: side(p.Candidate)})
		}
	}
	odd, _, _ := Oddities(r)
	for _, o := range odd {
		add(o, "odd_answers", o.Why)
	}
	if slices.ContainsFunc(x.out.Changes, func(c Change) bool { return c.Metric.Name == "answer_nll" && c.Outcome == verdict.Fail }) {
		for _, o := range shifted(r) {
			add(o, "answer_nll", "it is less likely than the control's answer")
		}
	}
	x.out.Lost = append(out, x.out.Lost...)
}

// shifted returns the candidate's answers that are less likely than the control's, but not odd. The
// largest difference comes first.
func shifted(r *metric.PairedAnswers) (out []Oddity) {
	for i := range r.Pairs {
		p := &r.Pairs[i]
		if p.Control == nil || p.Candidate == nil {
			continue
		}
		if excess, why := tooOdd(p.Candidate, p.Control); why == "" && excess > 0 {
			out = append(out, Oddity{Pair: i, Excess: excess})
		}
	}
	slices.SortStableFunc(out, func(a, b Oddity) int { return cmp.Compare(b.Excess, a.Excess) })
	return out
}

// lose records the prompts to which only the candidate gave a bad answer. An answer is bad if a
// metric that the plan limits says so. The candidate's text must have been recorded.
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

// each calls the function f for each answer of one server whose prompt the other server got too.
// Two separate runs have only the prompts of tasks in common.
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
