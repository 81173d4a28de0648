package exec

import (
	"fmt"
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/exec/shape"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// level runs the rounds of one case from look to look, until a look is final. An error means that
// the server is lost, so its other cases are not tried.
func (r *runner) level(t *Target, c Case) (lost error) {
	begin := r.Clock.Now()
	r.remaining--
	l := r.newLevel(c)
	defer r.done(l)

	s, lost := r.runOf(t, c, l)
	if s == nil {
		return lost
	}
	if Saturates(r.Plan, c) {
		var most *metric.Level
		most, lost = r.saturated(t, c)
		if takes(l, most); lost != nil {
			l.Skipped = r.secrets.Text(lost.Error())
			return lost
		}
	}
	r.levelBegan = begin
	defer func() { r.ran(l, r.Clock.Now()-begin) }()
	defer s.examine()
	defer s.residue().ends()
	defer s.closes()
	looks := r.looks(c)
	whole := load.Split(c.Level.Requests, max(c.Level.Rounds, 1))
	r.observe(metric.LevelStarted{Level: l, Due: r.requests(c, whole), Expected: r.expected(c, whole)})
	for i, at := range looks {
		if at.Ahead && shape.Of(c).Windowed {
			s.midway = append(s.midway, at) // the window goes on meanwhile
			continue
		}
		if on, lost := s.reaches(at, looks[i+1:]); !on || lost != nil {
			return lost
		}
	}
	return nil
}

// reaches measures the level up to a look and judges it there. It reports whether the level
// continues, to the next looks.
func (s *levelRun) reaches(at plan.Look, next []plan.Look) (on bool, lost error) {
	l := s.level
	if at.Extends {
		if !s.affords(at) {
			return false, nil
		}
		due := max(at.Requests, s.measured()+s.requests(s.Case, at.Due))
		s.observe(metric.LevelStarted{Level: l, Due: due, Expected: s.expected(s.Case, at.Due)})
	}
	s.sheds, s.ahead = !at.Extends, planned(next)
	ended, lost := s.play(at.Due)
	if l.Shed > 0 && ended && !at.Extends {
		if at.Ahead {
			return true, nil // rounds are missing, so judge the level only at the end
		}
		at.Requests = s.measured()
		_, rounds := l.RoundNames()
		l.Notes = append(l.Notes, fmt.Sprintf("measured in %d of %d %s: the budget of %v leaves no time for more",
			len(l.Rounds), len(l.Rounds)+l.Shed, rounds, s.Budget))
	}
	if !ended {
		if n := len(l.Looks); n > 0 && !at.Extends && l.Looks[n-1].Outcome != metric.Fail {
			// The level was cut off before this look. Record the look as planned, so that the look
			// before it does not count as the last.
			l.Looks = append(l.Looks, metric.Look{Requests: max(s.Level.Requests, l.Due()), Planned: at.Planned, Spent: 1})
		}
		return false, lost
	}
	on, lost = s.decides(at, len(next) == 0)
	// If rounds were left out because the budget was short, there is no time to extend the level.
	return on && l.Shed == 0, lost
}

// planned returns the rounds before the looks that do not extend the level.
func planned(looks []plan.Look) (due []int) {
	for _, at := range looks {
		if !at.Extends {
			due = append(due, at.Due...)
		}
	}
	return due
}

// looks plans the looks at a case: the judgements while its level is measured.
func (r *runner) looks(c Case) []plan.Look {
	if r.Judge == nil {
		return []plan.Look{{Due: load.Split(c.Level.Requests, max(c.Level.Rounds, 1)), Requests: c.Level.Requests, Spent: 1, Planned: 1}}
	}
	return r.Plan.Looks(c.Workload, c.Load, c.Level)
}

// decides judges the level at a look, and reports whether the level continues. A look is a planned
// judgement of a level that still runs.
func (s *levelRun) decides(at plan.Look, last bool) (on bool, lost error) {
	l, look := s.level, metric.Look{Requests: at.Requests, Planned: at.Planned, Spent: at.Spent}
	if s.Level.Duration > 0 {
		look.Requests = s.measured()
	}
	ahead := at.Ahead && l.Shed == 0
	if last && !at.Extends {
		return false, s.ends(look)
	}
	j, lost := s.judged(look)
	if lost != nil {
		return false, lost
	}
	if ahead && (j.Invalid != "" || j.Outcome == metric.Pass && at.Spent == 0 || j.Outcome != metric.Pass && j.Outcome != metric.Fail) {
		look.Outcome = metric.Inconclusive
		l.Looks = append(l.Looks, look)
		return true, nil
	}
	look.Outcome = j.Outcome
	l.Looks = append(l.Looks, look)
	if ahead {
		s.notesEnd(at, j.Outcome)
	}
	if j.Invalid != "" || j.Outcome != metric.Inconclusive {
		return false, nil
	}
	if j.Needs < 0 {
		if !last {
			l.Notes = append(l.Notes, "not extended: no number of requests would settle it")
		}
		return false, nil
	}
	return true, nil
}

// ends handles the planned end of a level. Nothing in the run depends on its last look but a
// saturation after the level. So a level without a saturation is judged only after the run.
func (s *levelRun) ends(look metric.Look) (lost error) {
	l := s.level
	if l.Saturation != nil && s.Judge != nil {
		_, lost = s.judged(look)
	}
	if len(l.Looks) > 0 {
		l.Looks = append(l.Looks, look)
	}
	return lost
}

// affords reports whether the level may be extended up to a look. The budget must suffice for the
// extension, for the cases that have not run yet and for the searches. The requests of a level with
// a fixed duration must stay within max_requests.
func (s *levelRun) affords(at plan.Look) bool {
	if !s.check() {
		return false
	}
	if most, n := s.Workload.Policy.MaxRequests, s.measured(); s.Level.Duration > 0 && most > 0 {
		if rounds := len(s.level.Rounds); n*(rounds+len(at.Due))/rounds > most {
			s.level.Notes = append(s.level.Notes, fmt.Sprintf(
				"not extended: after %d requests in %s, as many again would exceed max_requests = %d", n, plan.PlainDuration(s.Level.Duration), most))
			return false
		}
	}
	if s.deadline == 0 {
		return true
	}
	takes, left := s.expected(s.Case, at.Due), s.spare()-s.promised()
	if takes > left {
		s.level.Notes = append(s.level.Notes, fmt.Sprintf("not extended to %d requests: that takes about %v, and the budget leaves %v",
			at.Requests, takes.Round(time.Second), max(0, left).Round(time.Second)))
	}
	return takes <= left
}
