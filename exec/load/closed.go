package load

import (
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Backoff is how long a slot waits after a failed warm-up or filler request. These requests keep up
// the load, and must not flood a server that refuses them. After a failed measured request the slot
// goes on at once, as the plan asks.
const Backoff = 100 * time.Millisecond

// Closed describes one round of a closed loop with Slots requests in flight.
type Closed struct {
	Slots   int           // at least 1
	Due     int           // number of measured requests, or the least number if For is set
	For     time.Duration // time in which measured requests start; 0 if Due ends the round
	Warmup  int           // warm-up requests, divided among the slots
	Probes  int           // number of warm-up requests before the round; Order counts on from it
	Fill    bool          // warm up until every slot has started; no measured request in the ramp
	Proven  bool          // the level is known to work, so a failed warm-up does not end the round
	Stagger time.Duration // time between the first starts of consecutive slots
	Pause   time.Duration // time between a slot's answer and its next request
}

// AtOnce returns the number of slots that start at the same moment. It returns 0 if slots start one
// after another.
func (c Closed) AtOnce() int {
	if c.Stagger > 0 {
		return 0
	}
	return c.Slots
}

// First returns the time from the beginning of the round to the first start of a slot.
func (c Closed) First(slot int) time.Duration { return time.Duration(slot) * c.Stagger }

// Turn is one request of a slot.
type Turn struct {
	Slot  int
	Phase metric.Phase
	Order int // number of the request in its phase, in order of start
}

// Decision tells a slot what to do next.
type Decision int

const (
	// Send the turn.
	Send Decision = iota
	// Hold means that the slot sends nothing yet. Ask again after any slot has sent a request or
	// got its answer.
	Hold
	// Rest means that the slot sends no more requests in this round.
	Rest
)

// Loop is the state of one round of a closed loop.
type Loop struct {
	closed Closed
	slots  []slotState

	closing                                      bool // no further measured request may start
	startedSlots                                 int
	warmFine                                     int // warm-up requests that completed
	warmFailed                                   int
	warmOrder, measuredOrder, fillerOrder, ended int
}

type slotState struct {
	started bool
	failed  bool // its last request
	warm    int  // number of warm-up requests that the slot must still send
}

// Begin returns the state at the beginning of a round.
func (c Closed) Begin() *Loop {
	l := &Loop{closed: c, slots: make([]slotState, c.Slots), warmOrder: c.Probes, closing: c.For == 0}
	for slot, share := range Split(c.Warmup, c.Slots) {
		l.slots[slot].warm = share
	}
	return l
}

// Next decides what a slot does when its next turn is due.
func (l *Loop) Next(slot int) (Turn, Decision) {
	s := &l.slots[slot]
	if l.Over() {
		return Turn{}, Rest
	}
	if !s.started {
		s.started = true
		l.startedSlots++
	}
	switch {
	case s.warm > 0:
		s.warm--
		return l.turn(slot, metric.Warmup, &l.warmOrder)
	case l.closed.Fill && l.startedSlots < l.closed.Slots:
		if s.failed {
			return Turn{}, Hold
		}
		return l.turn(slot, metric.Warmup, &l.warmOrder)
	case !l.closed.Proven && l.warmFailed > 0 && l.warmFine == 0:
		if !s.failed {
			return Turn{}, Hold // another slot, which failed, repeats the warm-up
		}
		// Warm up until one request completes, or until Doomed gives the level up.
		return l.turn(slot, metric.Warmup, &l.warmOrder)
	case l.measuredOrder < l.closed.Due || !l.closing:
		return l.turn(slot, metric.Measured, &l.measuredOrder)
	}
	return l.turn(slot, metric.Filler, &l.fillerOrder)
}

func (l *Loop) turn(slot int, phase metric.Phase, order *int) (Turn, Decision) {
	t := Turn{Slot: slot, Phase: phase, Order: *order}
	*order++
	return t, Send
}

// Ended records the end of a turn. It returns the time until the slot's next turn is due.
func (l *Loop) Ended(t Turn, failed bool) (after time.Duration) {
	l.slots[t.Slot].failed = failed
	switch t.Phase {
	case metric.Measured:
		l.ended++
		return l.closed.Pause
	case metric.Warmup:
		if failed {
			l.warmFailed++
		} else {
			l.warmFine++
		}
	}
	if failed {
		return max(l.closed.Pause, Backoff)
	}
	return l.closed.Pause
}

// Doomed reports whether to give up the level. This is so if ColdFailures warm-up requests have
// failed, and none has completed. A server that fails only sometimes is measured.
func (l *Loop) Doomed() bool {
	return !l.closed.Proven && l.closed.Warmup > 0 && l.warmFine == 0 && l.warmFailed >= ColdFailures(l.closed.Slots)
}

// ColdFailures is the number of warm-up requests that may fail before a level is given up. It is 10
// or 2·n, whichever is larger, for n requests in flight. It applies only while no warm-up request
// has completed.
func ColdFailures(n int) int { return max(10, 2*n) }

// Close ends the sending of measured requests. Call it when the time For has passed since the first
// measured request. The round then waits for the requests in flight.
func (l *Loop) Close() {
	l.closing = true
	l.closed.Due = l.Due()
}

// Due is the number of measured requests of the round. Before Close, a round that ends by time may
// still get more.
func (l *Loop) Due() int { return max(l.closed.Due, l.measuredOrder) }

// Measured is the number of measured requests so far.
func (l *Loop) Measured() int { return l.measuredOrder }

// Over reports whether every measured request has ended.
func (l *Loop) Over() bool { return l.closing && l.ended >= l.closed.Due }
