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
		names := []string{name}
		for metric, bad := range map[string]bool{"empty": o.candidate.Empty, "repetition": o.candidate.Repeats, "invalid_text": o.candidate.Invalid} {
			if bad {
				names = append(names, metric)
			}
		}
		slices.Sort(names[1:])
		control, candidate := x.saidOf(o, x.address, o.control), x.saidOf(o, x.out.Candidate, o.candidate)
		if control.Said.Text != "" || candidate.Said.Text != "" { // a text was recorded
			out = append(out, Lost{Metrics: names, Why: why + o.rarity(), Control: control, Candidate: candidate})
		}
	}
	u := newUsual(r)
	for _, o := range u.oddities(r).odd {
		add(o, "odd_answers", o.Why)
	}
	if slices.ContainsFunc(x.out.Changes, func(c Change) bool { return c.Metric.Name == "answer_nll" && c.Outcome == verdict.Fail }) {
		for _, o := range u.shifted(r) {
			add(o, "answer_nll", "it is less likely than the control's answer")
		}
	}
	x.out.Lost = append(out, x.out.Lost...)
}

// saidOf returns a server's answer to the prompt of an odd answer, with its text if that was
// recorded. The text of a measured answer is in the server's level.
func (x *comparison) saidOf(o Oddity, server string, a *metric.PairedAnswer) *metric.Sample {
	out := &metric.Sample{Server: x.out.Candidate, Workload: o.Workload, Level: o.Level, Round: o.Round, Order: o.Order,
		Said: &metric.Said{}}
	if !o.Sampled {
		out.Said.Text = a.Text
		return out
	}
	l := x.Level(server, o.Workload, o.Level)
	if l == nil {
		return out
	}
	for _, r := range slices.Concat(l.Rounds, l.Voided) {
		for _, s := range r.MeasuredSamples() {
			if s.Round == o.Round && s.Order == o.Order && s.Said != nil {
				return s
			}
		}
	}
	return out
}

// shifted returns the candidate's answers that are less likely than the control's, but not odd. The
// largest difference comes first.
func (u *usual) shifted(r *metric.PairedAnswers) (out []Oddity) {
	for i := range r.Pairs {
		p := &r.Pairs[i]
		if p.Control == nil || p.Candidate == nil {
			continue
		}
		if excess, why, _ := u.tooOdd(group{p.Workload, p.Level, false}, p.Candidate, p.Control); why == "" && excess > 0 {
			out = append(out,
				Oddity{Workload: p.Workload, Level: p.Level, Order: p.Order, Excess: excess, control: p.Control, candidate: p.Candidate})
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
