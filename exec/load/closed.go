package load

import (
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Backoff is how long a slot waits after a warm-up or filler request that
// failed. A measured one is followed at once, as the plan asks; those that
// only keep the load up must not storm a server that refuses them.
const Backoff = 100 * time.Millisecond

// Closed is one round of a closed loop: Slots requests in flight.
type Closed struct {
	Slots   int           // at least 1
	Due     int           // measured requests; with For the least
	For     time.Duration // measured requests are started for so long; 0: until Due were
	Warmup  int           // warm-up requests, shared out over the slots
	Probes  int           // warm-up requests that were sent before: the first one's Order
	Fill    bool          // go on warming up until every slot has started: nothing is measured on the ramp
	Proven  bool          // requests completed at this level before: warm-up that fails holds nothing up
	Stagger time.Duration // between the first starts of two slots
	Pause   time.Duration // between a slot's answer and its next request
}

// AtOnce is how many slots begin at the same moment; 0: they come one after the other.
func (c Closed) AtOnce() int {
	if c.Stagger > 0 {
		return 0
	}
	return c.Slots
}

// First is when a slot starts first, from the round's beginning.
func (c Closed) First(slot int) time.Duration { return time.Duration(slot) * c.Stagger }

// Turn is one request of a slot.
type Turn struct {
	Slot  int
	Phase metric.Phase
	Order int // of start, within the phase
}

// Decision is what a slot is to do.
type Decision int

const (
	// Send the turn.
	Send Decision = iota
	// Hold: ask again after the next Ended or Send of any slot.
	Hold
	// Rest: the slot has nothing more to do in this round.
	Rest
)

// Loop is the state of a round of a closed loop.
type Loop struct {
	closed Closed
	slots  []slotState

	closing                                      bool // no more measured requests are started than are due
	startedSlots                                 int
	warmFine                                     int // warm-up requests that completed
	warmFailed                                   int
	warmOrder, measuredOrder, fillerOrder, ended int
}

type slotState struct {
	started bool
	failed  bool // its last request
	warm    int  // warm-up requests still to send
}

// Begin returns the state at the beginning of a round.
func (c Closed) Begin() *Loop {
	l := &Loop{closed: c, slots: make([]slotState, c.Slots), warmOrder: c.Probes, closing: c.For == 0}
	for slot, share := range Split(c.Warmup, c.Slots) {
		l.slots[slot].warm = share
	}
	return l
}

// Next decides what slot does now that it is free and its time has come.
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
			return Turn{}, Hold // its first warm-up request was another slot's
		}
		// Until one comes through, or enough did not: Doomed.
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

// Ended records that a turn ended, and returns after how long its slot is due again.
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

// Doomed says that nothing completes at this level: measuring would only add as
// many failures as are due. It takes ColdFailures failed warm-up requests to say
// so; a server that fails now and then is to be measured.
func (l *Loop) Doomed() bool {
	return !l.closed.Proven && l.closed.Warmup > 0 && l.warmFine == 0 && l.warmFailed >= ColdFailures(l.closed.Slots)
}

// ColdFailures is how many warm-up requests of a level of n must fail, and none
// complete, before the level is given up: ten, or two for each slot.
func ColdFailures(n int) int { return max(10, 2*n) }

// Close says that a round's time For is over, since its first measured request was
// sent. Those that were started are waited for.
func (l *Loop) Close() {
	l.closing = true
	l.closed.Due = max(l.closed.Due, l.measuredOrder)
}

// Due is how many measured requests the round has; of one with a time For
// known once it is closed.
func (l *Loop) Due() int { return l.closed.Due }

// Over says that every measured request has ended.
func (l *Loop) Over() bool { return l.closing && l.ended >= l.closed.Due }
