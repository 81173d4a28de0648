package exec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/shape"
	"github.com/tokgate/tokgate/exec/telemetry"
	"github.com/tokgate/tokgate/metric"
)

// round measures the units of one window. A shape decides when its requests are due; the round
// sends them and keeps what was observed. See walk.
type round struct {
	*runner
	Case
	target *Target
	level  *metric.Level
	stages []*series // the series of each unit, if the units are stages; else nil
	out    *metric.Round
	shape  shape.Shape
	todo   shape.Step // a step that the round itself must take, because it waits; see advance
	over   bool       // the load is over
	timers map[time.Duration]func() bool

	mix    mixed
	ready  ready
	replay *replay                       // recorded traffic; nil if requests are generated
	picked *picked                       // the answers that a control scores; nil: none
	chats  map[*shape.Chat]client.Prompt // the prompts of the next turns
	signs  signs                         // of a server that is gone
	lost   error                         // the server is gone

	flights  map[*flight]struct{} // requests in flight
	judged   int                  // measured requests in flight
	launched int                  // flights so far
	taken    int                  // prompts of measured requests so far

	// inside reads the server's own metrics while the round runs; nil if they are not read.
	inside *telemetry.Session
	health healths
}

// play runs the round to its end, or until it is cut short. It returns the rounds of its units.
func (rd *round) play() []*metric.Round {
	rd.walk()
	rd.read()
	rd.drain()
	rd.health.end()
	if rd.inside != nil {
		rd.inside.End()
	}
	rounds := rd.units()
	if same := rd.target.Same; same != nil && rd.lost == nil && rd.check() {
		rd.lost = same(rd.starting)
	}
	return rounds
}

// walk takes the steps of the shape until its load is over, or until the round is halted.
func (rd *round) walk() {
	for !rd.over && rd.check() && !rd.halted() {
		rd.advance()
		rd.runUntil(func() bool { return rd.todo.Do != shape.Wait || rd.over || rd.halted() })
		step := rd.todo
		rd.todo = shape.Step{}
		switch step.Do {
		case shape.Prepare:
			for _, p := range step.Prompts {
				rd.prepare(p.Phase, p.From, p.N)
			}
			rd.connect(step.Connections)
		case shape.Begin:
			rd.watch()
			if rd.target.Inside != nil {
				rd.inside = rd.target.Inside.Begin(rd.flying)
			}
		case shape.Fresh:
			rd.read()
		}
	}
	rd.over = true
	for _, stop := range rd.timers {
		stop()
	}
	if rd.out.Time > 0 { // the time decided how many prompts the units took
		rd.sent[[2]string{rd.level.Server, rd.level.Workload}] += rd.taken - rd.out.Due
	}
}

// advance takes the steps that are due now. A step that takes time is left to walk, because
// advance also runs when a timer fires or a request ends.
func (rd *round) advance() {
	for rd.todo.Do == shape.Wait && !rd.over && !rd.halted() {
		switch step := rd.shape.Next(rd.Clock.Now()); step.Do {
		case shape.Wait:
			rd.wake(step.At)
			return
		case shape.Send:
			rd.send(step)
		case shape.Read:
			rd.readInside()
		case shape.Edge:
			rd.health.edge()
			rd.watch()
			rd.readInside()
		case shape.Grow:
			rd.level.N = step.N
			rd.cancel(step.Cancel)
		case shape.GiveUp:
			rd.giveUp(step.Cut, step.Why)
		case shape.Over:
			rd.over = true
		default:
			rd.todo = step
		}
	}
}

// cancel ends requests.
func (rd *round) cancel(turns []shape.Turn) {
	ends := map[shape.Turn]bool{}
	for _, t := range turns {
		ends[t] = true
	}
	for _, f := range rd.inFlight() {
		if ends[f.turn] {
			f.cancel()
		}
	}
}

// wake makes the shape be asked again at a time; 0 means never.
func (rd *round) wake(at time.Duration) {
	if _, ok := rd.timers[at]; ok || at == 0 {
		return
	}
	rd.timers[at] = rd.Clock.Timer(at, func() {
		delete(rd.timers, at)
		rd.advance()
	})
}

// giveUp ends the level early. Requests in flight become unfinished, and the remaining requests are
// never sent.
func (rd *round) giveUp(why metric.Cut, words string) {
	rd.level.Cut = why
	for _, s := range rd.stages {
		s.level.Cut = why
	}
	rd.cut(words)
}

// cut ends the round and its level. If it is called again, the first reason is kept.
func (rd *round) cut(why string) {
	if rd.out.Stopped == "" {
		rd.out.Stopped = why
	}
}

// halted reports whether the round must start no more requests.
func (rd *round) halted() bool {
	return rd.out.Stopped != "" || rd.lost != nil || rd.stopped != "" || rd.err != nil
}

// drain waits for the measured requests in flight, at most for the drain time-out. It cancels all
// others at once. If the round was stopped, it cancels the measured requests too.
func (rd *round) drain() {
	for _, f := range rd.inFlight() {
		if f.turn.Phase != metric.Measured || rd.out.Stopped != "" {
			f.cancel()
		}
	}
	if rd.out.Stopped == "" {
		rd.runUntil(func() bool { return rd.judged == 0 || rd.flying.Err() != nil || rd.lost != nil })
		for _, f := range rd.inFlight() {
			f.cancel()
		}
	}
	waited := false
	stop := rd.Clock.Timer(rd.Clock.Now()+abandon, func() { waited = true })
	rd.runUntil(func() bool { return len(rd.flights) == 0 || waited })
	stop()
	for _, f := range rd.inFlight() {
		// Record a new sample, because the transport may still write to the sample of this request.
		s := rd.sample(f)
		s.End = rd.Clock.Now()
		s.Failure = &metric.Failure{Kind: metric.FailCanceled, Message: fmt.Sprintf("cancelled, and had not ended %v later", abandon)}
		rd.finish(f, s)
	}
}

// abandon is how long a cancelled request may take to end.
const abandon = 10 * time.Second

// inFlight lists the flights in order of start.
func (rd *round) inFlight() []*flight {
	return slices.SortedFunc(maps.Keys(rd.flights), func(a, b *flight) int { return cmp.Compare(a.number, b.number) })
}
