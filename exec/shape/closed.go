package shape

import (
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

var closedLoops = &Kind{
	New: func(e Env) Shape {
		if e.Case.Level.Batches {
			return newBatches(e)
		}
		return newClosed(e, cycleOf(e.Case, e.due(), e.Each))
	},
	Takes:   func(c Case, due int, each time.Duration) time.Duration { return cycleOf(c, due, each).takes(each) },
	Warmups: func(c Case) int { return ramps(c) * cycleOf(c, 0, 0).warmup },
}

func ramps(c Case) int {
	if c.Level.Batches {
		return 1
	}
	return max(c.Level.Rounds, 1)
}

// cycle describes one unit of a closed loop with a number of slots:
//
//  1. The slots start one after another, stagger apart, each with a warm-up request. Slots that
//     start together would also prefill together, which changes TTFT by half or more.
//  2. Once all slots are busy, each new request is a measured request, until the number of requests
//     due have started.
//  3. Then slots that become free send filler requests. So the last measured request meets the same
//     load as the first.
//  4. When the last measured request has ended, the fillers are cancelled. They are never judged,
//     and an engine stops a cancelled request within one step. To wait for their end would cost each
//     unit the duration of one request.
//
// So every measured request sees all slots busy from its start to its end.
type cycle struct {
	slots   int           // at least 1
	due     int           // number of measured requests, or the least number if lasts is set
	lasts   time.Duration // time in which measured requests start; 0 if due ends the unit
	warmup  int           // warm-up requests, divided among the slots
	fill    bool          // warm up until every slot has started; no measured request in the ramp
	stagger time.Duration // time between the first starts of consecutive slots
	pause   time.Duration // time between a slot's answer and its next request
}

// cycleOf returns a unit of n measured requests. each is the mean duration of a request; 0 if not
// known.
func cycleOf(c Case, n int, each time.Duration) cycle {
	out := cycle{slots: c.Level.N, due: n, lasts: c.Level.RoundTime(), warmup: c.Load.Warmup, stagger: c.Load.Stagger, pause: c.Load.Pause}
	if out.warmup == plan.WarmupAuto {
		out.warmup, out.fill = out.slots, true
	}
	if out.stagger == plan.StaggerAuto {
		out.stagger = out.spread(each)
	}
	return out
}

// spread returns the stagger that spreads the slots evenly over the duration of one request and its
// pause. It is 0 if the duration is 0, which means unknown.
func (c cycle) spread(each time.Duration) time.Duration {
	if each <= 0 || c.slots < 2 {
		return 0
	}
	return (each + c.pause) / time.Duration(c.slots)
}

// takes estimates how long the unit takes: the ramp, the warm-up and the measured requests. A
// duration of 0 means unknown; the result is then the unit's time.
func (c cycle) takes(each time.Duration) time.Duration {
	if each <= 0 {
		return c.lasts
	}
	waves := func(n int) time.Duration { return time.Duration((n + c.slots - 1) / c.slots) }
	return time.Duration(c.slots-1)*c.stagger + (each+c.pause)*(waves(c.warmup)+waves(c.requests(each)))
}

// requests estimates the number of measured requests. The parameter each is the time that each
// request takes; 0 if not known.
func (c cycle) requests(each time.Duration) int {
	if c.lasts == 0 || each <= 0 {
		return c.due
	}
	return max(c.due, c.slots*int(c.lasts/(each+c.pause)+1))
}

// closed runs one unit of a closed loop.
type closed struct {
	cycle
	single
	proven bool   // a request completed
	probe  volley // one request that shows how long a request takes
	warm   warmup // finishes a warm-up that the slots could not share evenly
	steps  queue  // before the slots start
	agenda agenda[int]
	held   []int // slots that wait before their next request
	state  []slot
	// orders counts the requests that the slots have sent in each phase.
	orders         map[metric.Phase]int
	started, ended int           // slots that have started; measured requests that have ended
	failed         int           // warm-up requests that failed
	failure        string        // of the last of them
	closes         time.Duration // end of the time in which measured requests start; 0 if not known
	read           bool          // the window began
	whole          time.Duration // when the last slot started
	// more reports whether another measured request is to be sent now.
	more  func(now time.Duration) bool
	leave leaving
}

// slot is the state of a slot.
type slot struct {
	started, failed bool // failed: its last request
	warm            int  // warm-up requests that it must still send
}

func newClosed(e Env, of cycle) *closed {
	c := &closed{cycle: of, proven: e.Proven, state: make([]slot, of.slots), orders: map[metric.Phase]int{}, leave: newLeaving(&e)}
	c.more = func(time.Duration) bool { return c.orders[metric.Measured] < c.due || c.lasts > 0 }
	first := 0
	if e.Load.Stagger == plan.StaggerAuto && c.stagger == 0 && c.slots > 1 && c.warmup > 0 {
		// The stagger depends on the duration of a request. It is not known yet, so measure one
		// request first.
		c.probe = volley{phase: metric.Warmup, n: 1}
		first = 1
		if !c.fill {
			c.warmup--
		}
	}
	if rest := c.warmup % c.slots; !c.fill && rest > 0 {
		// Finish the warm-up first. Otherwise some slots would send warm-up requests while other
		// slots send measured requests.
		c.warm = newWarmup(&e, first, rest)
		first, c.warmup = first+rest, c.warmup-rest
	}
	c.orders[metric.Warmup] = first
	c.steps = queue{{Do: Prepare, Prompts: []Prompts{
		{Phase: metric.Warmup, From: first, N: c.warmup}, {Phase: metric.Measured, N: c.requests(e.Each)},
		{Phase: metric.Filler, N: c.slots},
		{Phase: metric.Left, N: c.leave.of(e.due())},
	}}, {Do: Begin}}
	for i, share := range load.Split(c.warmup, c.slots) {
		c.state[i].warm = share
	}
	return c
}

func (c *closed) Next(now time.Duration) Step {
	if s, ok := c.probe.next(now); ok {
		return s
	}
	if s, ok := c.warm.next(now); ok {
		return s
	}
	if s, ok := c.steps.next(); ok {
		if s.Do == Prepare && c.stagger == 0 {
			s.Connections = c.slots // they start at the same moment
		}
		return s
	}
	if c.agenda.entries == nil {
		for i := range c.state {
			c.agenda.add(now+time.Duration(i)*c.stagger, i)
		}
	}
	return c.goOn(now)
}

func (c *closed) goOn(now time.Duration) Step {
	if c.closes > 0 && now >= c.closes {
		c.lasts, c.closes, c.due = 0, 0, c.all()
	}
	switch {
	case !c.proven && c.warmup > 0 && c.failed >= load.ColdFailures(c.slots):
		return giveUp(c.failure)
	case c.lasts == 0 && c.ended >= c.due:
		return Step{Do: Over}
	case !c.read && c.started == c.slots && c.orders[metric.Measured] > 0:
		c.read = true
		return Step{Do: Read}
	}
	for {
		i, at, ok := c.agenda.due(now)
		if !ok {
			return Step{Do: Wait, At: soonest(c.agenda.next(), c.closes)}
		}
		if phase, ok := c.turn(&c.state[i], now); ok {
			return c.send(Due{Ticket: load.Ticket{Slot: i, Phase: phase}}, at, now)
		}
		c.held = append(c.held, i)
	}
}

// turn decides which request a slot sends now. ok is false if it must wait until another slot has
// sent a request or got its answer.
func (c *closed) turn(s *slot, now time.Duration) (phase metric.Phase, ok bool) {
	if !s.started {
		s.started = true
		if c.started++; c.started == c.slots {
			c.whole = now
		}
	}
	switch {
	case s.warm > 0:
		s.warm--
		return metric.Warmup, true
	case c.fill && c.started < c.slots:
		return metric.Warmup, !s.failed
	case !c.proven && c.failed > 0:
		// Warm up until one request completes. A slot that did not fail waits for one that did.
		return metric.Warmup, s.failed
	case c.leave.due():
		return metric.Left, true
	case c.more(now):
		c.leave.stays()
		return metric.Measured, true
	}
	return metric.Filler, true
}

func (c *closed) send(t Due, at, now time.Duration) Step {
	t.Order = c.orders[t.Phase]
	c.orders[t.Phase]++
	if t.Phase == metric.Left {
		t = c.leave.turn(t.Slot)
	}
	c.ask(now)
	out := Step{Do: Send, Due: t, At: at}
	if t.Phase == metric.Filler || t.Phase == metric.Measured && (t.Order+c.slots < c.due || c.lasts > 0) {
		out.Ahead = t.later(c.slots)
	}
	if t.Phase == metric.Measured && t.Order == 0 && c.lasts > 0 {
		c.closes = now + c.lasts
	}
	return out
}

func (c *closed) ask(now time.Duration) {
	for _, i := range c.held {
		c.agenda.add(now, i)
	}
	c.held = nil
}

func (c *closed) Ended(now time.Duration, t Due, s *metric.Sample) {
	failed := !s.Completed()
	c.proven = c.proven || !failed
	switch {
	case c.agenda.entries != nil:
	case c.warm.sent > 0:
		c.warm.over(s)
		return
	default:
		if c.probe.ended++; !failed {
			c.warm.proven = true
			c.stagger = c.spread(s.End - s.Sent)
		}
		return
	}
	after := c.pause
	switch {
	case t.Phase == metric.Measured:
		c.ended++
	case failed && !s.Canceled():
		after = max(after, load.Backoff)
	}
	if failed && t.Phase == metric.Warmup {
		c.failed, c.failure = c.failed+1, s.Failure.Message
	}
	c.state[t.Slot].failed = failed
	c.agenda.add(s.End+max(after, s.RetryAfter), t.Slot)
	c.ask(now)
}

// all returns the number of measured requests. A unit that ends by its time may still get more.
func (c *closed) all() int { return max(c.due, c.orders[metric.Measured]) }

func (c *closed) Units(_ time.Duration, samples []*metric.Sample) []Unit {
	return []Unit{{Window: load.ClosedWindow(samples, c.slots, c.pause), Due: c.all(), Open: c.closes > 0}}
}
