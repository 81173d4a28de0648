package exec

import (
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// saturation keeps so many requests in flight that the server's queue is never
// empty, for a time: what it streams then is the most that it can. It is measured
// once for a workload on a server, before the first level of a rate. No request of
// it is judged, and those in flight at its end are cancelled.
type saturation struct {
	*round
	order      int
	from, to   time.Duration // of the window
	stops      []func() bool
	begun      time.Duration
	first      bool // a request completed
	warm, over bool
}

// How long the warm-up of a saturation may take: twice as long as the first request
// takes to complete, and no longer than that.
const mostSaturating = time.Minute

// saturate plays the saturation.
func (rd *round) saturate(health *func() metric.Health) {
	s := &saturation{round: rd}
	rd.prepare(metric.Filler, 0, rd.level.N)
	rd.saturated.Busy = 1
	if !rd.check() || rd.halted() {
		return
	}
	rd.watch(health)
	rd.look()
	s.begun = rd.Clock.Now()
	s.at(s.begun+mostSaturating, s.open)
	rd.ended = s.ended
	for slot := range rd.level.N {
		s.next(slot)
	}
	rd.until(func() bool { return s.over || rd.halted() })
	rd.ended = nil
	rd.saturated = load.Window{Start: s.from, End: s.to, Busy: 1}
	for _, stop := range s.stops {
		stop()
	}
}

func (s *saturation) at(t time.Duration, f func()) {
	s.stops = append(s.stops, s.Clock.Timer(t, f))
}

// open begins the window.
func (s *saturation) open() {
	if s.warm {
		return
	}
	s.warm, s.from = true, s.Clock.Now()
	s.to = s.from + plan.Saturation
	if s.inside != nil {
		s.inside.Read()
	}
	s.at(s.to, func() { s.over = true })
}

func (s *saturation) next(slot int) {
	if s.over || s.halted() {
		return
	}
	s.send(load.Turn{Slot: slot, Phase: metric.Filler, Order: s.order}, s.Clock.Now())
	s.order++
	s.Clock.Post(func() {
		if !s.over && !s.halted() {
			s.prepare(metric.Filler, s.order+s.level.N, 1)
		}
	})
}

// ended follows the end of a request.
func (s *saturation) ended(f *flight) {
	if !f.sample.Completed() {
		s.at(s.Clock.Now()+load.Backoff, func() { s.next(f.turn.Slot) })
		return
	}
	if !s.first {
		s.first = true
		s.at(s.Clock.Now()+(s.Clock.Now()-s.begun), s.open)
	}
	s.next(f.turn.Slot)
}
