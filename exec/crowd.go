package exec

import (
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
)

// crowd is one window of a load of users. Each user has one conversation after another, and thinks
// before every message.
//
// First the users join one after another, then the window warms up, then it measures. It measures
// the requests that are due in this last part. The users continue until the last measured request
// has ended. Equal parts of the measured time are the rounds of the level.
type crowd struct {
	*round
	parts  int
	from   time.Duration // of the window
	to     time.Duration
	begun  map[metric.Phase]int // conversations
	orders map[seat]int         // requests
	// health holds the load generator's health in each finished part of the window.
	health  []metric.Health
	pending int // measured requests in flight
	over    bool
	warm    struct{ completed, failed int }
	stops   map[int]func() bool // for each user, by index: stops the timer for the next event
	edges   []func() bool
}

// seat is a part of the window and a phase. Requests of one seat are numbered in order.
type seat struct {
	part  int
	phase metric.Phase
}

func newCrowd(rd *round, parts int) *crowd {
	return &crowd{round: rd, parts: parts, begun: map[metric.Phase]int{}, orders: map[seat]int{}, stops: map[int]func() bool{}}
}

// people runs the window of a load of users.
func (rd *round) people(health *func() metric.Health) {
	c := rd.window.(*crowd)
	rd.prepare(metric.Warmup, 0, rd.level.N)
	rd.prepare(metric.Measured, 0, rd.level.N)
	come := float64(rd.level.N) / rd.Load.People.RampUp.Seconds() // a second
	rd.connect(min(expected(come, rd.durations[rd.Workload]), rd.level.N))
	if !rd.check() || rd.halted() {
		return
	}
	rd.watch(health)
	rd.look()
	begin := rd.Clock.Now()
	c.from = begin + rd.Workload.Settling(rd.Load)
	c.to = c.from + time.Duration(c.parts)*rd.out.Time
	for i := range c.parts + 1 {
		c.edges = append(c.edges, rd.Clock.Timer(c.from+time.Duration(i)*rd.out.Time, func() { c.edge(i, health) }))
	}
	rd.ended = c.took
	for user := range rd.level.N {
		at := begin + rd.Load.People.RampUp*time.Duration(user)/time.Duration(rd.level.N)
		c.stops[user] = rd.Clock.Timer(at, func() { c.next(user, at) })
	}
	rd.runUntil(func() bool { return c.over && c.pending == 0 || rd.halted() })
	rd.ended = nil
	for _, stop := range c.stops {
		stop()
	}
	for _, stop := range c.edges {
		stop()
	}
	c.counts()
}

// edge begins part i of the window. If i > 0, it first ends part i−1.
func (c *crowd) edge(i int, health *func() metric.Health) {
	if i > 0 {
		c.health = append(c.health, (*health)())
	}
	c.watch(health)
	if c.inside != nil {
		c.inside.Read()
	}
	c.over = i == c.parts
}

// phase returns the phase of a request that is due at the time at.
func (c *crowd) phase(at time.Duration) metric.Phase {
	switch {
	case at < c.from:
		return metric.Warmup
	case at < c.to:
		return metric.Measured
	}
	return metric.Filler
}

// part returns the index of the window's part that contains the time at. A time outside the window
// gives the first or the last part.
func (c *crowd) part(at time.Duration) int {
	return min(max(int((at-c.from)/max(c.out.Time, 1)), 0), c.parts-1)
}

// next begins the next conversation of a user, and prepares the prompts of later conversations.
func (c *crowd) next(user int, at time.Duration) {
	if c.halted() {
		return
	}
	phase := c.phase(at)
	t := c.meets(phase, c.begun[phase], user)
	c.begun[phase]++
	c.turnOf(t, phase, at)
	c.Clock.Post(func() {
		if !c.halted() && !c.over {
			c.prepare(phase, c.begun[phase]+c.level.N, 1)
		}
	})
}

// turnOf sends the request for the current turn of a conversation.
func (c *crowd) turnOf(t *talk, phase metric.Phase, at time.Duration) {
	if phase == metric.Measured {
		c.pending++
	}
	c.say(t, phase, at)
}

// took handles the end of a user's request. After it the user thinks, and then sends the next turn
// or begins a new conversation.
func (c *crowd) took(f *flight) {
	s, t := f.sample, f.talk
	if f.turn.Phase == metric.Measured {
		c.pending--
	}
	if f.turn.Phase == metric.Warmup && !s.Completed() {
		c.warm.failed++
	} else {
		c.warm.completed++
	}
	if c.warm.completed == 0 && c.warm.failed >= load.ColdFailures(c.level.N) {
		c.cut(nothingCompletes + c.lastWarmup)
	}
	if c.halted() {
		return
	}
	after := c.thinks(t)
	if !s.Completed() {
		after = max(after, load.Backoff, s.RetryAfter)
	}
	at := s.End + after
	on := c.goesOn(f)
	c.misses(f)
	then := func() {
		switch {
		case c.halted():
		case on:
			c.turnOf(t, c.phase(at), at)
		default:
			c.next(t.slot, at)
		}
	}
	c.stops[t.slot] = c.Clock.Timer(max(at, c.Clock.Now()), then)
}

// counts sets the number of measured requests: the ended requests and the requests in flight.
func (c *crowd) counts() {
	due := 0
	for _, s := range c.out.Samples {
		if s.Phase == metric.Measured {
			due++
		}
	}
	for _, f := range c.inFlight() {
		if f.turn.Phase == metric.Measured {
			due++
		}
	}
	if !c.over {
		due++ // the round was cut short, so at least one more request was due
	}
	of := [2]string{c.level.Server, c.level.Workload}
	c.sent[of] += c.begun[metric.Measured] - c.out.Due
	c.out.Due = due
}

// place sets the round to which a sample belongs, and its number within the round and its phase.
func (c *crowd) place(s *metric.Sample) {
	s.FromDue = true
	part := 0
	switch s.Phase {
	case metric.Measured:
		part = c.part(s.Scheduled)
	case metric.Filler:
		part = c.parts - 1
	}
	at := seat{part, s.Phase}
	s.Round, s.Order = s.Round+part, c.orders[at]
	c.orders[at]++
}

// unfinished implements listening.
func (c *crowd) unfinished(*metric.Sample) {}

// span returns the part of the measured window that is over by now.
func (c *crowd) span() load.Window {
	now := c.Clock.Now()
	return load.Window{Start: min(c.from, now), End: min(c.to, now), Busy: 1}
}

// rounds divides the finished window into the rounds of the level.
func (c *crowd) rounds() []*metric.Round {
	whole := c.out
	if len(c.health) == 0 {
		return []*metric.Round{whole} // no round ended, so keep all samples in one
	}
	c.health[len(c.health)-1].Drain(whole.Health)
	var out []*metric.Round
	for i := range len(c.health) {
		r := *whole
		r.Index, r.Health, r.Samples, r.Start, r.End, r.Due = whole.Index+i, c.health[i], nil, 0, 0, 0
		r.WindowStart, r.WindowEnd = c.from+time.Duration(i)*whole.Time, c.from+time.Duration(i+1)*whole.Time
		ended := 0
		for _, s := range whole.Samples {
			if s.Round != r.Index {
				continue
			}
			if r.Samples = append(r.Samples, s); s.Phase != metric.Measured {
				continue
			}
			if r.Due == 0 || s.Scheduled < r.Start {
				r.Start = s.Scheduled
			}
			r.Due++
			r.End = max(r.End, s.End)
			if !s.Canceled() {
				ended++
			}
		}
		if r.Complete = ended == r.Due && c.over; r.Complete {
			r.Stopped = ""
		}
		if c.inside != nil {
			r.Telemetry = c.toldOver(r.WindowStart, r.WindowEnd, whole.WindowStart, whole.WindowEnd)
		}
		out = append(out, &r)
	}
	return out
}
