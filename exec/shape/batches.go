package shape

import (
	"cmp"
	"math"
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
)

// Batches is one window of a closed loop, cut into batches by order of start. The slots start once.
// After the batches planned so far, fillers keep up the load, so more batches may be planned at any
// time. The driver ends the window.
type Batches struct {
	*closed
	steps   queue
	lasts   time.Duration // in which a batch starts requests; 0 if their number ends the batch
	planned []int         // number of measured requests of each batch
	begun   []batch
	over    int // leading batches whose requests have all ended
	seats   seats
	flying  map[int]time.Duration // start of the request in flight, by slot
}

// batch is a batch that has begun.
type batch struct {
	from, to    time.Duration // its first start, and the next start after its last one; to is 0 before
	due         int           // measured requests; 0 if the time ends the batch
	ends        time.Duration // end of its time
	sent, ended int
	last        time.Duration // end of the request that ended last
}

func newBatches(e Env) *Batches {
	of := cycleOf(e.Case, math.MaxInt, e.Each)
	of.lasts = 0
	b := &Batches{closed: newClosed(e, of), lasts: e.Case.Level.RoundTime(), seats: seats{}, flying: map[int]time.Duration{}}
	b.more = func(now time.Duration) bool { return b.current(now) != nil || len(b.begun) < len(b.planned) }
	prepare := &b.closed.steps[0]
	prepare.Prompts = []Prompts{prepare.Prompts[0], prepare.Prompts[2], prepare.Prompts[3]}
	b.Plan(e.Parts)
	for i, n := range e.Parts {
		prepare.Prompts = append(prepare.Prompts, Prompts{Phase: metric.Measured, N: n, Batch: i})
	}
	return b
}

// Plan adds batches with the given numbers of measured requests. If batches last for a time, only
// how many numbers there are matters.
func (b *Batches) Plan(sizes []int) { b.planned = append(b.planned, sizes...) }

// current returns the batch to which a measured request that starts now belongs; nil if that is a
// new batch.
func (b *Batches) current(now time.Duration) *batch {
	n := len(b.begun)
	if n == 0 {
		return nil
	}
	x := &b.begun[n-1]
	if b.lasts > 0 && now >= x.ends || b.lasts == 0 && x.sent >= x.due {
		return nil
	}
	return x
}

func (b *Batches) Next(now time.Duration) Step {
	if s, ok := b.steps.next(); ok {
		return s
	}
	s := b.closed.Next(now)
	if s.Do != Send {
		return s
	}
	b.flying[s.Due.Slot] = now
	x := b.current(now)
	if n := len(b.begun); x == nil && n > 0 && b.begun[n-1].to == 0 {
		b.begun[n-1].to = now
		if b.closes(); s.Due.Phase == metric.Filler { // no further batch reads where this one ends
			b.steps = append(b.steps, Step{Do: Read})
		}
	}
	if s.Due.Phase != metric.Measured {
		return s
	}
	if x == nil {
		x = b.begins(now)
	}
	s.Due.Batch, s.Due.Order = len(b.begun)-1, x.sent
	x.sent++
	s.Ahead = b.later(s.Due)
	return s
}

func (b *Batches) begins(now time.Duration) *batch {
	i := len(b.begun)
	x := batch{from: now, due: b.planned[i], ends: now + b.lasts}
	if b.lasts > 0 {
		x.due = 0
		if i > 0 && b.begun[i-1].ends+b.lasts > now {
			x.ends = b.begun[i-1].ends + b.lasts // without a gap
		}
	}
	b.begun = append(b.begun, x)
	b.steps = append(b.steps, Step{Do: Opens, N: i})
	return &b.begun[i]
}

// later returns the prompt of the request of one wave later; none if its batch is not known.
func (b *Batches) later(t Due) Prompts {
	batch, order := t.Batch, t.Order+b.slots
	for b.lasts == 0 && batch < len(b.planned) && order >= b.planned[batch] {
		order -= b.planned[batch]
		batch++
	}
	if batch >= len(b.planned) {
		return Prompts{}
	}
	return Prompts{Phase: t.Phase, From: order, N: 1, Batch: batch}
}

func (b *Batches) Ended(now time.Duration, t Due, s *metric.Sample) {
	b.closed.Ended(now, t, s)
	delete(b.flying, t.Slot)
	if t.Phase == metric.Measured {
		x := &b.begun[t.Batch]
		x.ended++
		x.last = max(x.last, s.End)
		b.closes()
	}
}

// closes closes the batches that can be judged, in their order.
func (b *Batches) closes() {
	for b.over < len(b.begun) && b.begun[b.over].to > 0 && b.begun[b.over].ended == b.begun[b.over].sent {
		b.steps = append(b.steps, Step{Do: Closes, N: b.over})
		b.over++
	}
}

// Place implements Shape. Warm-up requests belong to the first batch, and a filler to the last one
// before it.
func (b *Batches) Place(t Due, _ time.Duration) (unit, order int) {
	switch t.Phase {
	case metric.Measured:
		return t.Batch, t.Order
	case metric.Filler, metric.Left:
		unit = max(len(b.begun)-1, 0)
	}
	return unit, b.seats.next(unit, t.Phase)
}

// Units returns the batches that have begun. The window of a batch ends when the next one begins.
func (b *Batches) Units(now time.Duration, samples []*metric.Sample) []Unit {
	if len(b.begun) == 0 {
		return []Unit{{Window: load.Window{Start: now, End: now}, Due: b.planned[0], Open: true}}
	}
	var out []Unit
	for i := range b.begun {
		out = append(out, b.Unit(i, now, samples))
	}
	return out
}

// Unit returns one of the batches that have begun.
func (b *Batches) Unit(i int, now time.Duration, samples []*metric.Sample) Unit {
	x := b.begun[i]
	w := load.Window{Start: x.from, End: cmp.Or(x.to, x.last, x.from)}
	if i == 0 {
		w.Start = min(max(w.Start, b.whole), w.End)
	}
	samples = samples[:len(samples):len(samples)]
	for slot, start := range b.flying { // busy up to now
		samples = append(samples, &metric.Sample{Slot: slot, Sent: start, End: now})
	}
	return Unit{Window: w.WithBusy(samples, b.slots, b.pause), Due: max(x.due, x.sent), Open: i >= b.over}
}
