package exec

import (
	"fmt"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// looksMidway judges a rate while its window is measured, at looks that can only fail it. A failure
// ends the window; otherwise the load goes on.
func (s *levelRun) looksMidway(rd *round) {
	looks := s.midway
	s.midway = nil
	for _, at := range looks {
		if rd.walk(func() bool { return rd.first.n >= at.Requests }); rd.first.n < at.Requests {
			return // the window ended
		}
		view := *s.level
		view.Rounds, view.Replicas = rd.units(), rd.byReplica(s.level.Replicas)
		look := metric.Look{Requests: at.Requests, Planned: at.Planned, Spent: at.Spent}
		j := s.judge(s.Workload, &view, look)
		if look.Outcome = metric.Inconclusive; j.Invalid == "" && j.Outcome == metric.Fail {
			look.Outcome = metric.Fail
		}
		if s.level.Looks = append(s.level.Looks, look); look.Outcome == metric.Fail && !rd.halted() {
			s.notesEnd(at, look.Outcome)
			rd.early = true
			rd.cut(endedEarly)
			return
		}
	}
}

// failed reports whether an exact threshold of a probe fails for good.
func (s *levelRun) failed() bool { return s.fails != nil && len(s.level.Rounds) > 0 && s.fails() }

// notesEnd notes that a look ended the level early.
func (s *levelRun) notesEnd(at plan.Look, outcome metric.Outcome) {
	said := map[metric.Outcome]string{metric.Pass: "passed", metric.Fail: "failed"}[outcome]
	part := fmt.Sprintf("%d of %d requests", at.Requests, s.Level.Requests)
	if s.Level.Duration > 0 {
		_, rounds := s.level.RoundNames()
		part = fmt.Sprintf("%d of %d %s", len(s.level.Rounds), s.Level.Rounds, rounds)
	}
	s.level.Notes = append(s.level.Notes, fmt.Sprintf("the level %s after %s and ended early", said, part))
}
