package exec

import (
	"sync/atomic"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// saturation keeps so many requests in flight that the server's queue is never empty. Package
// load decides how many. What the server then streams in a given time is the most that it can
// stream. A saturation is measured once for each workload on a server, before the first level of
// a rate. Its requests are not judged. At its end the requests in flight are cancelled.
type saturation struct {
	*round
	steps    load.Saturation
	order    int
	from, to time.Duration // of the window
	stops    []func() bool
	begun    time.Duration
	first    bool // a request completed
	over     bool
	answers  map[*flight]*counted // in flight
	tokens   atomic.Int64         // streamed so far, in chunks
}

// counted is an answer that also adds its tokens to those of the saturation.
type counted struct {
	*client.Answer
	began atomic.Bool
	all   *atomic.Int64
}

// Event implements client.Stream.
func (c *counted) Event(at time.Duration, e *client.Event) {
	if e.Content || e.Reasoning || e.ToolCall {
		c.began.Store(true)
		c.all.Add(1)
	}
	c.Answer.Event(at, e)
}

// mostSaturating bounds the warm-up of a saturation. The warm-up takes twice as long as the
// first completed request.
const mostSaturating = time.Minute

// saturate plays the saturation.
func (rd *round) saturate(health *func() metric.Health) {
	s := &saturation{round: rd, answers: map[*flight]*counted{}, steps: load.Saturation{N: rd.level.N, Most: rd.saturates, Enough: enough(rd.Workload)}}
	rd.prepare(metric.Filler, 0, rd.level.N)
	rd.saturated.Busy = 1
	if !rd.check() || rd.halted() {
		return
	}
	rd.watch(health)
	rd.look()
	s.begun = rd.Clock.Now()
	s.at(s.begun+mostSaturating, func() { s.warms(true) })
	s.ticks()
	rd.ended, rd.listen = s.ended, s.listen
	for slot := range rd.level.N {
		s.next(slot)
	}
	rd.until(func() bool { return s.over || rd.halted() })
	rd.ended, rd.listen = nil, nil
	rd.saturated = load.Window{Start: s.from, End: s.to, Busy: 1}
	for _, stop := range s.stops {
		stop()
	}
}

func (s *saturation) at(t time.Duration, f func()) {
	s.stops = append(s.stops, s.Clock.Timer(t, f))
}

// ticks checks the saturation once a second until its window begins.
func (s *saturation) ticks() {
	s.at(s.Clock.Now()+time.Second, func() {
		if s.from == 0 {
			s.warms(false)
			s.ticks()
		}
	})
}

// warms checks the saturation. It begins the window, or sends more requests. The parameter warm
// is true if the warm-up of the first requests is over.
func (s *saturation) warms(warm bool) {
	if s.from > 0 || s.halted() {
		return
	}
	waiting := 0
	for _, a := range s.answers {
		if !a.began.Load() {
			waiting++
		}
	}
	had := s.steps.N
	if !s.steps.Look(s.Clock.Now()-s.begun, waiting, s.tokens.Load(), warm) {
		s.joins(had)
		return
	}
	s.fresh(waiting)
	s.from = s.Clock.Now()
	s.to = s.from + plan.Saturation
	if s.inside != nil {
		s.inside.Read()
	}
	s.at(s.to, func() { s.over = true })
}

// joins sends further requests. The parameter had is the number of requests before. The first
// call restarts all requests, because the first requests began together. After the restart every
// request begins at another point of its answer, as if requests had long followed each other:
// its prompt contains the answer up to that point.
func (s *saturation) joins(had int) {
	if s.steps.N == had {
		return
	}
	if s.steps.Anew {
		for _, f := range s.inFlight() {
			delete(s.answers, f)
			f.cancel()
		}
		had = 0
	}
	more := s.steps.N - had
	s.level.N = s.steps.N
	// The prompts that were made so far are for whole requests, so make new ones.
	s.ready, s.readyBytes, s.before = nil, 0, map[turnID]int{}
	for i := range more {
		id := turnID{metric.Filler, s.order}
		if l, nth := s.of(id.phase, id.order); !l.workload.Output.Natural {
			// The first requests are those nearest to their end. While the server reads
			// the prompts of the others, these end and are replaced. In the other order
			// all requests would be equally far from their end when all prompts have
			// been read.
			s.before[id] = int(float64(l.lengths.At(id.phase, nth)) * (float64(more-i) - 0.5) / float64(more))
		}
		s.next(had + i)
	}
}

// fresh restarts requests that wait in the server's queue although their prompts contain the
// beginning of their answer. They begin again without it: a queued request has no answer yet.
func (s *saturation) fresh(waiting int) {
	if !s.steps.Queues(waiting) {
		return
	}
	for _, f := range s.inFlight() {
		if s.before[turnID{f.turn.Phase, f.turn.Order}] > 0 && !s.answers[f].began.Load() {
			f.cancel()
		}
	}
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

// listen counts each token for the saturation.
func (s *saturation) listen(f *flight, a *client.Answer) client.Stream {
	c := &counted{Answer: a, all: &s.tokens}
	s.answers[f] = c
	return c
}

// ended handles the end of a request.
func (s *saturation) ended(f *flight) {
	if s.answers[f] == nil {
		return // a restarted request: another one has taken its place
	}
	delete(s.answers, f)
	if !f.sample.Completed() {
		s.at(s.Clock.Now()+load.Backoff, func() { s.next(f.turn.Slot) })
		return
	}
	if !s.first {
		s.first = true
		s.at(s.Clock.Now()+(s.Clock.Now()-s.begun), func() { s.warms(true) })
	}
	s.next(f.turn.Slot)
}

// enough is a number of tokens a second. If a saturation reaches it, there is no need to look
// for more. It is twice the largest number that the plan asks for; 0 if that is not known.
func enough(w *plan.Workload) float64 {
	rate := 0.0
	for _, l := range w.Loads {
		for _, level := range l.Levels {
			rate = max(rate, level.Rate)
		}
	}
	if c := w.Capacity; c != nil && c.Over == metric.OpenLoop {
		rate = max(rate, float64(c.UpTo)*plan.RateStep)
	}
	mean, _ := w.AnswerLength()
	return 2 * rate * mean
}
