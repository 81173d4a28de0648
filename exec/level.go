package exec

import (
	"fmt"
	"slices"
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/exec/search"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// level runs one case: its rounds up to each planned look, until one of them
// is the last word. Its error is that of the server: the cases after it need
// not be tried.
func (r *runner) level(t *Target, c Case) (lost error) {
	begin := r.Clock.Now()
	r.remaining--
	l := newLevel(c)
	r.run.Levels = append(r.run.Levels, l)
	defer func() { r.observe(r.Observer.LevelDone(l)) }()

	s, lost := r.series(t, c, l)
	if s == nil {
		return lost
	}
	r.levelBegan = begin
	defer func() { r.ran(l, r.Clock.Now()-begin) }()
	stages := stages(c, r.judges(c))
	r.observe(r.Observer.LevelStarted(l, c.Level.Requests, r.expected(c, load.Split(c.Level.Requests, max(c.Level.Rounds, 1)))))
	for i, st := range stages {
		if st.extends && !s.affords(st) {
			return nil
		}
		if st.extends {
			r.observe(r.Observer.LevelStarted(l, st.requests, r.expected(c, st.due)))
		}
		s.sheds = !st.extends
		ended, lost := s.play(st.due)
		if l.Shed > 0 && ended && !st.extends {
			if st.abort {
				continue // what is left of the level says it all
			}
			st.requests = s.measured()
			l.Notes = append(l.Notes, fmt.Sprintf("measured in %d of %d rounds: the budget of %v leaves no time for more",
				len(l.Rounds), len(l.Rounds)+l.Shed, r.Budget))
		}
		if !ended {
			if len(l.Looks) > 0 && !st.extends {
				// What the look half-way saw must not pass for the level.
				l.Looks = append(l.Looks, metric.Look{Requests: c.Level.Requests, Planned: st.planned})
			}
			return lost
		}
		if !s.decides(st, i == len(stages)-1) || l.Shed > 0 {
			return nil // what has no time for its rounds has none for more
		}
	}
	return nil
}

// judges says whether looks at the level could end or extend it.
func (r *runner) judges(c Case) bool {
	if r.Judge == nil || r.Plan.Gate.MeasureOnly || c.Workload.Policy.Decide == plan.Estimate {
		return false
	}
	return slices.ContainsFunc(c.Workload.SLAs, func(s *plan.SLA) bool {
		return s.Severity == plan.SeverityError && slices.Contains(s.At, c.Level.Name)
	})
}

// decides holds the look at the end of a stage, and says whether the level
// goes on.
func (s *series) decides(st stage, last bool) (on bool) {
	l, look := s.level, metric.Look{Requests: st.requests, Planned: st.planned}
	if last && !st.extends {
		// Nothing hangs on it: it is left to the end of the run.
		if len(l.Looks) > 0 {
			l.Looks = append(l.Looks, look)
		}
		return false
	}
	j := s.Judge(s.Workload, l, Look{Requests: st.requests, Planned: st.planned})
	if st.abort {
		if j.Invalid != "" || j.Outcome != search.Fail {
			look.Outcome = search.Inconclusive.String()
			l.Looks = append(l.Looks, look)
			return true
		}
		l.Notes = append(l.Notes, fmt.Sprintf("it failed after %d of %d requests and was ended", st.requests, s.Level.Requests))
	}
	look.Outcome = j.Outcome.String()
	l.Looks = append(l.Looks, look)
	if j.Invalid != "" || j.Outcome != search.Inconclusive {
		return false
	}
	if j.Needs < 0 {
		if !last {
			l.Notes = append(l.Notes, "not extended: no number of requests would settle it")
		}
		return false
	}
	return true
}

// affords says whether there is time to extend the level. Of what a short
// budget sheds, extension is the first: the cases that are still to come, and
// the time that searches were promised, go before it.
func (s *series) affords(st stage) bool {
	if !s.check() {
		return false
	}
	if s.deadline == 0 {
		return true
	}
	takes, left := s.expected(s.Case, st.due), s.spare()-s.promised()
	if takes > left {
		s.level.Notes = append(s.level.Notes, fmt.Sprintf("not extended to %d requests: that takes about %v, and the budget leaves %v",
			st.requests, takes.Round(time.Second), max(0, left).Round(time.Second)))
	}
	return takes <= left
}
