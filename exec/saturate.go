package exec

import (
	"sync/atomic"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// saturation measures the highest speed that a server reaches, in tokens per second. While it
// measures, the queue of the server is never empty. It runs for each workload on a server, before
// the first level with a rate, and after a level that needs it. Its requests are not judged.
type saturation struct {
	*round
	steps    load.Saturation
	order    int
	from, to time.Duration // start and end of the measuring window
	stops    []func() bool
	begun    time.Duration
	first    bool // a request completed
	over     bool
	answers  map[*flight]*counted // answers of requests in flight
	tokens   atomic.Int64         // chunks with tokens so far
	marks    []int64              // chunks with tokens, at the window's beginning and after each second
}

// counted is an answer that counts its chunks with tokens in a counter for all answers.
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

// mostSaturating is the longest warm-up of a saturation, which finds a server's highest speed.
// Normally the warm-up takes twice as long as the first request.
const mostSaturating = time.Minute

// saturate runs the saturation.
func (rd *round) saturate(health *func() metric.Health) {
	s := &saturation{round: rd, answers: map[*flight]*counted{}, steps: load.Saturation{N: rd.level.N, Most: rd.saturates, Enough: targetSpeed(rd.Workload)}}
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
	rd.runUntil(func() bool { return s.over || rd.halted() })
	rd.ended, rd.listen = nil, nil
	rd.saturated = load.Window{Start: s.from, End: s.to, Busy: 1}
	for _, stop := range s.stops {
		stop()
	}
}

func (s *saturation) at(t time.Duration, f func()) {
	s.stops = append(s.stops, s.Clock.Timer(t, f))
}

// ticks checks once a second whether the measuring window of the saturation can begin.
func (s *saturation) ticks() {
	s.at(s.Clock.Now()+time.Second, func() {
		if s.from == 0 {
			s.warms(false)
			s.ticks()
		}
	})
}

// warms checks once whether the measuring window of the saturation can begin. If not, it sends more
// requests. warm is true if the warm-up of the first requests is over.
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
	s.restartQueued(waiting)
	s.from = s.Clock.Now()
	s.to = s.from + plan.Saturation
	if s.inside != nil {
		s.inside.Read()
	}
	s.at(s.to, func() { s.over = true })
	if s.excludes > 0 {
		s.marks = []int64{s.tokens.Load()}
		s.looks()
	}
}

// looks ends the measuring window early, at one of its looks, if the speed is certainly not the
// excluded one.
func (s *saturation) looks() {
	s.at(s.Clock.Now()+time.Second, func() {
		s.marks = append(s.marks, s.tokens.Load())
		if load.Excludes(s.marks, s.excludes/s.out.TokensPerChunk()) {
			s.over, s.to = true, s.Clock.Now()
		} else if !s.over {
			s.looks()
		}
	})
}

// joins sends more requests. The parameter had is the number already in flight. The first call
// restarts the requests in flight, because they began together. Each then begins at a different
// point of its answer, as in a long run: its prompt contains the answer up to that point.
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
	// Discard the prompts that were made in advance. The new requests begin in the middle of their
	// answers, so their prompts are different.
	s.ready, s.readyBytes, s.before = nil, 0, map[turnID]int{}
	for i := range more {
		id := turnID{metric.Filler, s.order}
		if l, nth := s.lotOf(id.phase, id.order); !l.workload.Output.Natural {
			// The first request begins nearest to its end, and each further request farther from
			// it. So the first requests end, and are replaced, while the server still reads the
			// prompts of the last. In the opposite order, the first requests would advance
			// meanwhile, until all were equally far from their end.
			s.before[id] = int(float64(l.lengths.At(id.phase, nth)) * (float64(more-i) - 0.5) / float64(more))
		}
		s.next(had + i)
	}
}

// restartQueued restarts queued requests whose prompts contain the beginning of their answer. It
// removes this beginning, because a server that still queues a request has not begun its answer.
func (s *saturation) restartQueued(waiting int) {
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

// listen returns a stream for the answer. It also counts the answer's tokens for the saturation.
func (s *saturation) listen(f *flight, a *client.Answer) client.Stream {
	c := &counted{Answer: a, all: &s.tokens}
	s.answers[f] = c
	return c
}

// ended handles the end of a request, and sends the next one.
func (s *saturation) ended(f *flight) {
	if s.answers[f] == nil {
		return // the request was restarted, and another took its place
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

// targetSpeed returns the speed, in tok/s, at which a saturation stops looking for more. It is
// twice the highest speed that the plan asks for; 0 if unknown.
func targetSpeed(w *plan.Workload) float64 {
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
