package shape

import (
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
)

var people = &Kind{
	New:      newUsers,
	Windowed: true,
	Takes:    func(c Case, _ int, _ time.Duration) time.Duration { return c.Level.RoundTime() },
	Around:   func(c Case, each time.Duration) time.Duration { return c.Workload.Settling(c.Load) + each },
}

// users is one window of a load of users. Each user has one conversation after another, and thinks
// before every message.
//
// First the users join one after another, then the window warms up, then it measures. It measures
// the requests that are due in this last part. The users continue until the last measured request
// has ended. Equal parts of the measured time are the units.
type users struct {
	Env
	steps    queue
	from, to time.Duration // of the window
	edges    int           // edges of units that have passed
	next     agenda[Due]   // a turn without a Chat begins a new conversation
	begun    map[metric.Phase]int
	seats    seats
	due      []int // measured requests of each unit
	pending  int   // measured requests in flight
	leave    leaving
	waiting  map[int]Due // what a user sends who left, and comes back
	warmed   bool        // a request ended that was no failed warm-up request
	failed   int         // warm-up requests that failed
}

func newUsers(e Env) Shape {
	n := e.Case.Level.N
	come := float64(n) / e.Load.People.RampUp.Seconds() // a second
	return &users{
		Env: e, begun: map[metric.Phase]int{}, seats: seats{}, due: make([]int, len(e.Parts)),
		leave: newLeaving(&e), waiting: map[int]Due{},
		steps: queue{
			{
				Do: Prepare, Prompts: []Prompts{{Phase: metric.Warmup, N: n}, {Phase: metric.Measured, N: n}},
				Connections: min(connections(come, e.Each), n),
			},
			{Do: Begin},
		},
	}
}

func (u *users) Next(now time.Duration) Step {
	if s, ok := u.steps.next(); ok {
		return s
	}
	if u.from == 0 {
		u.from = now + u.Workload.Settling(u.Load)
		u.to = u.edge(len(u.Parts))
		n := u.Case.Level.N
		for user := range n {
			u.next.add(now+u.Load.People.RampUp*time.Duration(user)/time.Duration(n), Due{Ticket: load.Ticket{Slot: user}})
		}
	}
	switch {
	case !u.over() && now >= u.edge(u.edges):
		u.edges++
		return Step{Do: Edge, N: u.edges - 1}
	case u.over() && u.pending == 0:
		return Step{Do: Over}
	}
	t, at, ok := u.next.due(now)
	if !ok {
		wait := u.next.next()
		if !u.over() {
			wait = soonest(wait, u.edge(u.edges))
		}
		return Step{Do: Wait, At: wait}
	}
	out := Step{Do: Send, At: at}
	phase := u.phase(at)
	if phase == metric.Measured && u.leave.due() {
		u.waiting[t.Slot] = t
		out.Due = u.leave.turn(t.Slot)
		return out
	}
	if t.Chat == nil {
		t = u.meets(phase, u.begun[phase], t.Slot)
		u.begun[phase]++
		out.Ahead = t.later(u.Case.Level.N + 1)
	}
	if t.Phase = phase; phase == metric.Measured {
		u.leave.stays()
		u.pending++
	}
	out.Due = t
	return out
}

// edge returns the time at which unit i begins, and the one before ends.
func (u *users) edge(i int) time.Duration { return u.from + time.Duration(i)*u.Case.Level.RoundTime() }

func (u *users) over() bool { return u.edges > len(u.Parts) }

func (u *users) phase(at time.Duration) metric.Phase {
	switch {
	case at < u.from:
		return metric.Warmup
	case at < u.to:
		return metric.Measured
	}
	return metric.Filler
}

func (u *users) Place(t Due, due time.Duration) (unit, order int) {
	switch t.Phase {
	case metric.Measured:
		unit = min(max(int((due-u.from)/max(u.Case.Level.RoundTime(), 1)), 0), len(u.Parts)-1)
		u.due[unit]++
	case metric.Filler:
		unit = len(u.Parts) - 1
	case metric.Left:
		unit = min(max(u.edges-1, 0), len(u.Parts)-1)
	}
	return unit, u.seats.next(unit, t.Phase)
}

// Ended lets the user think, and then send the next turn or begin a new conversation.
func (u *users) Ended(now time.Duration, t Due, s *metric.Sample) {
	if t.Phase == metric.Left {
		u.next.add(s.End, u.waiting[t.Slot])
		return
	}
	if t.Phase == metric.Measured {
		u.pending--
	}
	if t.Phase == metric.Warmup && !s.Completed() {
		if u.failed++; !u.warmed && u.failed >= load.ColdFailures(u.Case.Level.N) {
			u.steps = append(u.steps, giveUp(s.Failure.Message))
		}
	} else {
		u.warmed = true
	}
	after := u.thinks(t)
	if !s.Completed() {
		after = max(after, load.Backoff, s.RetryAfter)
	}
	if t.GoesOn(s) {
		t.Nth++
	} else {
		t.Chat = nil
	}
	u.next.add(s.End+after, t)
}

func (u *users) Units(now time.Duration, _ []*metric.Sample) []Unit {
	if u.edges < 2 { // no unit ended
		return []Unit{{Window: load.Window{Start: min(u.from, now), End: min(u.to, now), Busy: 1}, Due: u.due[0], Open: true}}
	}
	var out []Unit
	for i := range u.edges - 1 {
		out = append(out, Unit{Window: load.Window{Start: u.edge(i), End: u.edge(i + 1), Busy: 1}, Due: u.due[i], Open: !u.over()})
	}
	return out
}
