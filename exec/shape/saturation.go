package shape

import (
	"maps"
	"slices"
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Saturation describes a load without measured requests. It finds the highest speed that a server
// reaches, in tokens per second. While it measures, the queue of the server is never empty.
type Saturation struct {
	Most int // largest number of requests in flight
	// Enough is a speed, in tok/s, at which it stops looking for more; 0 if there is none.
	Enough float64
	// Excludes is a speed, in tok/s. The saturation ends early once its own speed is certainly
	// another. 0 means that it does not end early.
	Excludes float64
	// Length returns the length of the answer to a filler request; 0 if the model chooses it.
	Length func(order int) int
}

// mostSaturating is the longest warm-up of a saturation. Normally the warm-up takes twice as long as
// the first request.
const mostSaturating = time.Minute

// saturation runs a Saturation.
type saturation struct {
	Saturation
	single
	grows    load.Saturation
	steps    queue
	begun    time.Duration
	from, to time.Duration // start and end of the measuring window
	first    bool          // a request completed
	looks    agenda[bool]  // looks at the requests in flight; true: the first requests have warmed up
	next     agenda[start]
	order    int // requests so far
	tokens   Tokens
	flying   map[int]Due  // by order
	marks    []int64      // tokens at the window's beginning and after each second
	ended    metric.Round // the requests that have ended
}

// start is a request that a slot is to start. Its prompt contains this share of its answer.
type start struct {
	slot  int
	share float64
}

// New returns the shape with n requests in flight at first.
func (s Saturation) New(n int) Shape {
	return &saturation{
		Saturation: s, grows: load.Saturation{N: n, Most: s.Most, Enough: s.Enough}, flying: map[int]Due{},
		steps: queue{{Do: Prepare, Prompts: []Prompts{{Phase: metric.Filler, N: n}}}, {Do: Begin}},
	}
}

func (s *saturation) Next(now time.Duration) Step {
	if s.begun == 0 && len(s.steps) == 0 {
		s.begun = now
		s.looks.add(now+mostSaturating, true)
		s.looks.add(now+time.Second, false)
		for slot := range s.grows.N {
			s.next.add(now, start{slot: slot})
		}
	}
	for {
		if step, ok := s.steps.next(); ok {
			return step
		}
		if s.to > 0 && now >= s.to {
			return Step{Do: Over}
		}
		if warm, _, ok := s.looks.due(now); ok {
			s.look(now, warm)
		} else if x, _, ok := s.next.due(now); ok {
			return s.send(x, now)
		} else {
			return Step{Do: Wait, At: soonest(s.looks.next(), s.next.next(), s.to)}
		}
	}
}

func (s *saturation) send(x start, now time.Duration) Step {
	t := Due{Ticket: load.Ticket{Slot: x.slot, Phase: metric.Filler, Order: s.order}, Ear: &Ear{all: &s.tokens}}
	if x.share > 0 {
		t.Said = int(float64(s.Length(s.order)) * x.share)
	}
	s.order++
	s.flying[t.Order] = t
	return Step{Do: Send, Due: t, At: now, Ahead: t.later(s.grows.N + 1)}
}

// look checks whether the measuring window can begin. If not, it sends more requests. In the window
// it ends the window early, if the speed is certainly not the excluded one.
func (s *saturation) look(now time.Duration, warm bool) {
	if s.from > 0 {
		if s.Excludes == 0 || warm {
			return
		}
		s.marks = append(s.marks, s.tokens.n.Load())
		if load.Excludes(s.marks, s.Excludes/s.ended.TokensPerChunk()) {
			s.to = now
		}
		s.looks.add(now+time.Second, false)
		return
	}
	waiting := 0
	for _, t := range s.flying {
		if !t.Ear.began.Load() {
			waiting++
		}
	}
	had := s.grows.N
	if !s.grows.Look(now-s.begun, waiting, s.tokens.n.Load(), warm) {
		s.joins(had, now)
		if !warm {
			s.looks.add(now+time.Second, false)
		}
		return
	}
	s.restartQueued(waiting)
	s.from, s.to = now, now+plan.Saturation
	s.looks = agenda[bool]{}
	s.steps = append(s.steps, Step{Do: Read})
	if s.Excludes > 0 {
		s.marks = []int64{s.tokens.n.Load()}
		s.looks.add(now+time.Second, false)
	}
}

// joins sends more requests. The parameter had is the number already in flight. The first call
// restarts the requests in flight, because they began together. Each then begins at a different
// point of its answer, as in a long run: its prompt contains the answer up to that point.
func (s *saturation) joins(had int, now time.Duration) {
	if s.grows.N == had {
		return
	}
	grow := Step{Do: Grow, N: s.grows.N}
	if s.grows.Anew {
		grow.Cancel = s.inFlight(func(Due) bool { return true })
		clear(s.flying)
		had = 0
	}
	s.steps = append(s.steps, grow)
	more := s.grows.N - had
	for i := range more {
		// The first request begins nearest to its end, and each further request farther from it. So
		// the first requests end, and are replaced, while the server still reads the prompts of the
		// last. In the opposite order, the first requests would advance meanwhile, until all were
		// equally far from their end.
		s.next.add(now, start{had + i, (float64(more-i) - 0.5) / float64(more)})
	}
}

// restartQueued restarts queued requests whose prompts contain the beginning of their answer. It
// removes this beginning, because a server that still queues a request has not begun its answer.
func (s *saturation) restartQueued(waiting int) {
	if s.grows.Queues(waiting) {
		queued := s.inFlight(func(t Due) bool { return t.Said > 0 && !t.Ear.began.Load() })
		s.steps = append(s.steps, Step{Do: Grow, N: s.grows.N, Cancel: queued})
	}
}

func (s *saturation) inFlight(meant func(Due) bool) []Due {
	var out []Due
	for _, order := range slices.Sorted(maps.Keys(s.flying)) {
		if t := s.flying[order]; meant(t) {
			out = append(out, t)
		}
	}
	return out
}

// Ended sends the next request of the slot.
func (s *saturation) Ended(now time.Duration, t Due, x *metric.Sample) {
	s.ended.Samples = append(s.ended.Samples, x)
	if _, ok := s.flying[t.Order]; !ok {
		return // the request was restarted, and another took its place
	}
	delete(s.flying, t.Order)
	if !x.Completed() {
		s.next.add(now+load.Backoff, start{slot: t.Slot})
		return
	}
	if !s.first {
		s.first = true
		s.looks.add(now+(now-s.begun), true)
	}
	s.next.add(now, start{slot: t.Slot})
}

func (s *saturation) Units(time.Duration, []*metric.Sample) []Unit {
	return []Unit{{Window: load.Window{Start: s.from, End: s.to, Busy: 1}}}
}

// Enough returns the speed, in tok/s, at which a saturation stops looking for more. It is
// twice the highest speed that the plan asks for; 0 if unknown.
func Enough(w *plan.Workload) float64 {
	rate := 0.0
	for _, level := range w.Levels() {
		rate = max(rate, level.Rate)
	}
	if c := w.Capacity; c != nil && c.Over == metric.OpenLoop {
		rate = max(rate, float64(c.UpTo)*plan.RateStep)
	}
	mean, _ := w.AnswerLength()
	return 2 * rate * mean
}
