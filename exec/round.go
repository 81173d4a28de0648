package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/exec/telemetry"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// round is one round under way.
type round struct {
	*runner
	Case
	target  *Target
	level   *metric.Level
	out     *metric.Round
	prompts Prompts
	answers *answers
	request client.Request // what all requests have in common
	lengths load.Lengths
	// durations are those of the series.
	durations map[*plan.Workload]time.Duration

	measured []int                    // lengths of the measured answers, by order of start
	ready    map[turnID]client.Prompt // prompts made beforehand
	// readyBytes is how long they are together.
	readyBytes int
	flights    map[*flight]struct{} // what is in flight
	judged     int                  // of these, the measured ones
	launched   int                  // flights so far

	loop   *load.Loop // of a closed loop, while it runs
	window *window    // of an open loop
	// A saturation has neither rounds nor measured requests.
	saturates  bool
	saturation *saturation
	held       []int         // slots to ask again
	timer      func() bool   // stops the clock of a round that goes by time, as long as it runs; else nil
	ended      func(*flight) // what follows the end of a request; nil: nothing

	// What the server tells of itself is read while the round is played; nil:
	// nothing is.
	inside *telemetry.Session
	slots  map[int]bool // that sent a request
	begun  bool         // a measured one was sent
	opened bool         // the window has begun

	proven     bool   // requests completed at this level before
	wasted     int    // measured requests that failed at this level, as long as none completed
	refused    int    // connections refused in a row
	lastWarmup string // why the last warm-up request failed
	lost       error  // the server is gone
}

type turnID struct {
	phase metric.Phase
	order int
}

// flight is one request in flight.
type flight struct {
	number int // in order of start
	turn   load.Turn
	sample *metric.Sample // the transport's until it ended
	answer *client.Answer // where its text is kept; nil: it is not
	at     time.Duration  // scheduled
	output int            // tokens asked for
	cancel context.CancelFunc
	over   bool
}

// play plays the round to its end, or until it is cut short.
func (rd *round) play() {
	rd.flights = map[*flight]struct{}{}
	if rd.out.Time == 0 {
		rd.measured = rd.lengths.Measured(rd.out.Due)
	}
	rd.proven = slices.ContainsFunc(rd.level.Rounds, func(r *metric.Round) bool {
		return slices.ContainsFunc(r.Samples, (*metric.Sample).Completed)
	})
	for _, r := range rd.level.Rounds {
		rd.wasted += len(r.MeasuredSamples())
	}
	health := func() metric.Health { return metric.Health{CPU: -1} }
	switch {
	case rd.saturates:
		rd.saturate(&health)
	case rd.Load.Kind == metric.Burst:
		rd.burst(&health)
	case rd.Load.Kind == metric.OpenLoop:
		rd.open(&health)
	default:
		rd.closed(&health)
	}
	rd.read()
	rd.drain()
	rd.out.Health = health()
	rd.settle()
	rd.told()
}

// watch has the meter watch from now on: the making of prompts is left out.
// While it does the loop has a heartbeat. What the operating system takes the
// processor from for a while reads what came meanwhile in one go: late answers
// look late and the chunks after them fast, and no histogram of the runtime
// knows of it.
func (rd *round) watch(health *func() metric.Health) {
	if rd.Meter == nil {
		return
	}
	meter := rd.Meter()
	due, stall := rd.Clock.Now(), time.Duration(0)
	var stop func() bool
	late := func() { stall = max(stall, rd.Clock.Now()-due) }
	var beat func()
	beat = func() {
		late()
		due = rd.Clock.Now() + heartbeat
		stop = rd.Clock.Timer(due, beat)
	}
	beat()
	*health = func() metric.Health {
		late() // the beat that is due now
		stop()
		h := meter()
		h.Stall = stall
		return h
	}
}

// heartbeat is how often the loop looks whether it is on time.
const heartbeat = 100 * time.Millisecond

// closed plays a round of a closed loop; package load says how one goes.
func (rd *round) closed(health *func() metric.Health) {
	c := closedRound(rd.Case, rd.out.Due, rd.durations[rd.Workload])
	if rd.Load.Stagger == plan.StaggerAuto && c.Stagger == 0 && c.Slots > 1 && c.Warmup > 0 {
		// Nothing is known yet of how long a request takes: one goes ahead.
		c.Probes = 1
		if !c.Fill {
			c.Warmup--
		}
		rd.together(metric.Warmup, 0, 1)
		if d, ok := load.Duration(rd.out.Samples, metric.Warmup); ok {
			c.Stagger = load.Stagger(d, c.Pause, c.Slots)
		}
	}
	if rest := c.Warmup % c.Slots; !c.Fill && rest > 0 {
		// In some of the slots they would run beside the measured requests of
		// the others.
		rd.warmUp(c.Probes, rest)
		c.Probes, c.Warmup = c.Probes+rest, c.Warmup-rest
	}
	c.Proven = rd.proven
	rd.prepare(metric.Warmup, c.Probes, c.Warmup)
	rd.prepare(metric.Measured, 0, c.Requests(rd.durations[rd.Workload]))
	rd.prepare(metric.Filler, 0, c.Slots)
	if !rd.check() || rd.halted() {
		return
	}
	rd.watch(health)
	rd.look()
	rd.loop = c.Begin()
	begin := rd.Clock.Now()
	stops := make([]func() bool, c.Slots)
	for slot := range stops {
		at := begin + c.First(slot)
		stops[slot] = rd.Clock.Timer(at, func() { rd.next(slot, at) })
	}
	rd.ended = func(f *flight) {
		slot, at := f.turn.Slot, f.sample.End+max(rd.loop.Ended(f.turn, !f.sample.Completed()), f.sample.RetryAfter)
		if rd.loop.Doomed() {
			rd.cut(nothingCompletes + rd.lastWarmup)
			return
		}
		if at <= rd.Clock.Now() {
			rd.next(slot, at) // not by way of the queue: the slot is idle until then
		} else {
			stops[slot] = rd.Clock.Timer(at, func() { rd.next(slot, at) })
		}
		rd.ask()
	}
	rd.until(func() bool { return rd.loop.Over() || rd.halted() })
	rd.ended = nil
	if rd.timer != nil { // halted before its time was over
		rd.timer()
		rd.close()
	}
	for _, stop := range stops {
		stop()
	}
}

// close ends the measured requests of a round that goes by time.
func (rd *round) close() {
	rd.loop.Close()
	rd.out.Due = rd.loop.Due()
}

// next has a slot do what comes next. at is when it was due to.
func (rd *round) next(slot int, at time.Duration) {
	if rd.halted() {
		return
	}
	turn, decision := rd.loop.Next(slot)
	switch decision {
	case load.Send:
		rd.send(turn, at)
		rd.ask()
	case load.Hold:
		rd.held = append(rd.held, slot)
	}
}

// ask asks those slots again that were told to hold.
func (rd *round) ask() {
	held := rd.held
	rd.held = nil
	for _, slot := range held {
		rd.next(slot, rd.Clock.Now())
	}
}

// cut ends the round, and with it the level. The first reason stays.
func (rd *round) cut(why string) {
	if rd.out.Stopped == "" {
		rd.out.Stopped = why
	}
}

// nothingCompletes begins the Stopped of a round that was given up because no
// request ever completed at its level.
const nothingCompletes = "every warm-up request failed: "

// halted says that nothing more is to be started.
func (rd *round) halted() bool {
	return rd.out.Stopped != "" || rd.lost != nil || rd.stopped != "" || rd.err != nil
}

// send sends one request.
func (rd *round) send(turn load.Turn, at time.Duration) {
	prompt := rd.prompt(turn.Phase, turn.Order)
	if rd.halted() {
		return
	}
	f := &flight{number: rd.launched, turn: turn, at: at}
	rd.launched++
	if turn.Phase == metric.Measured {
		rd.judged++
		if rd.out.Time > 0 && turn.Order == 0 {
			rd.timer = rd.Clock.Timer(rd.Clock.Now()+rd.out.Time, func() {
				rd.timer = nil
				rd.close()
			})
		}
	}
	if turn.Phase == metric.Measured && turn.Order < len(rd.measured) {
		f.output = rd.measured[turn.Order]
	} else {
		f.output = rd.lengths.At(turn.Phase, turn.Order)
	}
	request := rd.request
	request.Prompt, request.Output = prompt, f.output
	f.sample = rd.sample(f)
	var ctx context.Context
	ctx, f.cancel = context.WithCancel(rd.flying)
	rd.flights[f] = struct{}{}
	rd.Observer.RequestStarted(rd.level, turn.Phase)
	answer := client.NewAnswer(f.sample, func(s *metric.Sample) {
		rd.Clock.Post(func() { rd.finish(f, s) })
	})
	if turn.Phase == metric.Measured && rd.keeps(turn.Order) {
		f.answer = answer
		answer.Keep(keptBytes)
	}
	var stream client.Stream = answer
	if rd.window != nil {
		stream = rd.window.listen(answer)
	}
	rd.target.Transport.Send(ctx, &request, stream)
	rd.opens(turn.Slot, turn.Phase)
	if rd.loop != nil && turn.Phase != metric.Warmup {
		rd.ahead(turn)
	}
}

// sample is what is known of a request before it is sent.
func (rd *round) sample(f *flight) *metric.Sample {
	out := &metric.Sample{
		Server: rd.level.Server, Workload: rd.level.Workload, Level: rd.level.Name, Round: rd.out.Index,
		Slot: f.turn.Slot, Order: f.turn.Order, Phase: f.turn.Phase,
		Scheduled: f.at, InputAsked: rd.request.Input, OutputAsked: f.output,
	}
	if rd.window != nil {
		rd.window.place(out)
	}
	return out
}

// finish takes what became of a request.
func (rd *round) finish(f *flight, s *metric.Sample) {
	if f.over {
		return // given up on
	}
	f.over, f.sample = true, s
	if rd.window != nil {
		rd.window.unfinished(s)
	}
	if s.Failure != nil {
		s.Failure.Message = rd.secrets.Text(s.Failure.Message)
	}
	s.Finish = rd.secrets.Text(s.Finish)
	f.cancel()
	delete(rd.flights, f)
	if f.turn.Phase == metric.Measured {
		rd.judged--
	}
	rd.out.Samples = append(rd.out.Samples, s)
	if s.Failure != nil {
		rd.failed(s)
	} else {
		rd.refused, rd.proven = 0, true
	}
	if f.answer != nil {
		rd.keep(f)
	}
	if rd.ended != nil {
		rd.ended(f)
	}
	// Only now: the slot is at work again while the sample is written.
	rd.observe(rd.Observer.SampleDone(s))
}

// failed looks at a failed request for signs that the server is gone.
func (rd *round) failed(s *metric.Sample) {
	if s.Phase == metric.Warmup {
		rd.lastWarmup = s.Failure.Message
	}
	if s.Failure.Kind == metric.FailCanceled || rd.lost != nil {
		return
	}
	if rd.target.Err != nil {
		if err := rd.target.Err(); err != nil {
			rd.lost = err
			rd.cut(rd.secrets.Text(err.Error()))
			return
		}
	}
	if s.Failure.Kind == metric.FailLocal {
		// No verdict on a server that could not be asked.
		rd.lost = errors.New(s.Failure.Message)
		rd.cut(s.Failure.Message)
		return
	}
	if s.Phase == metric.Measured && !rd.proven {
		if rd.wasted++; rd.wasted >= plan.Hopeless(rd.level.N) {
			// More would only cost more: a server that takes requests and ends none
			// keeps each until its time-out.
			rd.cut(fmt.Sprintf("%d requests failed and none completed: %s", rd.wasted, s.Failure.Message))
			return
		}
	}
	if s.Failure.Kind != metric.FailConnect {
		rd.refused = 0
		return
	}
	rd.refused++
	if rd.refused >= max(10, 2*rd.level.N) {
		rd.lost = fmt.Errorf("%d connections in a row failed: %s", rd.refused, s.Failure.Message)
		rd.cut(rd.lost.Error())
	}
}

// drain ends what is in flight. Measured requests of a run that was halted
// are waited for, until the run's patience ends too; everything else is
// cancelled.
func (rd *round) drain() {
	for _, f := range rd.inFlight() {
		if f.turn.Phase != metric.Measured || rd.out.Stopped != "" {
			f.cancel()
		}
	}
	if rd.out.Stopped == "" {
		rd.until(func() bool { return rd.judged == 0 || rd.flying.Err() != nil || rd.lost != nil })
		for _, f := range rd.inFlight() {
			f.cancel()
		}
	}
	waited := false
	stop := rd.Clock.Timer(rd.Clock.Now()+abandon, func() { waited = true })
	rd.until(func() bool { return len(rd.flights) == 0 || waited })
	stop()
	for _, f := range rd.inFlight() {
		// The transport does not let go of it, and owns its sample.
		s := rd.sample(f)
		s.End = rd.Clock.Now()
		s.Failure = &metric.Failure{
			Kind:    metric.FailCanceled,
			Message: fmt.Sprintf("cancelled, and had not ended %v later", abandon),
		}
		rd.finish(f, s)
	}
}

// abandon is how long a cancelled request may take to end.
const abandon = 10 * time.Second

// inFlight lists what is in flight, in order of start.
func (rd *round) inFlight() []*flight {
	return slices.SortedFunc(maps.Keys(rd.flights), func(a, b *flight) int { return cmp.Compare(a.number, b.number) })
}
