package exec

import (
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/search"
)

// endedEarly is the value of Round.Stopped if a look ended the level before the round was complete.
const endedEarly = "the level ended early"

// looksMidway judges a rate while its window is measured, at looks that can only fail it. A failure
// ends the window; otherwise the load goes on.
func (s *series) looksMidway(rd *round) {
	looks := s.midway
	s.midway = nil
	for _, at := range looks {
		if rd.walk(func() bool { return rd.first.n >= at.Requests }); rd.first.n < at.Requests {
			return // the window ended
		}
		view := *s.level
		view.Rounds = rd.units()
		look := metric.Look{Requests: at.Requests, Planned: at.Planned, Spent: at.Spent}
		j := s.judge(s.Workload, &view, look)
		if look.Outcome = search.Inconclusive; j.Invalid == "" && j.Outcome == search.Fail {
			look.Outcome = search.Fail
		}
		if s.level.Looks = append(s.level.Looks, look); look.Outcome == search.Fail && !rd.halted() {
			s.notesEnd(at, look.Outcome)
			rd.cut(endedEarly)
			return
		}
	}
}

// prefix counts the leading numbers of a set to which they are added in any order.
type prefix struct {
	n    int // all numbers below it were added
	more map[int]bool
}

func (p *prefix) add(number int) {
	if p.more == nil {
		p.more = map[int]bool{}
	}
	p.more[number] = true
	for ; p.more[p.n]; p.n++ {
		delete(p.more, p.n)
	}
}
