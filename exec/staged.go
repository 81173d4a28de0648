package exec

import (
	"fmt"
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// planned lists after how many rounds the comparisons of the group are judged. If nobody judges them
// while they run, it is at their end.
func (t *alternation) planned() []int {
	if t.JudgeComparison == nil || t.Plan.Gate.MeasureOnly {
		return []int{t.group.Compares[0].Rounds}
	}
	return t.group.Compares[0].Looks()
}

// plan sets the looks of the comparisons, which share their error.
func (t *alternation) plan(looks []int) {
	t.looks = looks
	for _, rec := range t.records {
		rec.Planned = slices.Clone(looks)
	}
}

// goesOn takes over the rounds, starts and looks of the run that is continued, so that the next
// round follows them.
func (t *alternation) goesOn(before *metric.Run) {
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

func (t *alternation) takesOver(x *side, c Case, before *metric.Run) {
	i := slices.IndexFunc(before.Levels, func(l *metric.Level) bool {
		return l.Server == x.server.Address() && l.Workload == c.Workload.Address() && l.Name == c.Level.Name
	})
	l := *before.Levels[i]
	l.Rounds, l.Voided = slices.Clone(l.Rounds), slices.Clone(l.Voided)
	x.levels = append(x.levels, &l)
	t.runner.run.Levels = append(t.runner.run.Levels, &l)
	for _, r := range slices.Concat(l.Rounds, l.Voided) {
		t.slot = max(t.slot, r.Leg.Slot+1)
		x.longest[placeOf(c)] = max(x.longest[placeOf(c)], r.End-r.Start)
		for _, s := range r.MeasuredSamples() {
			if s.Turn > 1 {
				continue
			}
			t.sent[[2]string{x.server.Address(), c.Workload.Owner(s).Address()}]++
		}
	}
}

// play runs rounds and judges the comparisons at their looks, until all are decided or the last look
// was made. It returns early if something ended the run, or if the budget is too short for another
// round.
func (t *alternation) play() {
	unit := t.group.Compares[0].Unit()
	for {
		if t.rounds%unit == 0 && !t.affords(unit) {
			return
		}
		if !t.round() {
			return
		}
		if t.rounds++; t.rounds == t.earlier+1 {
			t.warm = t.Clock.Now()
		}
		if t.rounds == t.looks[0] && len(t.looks) > 1 {
			t.foresee()
		}
		if t.rounds < t.looks[0] && t.rounds%unit == 0 && t.failsForGood() {
			t.plan(append([]int{t.rounds}, t.looks...))
		}
		if slices.Contains(t.looks, t.rounds) && t.look() {
			return
		}
	}
}

// failsForGood reports whether an exact threshold of an undecided candidate fails already, whatever its
// further starts bring. The comparison is then judged at once.
func (t *alternation) failsForGood() bool {
	if len(t.looks) < 2 || t.Judge == nil {
		return false
	}
	for i, c := range t.group.Compares {
		for _, x := range t.sides {
			for k, l := range x.levels {
				w := x.cases[k].Workload
				if x.server == c.Candidate && !t.decided[i] && w.Exact() && t.judge(w, l, Look{Planned: 1}).ForGood {
					return true
				}
			}
		}
	}
	return false
}

// affords reports whether the budget has time for further rounds. If not, the comparisons end as
// their last look left them. A comparison that is judged once is judged on the rounds so far, if they
// are enough.
func (t *alternation) affords(rounds int) bool {
	first := t.looks[0]
	switch {
	case t.rounds < min(first, fewestRounds) || !t.timeShort(rounds):
		return true
	case t.rounds < first:
		t.note(fmt.Sprintf("the budget left time for %d of %d rounds", t.rounds, first))
		t.answering.shed()
		t.plan([]int{t.rounds})
		t.look()
	default:
		t.note(fmt.Sprintf("the budget left time for %d of up to %d rounds", t.rounds, slices.Max(t.looks)))
		for i := range t.decided {
			t.decided[i] = true
		}
	}
	return false
}

// foresee leaves out the looks for which the budget has no time, before the first look. The others
// then share the whole error.
func (t *alternation) foresee() {
	if t.deadline == 0 {
		return
	}
	most := t.rounds + int((t.spare()-t.promised())/max(t.pace(), 1))
	looks := slices.DeleteFunc(slices.Clone(t.looks), func(n int) bool { return n > max(most, t.rounds) })
	if len(looks) < len(t.looks) {
		t.note(fmt.Sprintf("the budget leaves time for at most %d of %d rounds", slices.Max(looks), slices.Max(t.looks)))
		t.plan(looks)
	}
}

// pace returns the mean time of a round so far, with the starts of its servers. The first round of a
// session has cold starts, so later rounds tell better what the next ones take.
func (t *alternation) pace() time.Duration {
	if n := t.rounds - t.earlier; n > 1 {
		return (t.Clock.Now() - t.warm) / time.Duration(n-1)
	}
	return t.Clock.Now() - t.began
}

// timeShort reports whether the time budget is too short for the given number of further rounds.
func (t *alternation) timeShort(rounds int) bool {
	return t.deadline > 0 && time.Duration(rounds)*t.pace() > t.spare()-t.promised()
}

// look judges the comparisons that are not decided yet. It reports whether all are decided now.
func (t *alternation) look() (all bool) {
	last := t.rounds == slices.Max(t.looks)
	if last || len(t.looks) == 1 {
		t.answering.rest()
	}
	all = true
	for i, c := range t.group.Compares {
		if t.decided[i] {
			continue
		}
		rec := t.records[i]
		rec.Looks = append(rec.Looks, metric.ComparisonLook{Rounds: t.rounds})
		rec.Answers = t.answering.pairs(c)
		t.decided[i] = last
		if len(t.looks) > 1 {
			outcome, stop := t.JudgeComparison(c, t.seen())
			rec.Looks[len(rec.Looks)-1].Outcome = outcome
			t.decided[i] = last || stop
		}
		all = all && t.decided[i]
	}
	return all
}

// running returns the servers of the comparisons that are not decided yet.
func (t *alternation) running() []*side {
	var out []*side
	for _, x := range t.sides {
		if slices.ContainsFunc(t.group.Compares, func(c *plan.Compare) bool {
			return !t.decided[slices.Index(t.group.Compares, c)] && (c.Candidate == x.server || c.Control.Server == x.server)
		}) {
			out = append(out, x)
		}
	}
	return out
}

// Starts returns how often a run of the plan starts the server at most. In a comparison this depends
// on the setting restart and on the number of rounds. Cases without a comparison need one more start.
func Starts(p *plan.Plan, s *plan.Server) int {
	n, alone := 0, false
	for _, c := range append(Cases(p), Searches(p)...) {
		if c.Server != s {
			continue
		}
		compared := false
		for _, g := range plan.Groups(p) {
			if !slices.Contains(g.Servers, s) || !slices.Contains(g.Workloads(p), c.Workload) || c.Load == nil {
				continue
			}
			compared = true
			if n = 1; g.Compares[0].Restart == plan.RestartLeg {
				n = slices.Max(g.Compares[0].Looks())
				if readsLast(g, s) {
					n++ // the control starts once more, to score the last answers
				}
			}
		}
		alone = alone || !compared
	}
	if alone {
		n++
	}
	return n
}
