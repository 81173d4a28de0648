package shape

import (
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

var closedLoops = &Kind{
	New: newClosed,
	Takes: func(c Case, due []int, each time.Duration) (sum time.Duration) {
		for _, n := range due {
			sum += closedUnit(c, n, each).Time(each)
		}
		return sum
	},
	Requests: byTime,
	Warmups:  func(c Case) int { return max(c.Level.Rounds, 1) * closedUnit(c, 0, 0).Warmup },
}

// byTime estimates the number of measured requests of units that may end by their time.
func byTime(c Case, due []int, each time.Duration) int {
	sum := 0
	for _, n := range due {
		sum += closedUnit(c, n, each).Requests(each)
	}
	return sum
}

// closedUnit describes a unit of n measured requests of a closed loop. each is the mean duration of
// a request; 0 if not known.
func closedUnit(c Case, n int, each time.Duration) load.Closed {
	cl := load.Closed{
		Slots: c.Level.N, Due: n, For: c.Level.RoundTime(), Warmup: c.Load.Warmup, Stagger: c.Load.Stagger, Pause: c.Load.Pause,
	}
	if cl.Warmup == plan.WarmupAuto {
		cl.Warmup, cl.Fill = cl.Slots, true
	}
	if cl.Stagger == plan.StaggerAuto {
		cl.Stagger = load.Stagger(each, cl.Pause, cl.Slots)
	}
	return cl
}

// closed keeps a number of requests in flight, by the rules of package load.
type closed struct {
	Env
	plan    load.Closed
	probe   volley // one request that shows how long a request takes
	warm    warmup // finishes a warm-up that the slots could not share evenly
	loop    *load.Loop
	began   bool // the load of the slots
	slots   agenda[int]
	held    []int         // slots that wait before their next request
	closes  time.Duration // end of the time in which measured requests start; 0 if not known
	started []bool        // for each slot, whether it has sent a request; nil before the load of the slots begins
	read    bool          // the window began
	failure string        // of the last warm-up request that failed
}

func newClosed(e Env) Shape {
	c := &closed{Env: e, plan: closedUnit(e.Case, e.due(), e.Each)}
	p := &c.plan
	if e.Load.Stagger == plan.StaggerAuto && p.Stagger == 0 && p.Slots > 1 && p.Warmup > 0 {
		// The stagger depends on the duration of a request. It is not known yet, so measure one
		// request first.
		c.probe = volley{phase: metric.Warmup, n: 1}
		p.Probes = 1
		if !p.Fill {
			p.Warmup--
		}
	}
	if rest := p.Warmup % p.Slots; !p.Fill && rest > 0 {
		// Finish the warm-up first. Otherwise some slots would send warm-up requests while other
		// slots send measured requests.
		c.warm = newWarmup(&e, p.Probes, rest)
		p.Probes, p.Warmup = p.Probes+rest, p.Warmup-rest
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
	switch {
	case c.loop == nil:
		c.plan.Proven = c.Proven
		c.loop = c.plan.Begin()
		return Step{Do: Prepare, Connections: c.plan.AtOnce(), Prompts: []Prompts{
			{metric.Warmup, c.plan.Probes, c.plan.Warmup}, {metric.Measured, 0, c.plan.Requests(c.Each)}, {metric.Filler, 0, c.plan.Slots},
		}}
	case !c.began:
		c.began = true
		return Step{Do: Begin}
	case c.started == nil:
		c.started = make([]bool, c.plan.Slots)
		for slot := range c.started {
			c.slots.add(now+c.plan.First(slot), slot)
		}
	}
	return c.goOn(now)
}

// goOn returns the next step of the slots.
func (c *closed) goOn(now time.Duration) Step {
	if c.closes > 0 && now >= c.closes {
		c.closes = 0
		c.loop.Close()
	}
	switch {
	case c.loop.Doomed():
		return giveUp(c.failure)
	case c.loop.Over():
		return Step{Do: Over}
	case !c.read && c.sentAll() && c.loop.Measured() > 0:
		c.read = true
		return Step{Do: Read}
	}
	for {
		slot, at, ok := c.slots.due(now)
		if !ok {
			return Step{Do: Wait, At: soonest(c.slots.next(), c.closes)}
		}
		switch t, decision := c.loop.Next(slot); decision {
		case load.Send:
			return c.send(t, at, now)
		case load.Hold:
			c.held = append(c.held, slot)
		}
	}
}

func (c *closed) send(t load.Turn, at, now time.Duration) Step {
	c.ask(now)
	c.started[t.Slot] = true
	out := Step{Do: Send, Turn: Turn{Turn: t}, At: at}
	later := t.Order + c.plan.Slots
	switch t.Phase {
	case metric.Measured:
		if t.Order == 0 && c.plan.For > 0 {
			c.closes = now + c.plan.For
		}
		if later < c.plan.Due || c.plan.For > 0 {
			out.Ahead = c.plan.Slots
		}
	case metric.Filler:
		out.Ahead = c.plan.Slots
	}
	return out
}

// ask lets the slots go on that were waiting.
func (c *closed) ask(now time.Duration) {
	for _, slot := range c.held {
		c.slots.add(now, slot)
	}
	c.held = nil
}

func (c *closed) sentAll() bool {
	for _, started := range c.started {
		if !started {
			return false
		}
	}
	return true
}

func (c *closed) Ended(now time.Duration, t Turn, s *metric.Sample) {
	if s.Failure == nil {
		c.Proven, c.warm.proven = true, true
	} else if t.Phase == metric.Warmup {
		c.failure = s.Failure.Message
	}
	switch {
	case c.loop != nil:
		c.slots.add(s.End+max(c.loop.Ended(t.Turn, !s.Completed()), s.RetryAfter), t.Slot)
		c.ask(now)
	case c.warm.sent > 0:
		c.warm.over(s)
	default:
		c.probe.ended++
		if s.Completed() {
			c.plan.Stagger = load.Stagger(s.End-s.Sent, c.plan.Pause, c.plan.Slots)
		}
	}
}

func (c *closed) Place(t Turn, _ time.Duration) (unit, order int) { return 0, t.Order }

func (c *closed) Units(_ time.Duration, samples []*metric.Sample) []Unit {
	due := c.plan.Due
	if c.loop != nil {
		due = c.loop.Due()
	}
	return []Unit{{Window: load.ClosedWindow(samples, c.plan.Slots, c.plan.Pause), Due: due, Open: c.closes > 0}}
}
