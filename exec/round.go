package exec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/load"
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
	stages []*metric.Level // the level of each unit, if the units are stages; else nil
	out    *metric.Round
	shapes shape.Shape
	// batches is the shape, if the units are batches of a closed loop; else nil. See levelRun.batches.
	batches *shape.Batches
	walking
	drawn
	air
	stock
	picked *picked // the answers that a control scores; nil: none
	signs  signs   // of a server that is gone
	lost   error   // the server is gone
	early  bool    // a look ended the level meanwhile
	// inside reads the server's own metrics while the round runs; nil if they are not read.
	inside *telemetry.Session
	health healths
	clocked
}

// stock is what the round's requests are made of.
type stock struct {
	ready  ready
	secret [8]byte                         // random; sessions are made of it
	replay *replay                         // recorded traffic; nil if requests are generated
	chats  map[*shape.Chat]*client.Request // of the next turns, without the length of the answer
}

// clocked is the limit of time of a leg.
type clocked struct {
	began time.Duration // when its first measured request was sent; 0 before
	most  time.Duration // how long it may take from then on; 0: any time
	reach func() bool   // stops the timer that ends it; nil if none runs
}

// limit ends the round when it has measured for that long; 0 means any time.
func (rd *round) limit(most time.Duration) {
	if rd.most = most; rd.began == 0 || most == 0 || rd.reach != nil {
		return
	}
	rd.reach = rd.Clock.Timer(rd.began+most, func() {
		if rd.judged > 0 && !rd.halted() {
			rd.out.Limit = most
			rd.cut("its leg reached its limit of " + metric.Format(metric.Seconds, most.Seconds()))
		}
	})
}

// walking is where the round is among the steps of its shape.
type walking struct {
	todo   shape.Step // a step that walk must take, because it takes time; see advance
	over   bool       // the load is over
	closed int        // batches that can be judged
	timers map[time.Duration]func() bool
}

// air is what the round has sent.
type air struct {
	flights  map[*flight]struct{} // requests in flight
	judged   int                  // measured requests in flight
	launched int                  // flights so far
	taken    int                  // prompts of measured requests so far
	first    prefix               // measured requests that ended, without a gap by order of start
}

func (rd *round) play() []*metric.Round {
	rd.walk(func() bool { return false })
	rd.end()
	return rd.units()
}

// end ends the load, and waits for the requests that count.
func (rd *round) end() {
	rd.over = true
	for _, stop := range rd.timers {
		stop()
	}
	if rd.out.Time > 0 && rd.batches == nil { // the time decided how many prompts the units took
		rd.sent[[2]string{rd.level.Server, rd.level.Workload}] += rd.taken - rd.out.Due
	}
	rd.read()
	rd.drain()
	rd.rest()
	if rd.reach != nil {
		rd.reach()
	}
	rd.health.closesAll()
	if rd.inside != nil {
		rd.inside.End()
	}
	if same := rd.target.Same; same != nil && rd.lost == nil && rd.check() {
		rd.lost = same(rd.starting)
	}
}

// walk takes the steps of the shape until its load is over, the round is halted, or enough returns
// true. The load goes on after it, as far as no step takes time.
func (rd *round) walk(enough func() bool) {
	for !rd.over && !enough() && rd.check() && !rd.halted() {
		rd.advance()
		rd.runUntil(func() bool { return rd.todo.Do != shape.Wait || rd.over || rd.halted() || enough() })
		step := rd.todo
		rd.todo = shape.Step{}
		switch step.Do {
		case shape.Prepare:
			for _, p := range step.Prompts {
				rd.prepare(p)
			}
			rd.connect(step.Connections)
		case shape.Begin:
			rd.meets()
			rd.opens(beforeUnits)
			if rd.target.Inside != nil {
				rd.inside = rd.target.Inside.Begin(rd.flying)
				rd.rest()
				rd.inside.Load()
			}
		case shape.Fresh:
			rd.read()
		}
	}
}

// meets waits until all workers are ready for the load.
func (rd *round) meets() {
	if rd.target.Barrier == nil || !rd.check() || rd.halted() {
		return
	}
	if err := rd.target.Barrier(rd.flying); err != nil && rd.check() {
		rd.lost = err
		rd.cut(err.Error())
	}
}

// advance takes the steps that are due now. A step that takes time is left to walk, because
// advance also runs when a timer fires or a request ends.
func (rd *round) advance() {
	for rd.todo.Do == shape.Wait && !rd.over && !rd.halted() {
		lead := rd.lead()
		switch step := rd.shapes.Next(rd.Clock.Now() + lead); step.Do {
		case shape.Wait:
			if step.At > 0 && lead > 0 {
				step.At = max((step.At - lead + together - 1).Truncate(together), 1)
			}
			rd.wake(step.At)
			return
		case shape.Send:
			rd.send(step)
		case shape.Read:
			rd.readInside()
		case shape.Edge:
			rd.health.closes(step.N - 1)
			rd.opens(step.N)
			rd.readInside()
		case shape.Opens:
			rd.opens(step.N)
			rd.readInside()
		case shape.Closes:
			rd.closed++
			rd.health.closes(step.N)
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

// lead is how long before its time a request is handed to the transport. The edges of units then come
// earlier by as much, all of them alike up to the constant together.
func (rd *round) lead() time.Duration {
	if rd.target.Lead == nil || !shape.Of(rd.Case).Windowed {
		return 0
	}
	return rd.target.Lead() + together
}

// together is the time in which requests are handed on together that are due at times of their own, because
// waking for each would cost more than handing it on.
const together = 20 * time.Millisecond

func (rd *round) cancel(turns []shape.Due) {
	ends := map[shape.Due]bool{}
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
		s.Cut = why
	}
	rd.cut(words)
}

// endedEarly is why a round stopped that was not complete when a look ended its level.
const endedEarly = "the level ended early"

// cut ends the round and its level. If it is called again, the first reason is kept.
func (rd *round) cut(why string) {
	if rd.out.Stopped == "" {
		rd.out.Stopped = why
	}
}

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
		rd.runUntil(func() bool { return rd.judged == 0 || rd.flying.Err() != nil || rd.lost != nil || rd.out.Stopped != "" })
		for _, f := range rd.inFlight() {
			f.cancel()
		}
	}
	waited := false
	stop := rd.Clock.Timer(rd.Clock.Now()+abandon, func() { waited = true })
	rd.runUntil(func() bool { return len(rd.flights) == 0 || waited })
	stop()
	for _, f := range rd.inFlight() {
		s := f.begun()
		s.End = rd.Clock.Now()
		s.Failure = &metric.Failure{Kind: metric.FailCanceled, Message: fmt.Sprintf("cancelled, and had not ended %v later", abandon)}
		f.sample = &s
		rd.finish(f)
	}
}

// abandon is how long a cancelled request may take to end.
const abandon = 10 * time.Second

func (rd *round) inFlight() []*flight {
	return slices.SortedFunc(maps.Keys(rd.flights), func(a, b *flight) int { return cmp.Compare(a.number, b.number) })
}

// units returns what was measured so far as rounds of the level, one for each unit.
func (rd *round) units() []*metric.Round {
	units := rd.shapes.Units(rd.Clock.Now(), rd.out.Samples)
	whole := load.Window{Start: units[0].Start, End: units[len(units)-1].End}
	var out []*metric.Round
	for i, u := range units {
		out = append(out, rd.unit(i, len(units), u, whole))
	}
	return out
}

// unit returns unit i of n as a round. whole is the window of all units.
func (rd *round) unit(i, n int, u shape.Unit, whole load.Window) *metric.Round {
	r := *rd.out
	r.Health = rd.health.of(i, n)
	if rd.inside != nil {
		if rd.stages != nil { // each unit is a level of its own
			whole = u.Window
		}
		r.Telemetry = rd.toldOver(u.Start, u.End, whole.Start, whole.End)
	}
	r.Due, r.WindowStart, r.WindowEnd, r.Busy, r.Samples = u.Due, u.Start, u.End, u.Busy, nil
	if rd.stages == nil {
		r.Index += i
	}
	if rd.batches != nil {
		r.Seed = rd.mix[i].seed
	}
	if u.Time > 0 {
		r.Time = u.Time
	}
	for _, s := range rd.out.Samples {
		if s.Round == r.Index && (rd.stages == nil || s.Level == rd.stages[i].Name) {
			r.Samples = append(r.Samples, s)
		}
	}
	measured, ended := r.MeasuredSamples(), 0
	for i, s := range measured {
		if i == 0 || s.Scheduled < r.Start {
			r.Start = s.Scheduled
		}
		if r.End = max(r.End, s.End); !s.Canceled() {
			ended++
		}
	}
	if rd.level.Cut != "" || rd.early {
		r.Due = len(measured)
	}
	rd.settle(&r, u, ended)
	return &r
}

// settle says whether the unit is complete, and if not, why. A unit within a window is complete when
// its own requests have ended.
func (rd *round) settle(r *metric.Round, u shape.Unit, ended int) {
	if r.Stopped == "" && (rd.stopped != "" || rd.err != nil) && (ended < r.Due || u.Open) {
		r.Stopped = rd.why()
	}
	r.Complete = ended == r.Due && !u.Open && (r.Stopped == "" || rd.level.Windowed())
	switch {
	case r.Complete:
		r.Stopped = ""
	case r.Stopped == "":
		r.Stopped = fmt.Sprintf("%d of %d requests were sent and ended", ended, r.Due)
	}
}

// healths is the generator's own health in each unit. Units may overlap.
type healths struct {
	running map[int]func() metric.Health // ends the observation of a unit
	found   map[int]metric.Health
}

// beforeUnits stands for the time before the first unit.
const beforeUnits = -1

func (h *healths) closes(unit int) {
	if end := h.running[unit]; end != nil {
		delete(h.running, unit)
		h.found[unit] = end()
	}
}

func (h *healths) closesAll() {
	for _, unit := range slices.Sorted(maps.Keys(h.running)) {
		h.closes(unit)
	}
}

// of returns the health of unit i of n. A load that is one unit may have no edges. What was observed
// after the last unit counts for it.
func (h *healths) of(i, n int) metric.Health {
	out, ok := h.found[i]
	if !ok {
		if out, ok = h.found[beforeUnits]; !ok {
			out = metric.Health{CPU: -1}
		}
	}
	if after, ok := h.found[n]; ok && i == n-1 {
		out.Drain(after)
	}
	return out
}

// opens starts to measure the generator's own health in a unit, after the prompts are made. A
// heartbeat of the loop shows when the operating system took the CPU away. After such a pause,
// tokgate reads all bytes that arrived in it at once. Answers then look late, and the next chunks
// look fast.
func (rd *round) opens(unit int) {
	rd.health.closes(beforeUnits)
	if rd.Meter == nil {
		return
	}
	meter, stop := rd.Meter(), watchBeats(rd.Clock)
	rd.health.running[unit] = func() metric.Health {
		seen, h := stop(), meter()
		seen.health.CPU = h.CPU
		h.Join(seen.health)
		h.Delay = max(h.Delay, seen.delay())
		return h
	}
}

// A round reads the server's own metrics at the start and the end of its measured window. The
// differences of counters then belong to the window. Gauges are also read within the window.
// Reading must never delay the load.

// edge is the longest time for which a round waits for a reading of the server's metrics.
const edge = time.Second

func (rd *round) readInside() {
	if rd.inside != nil {
		rd.inside.Read()
	}
}

func (rd *round) read() {
	if rd.inside == nil || rd.halted() {
		return
	}
	late := false
	rd.inside.Read()
	stop := rd.Clock.Timer(rd.Clock.Now()+edge, func() { late = true })
	defer stop()
	rd.runUntil(func() bool { return late || !rd.inside.Busy() })
}

// atRest is the longest time for which a round waits until the replicas of its server are at rest.
const atRest = 10 * time.Second

// rest waits until the replicas of the server have nothing to do, so that their counters add up: also
// after a level that ended early.
func (rd *round) rest() {
	ended := func() bool { return rd.lost != nil || rd.err != nil || rd.flying.Err() != nil }
	if rd.inside == nil || !rd.inside.Several() || ended() {
		return
	}
	late := false
	rd.inside.Settle()
	stop := rd.Clock.Timer(rd.Clock.Now()+atRest, func() { late = true })
	defer stop()
	rd.runUntil(func() bool { return late || rd.inside.Settled() || ended() })
}

// toldOver returns the server's metrics from one time to another. This is a part of the window that
// lasts from begin to end, or the whole window.
func (rd *round) toldOver(from, to, begin, end time.Duration) *metric.Telemetry {
	t := rd.inside.Part(from, to, begin, end)
	for name, why := range t.Missing {
		t.Missing[name] = rd.secrets.Text(why)
	}
	for name, g := range t.Gauges {
		g.Why = rd.secrets.Text(g.Why)
		t.Gauges[name] = g
	}
	return t
}

// byReplica adds what each replica of the server did so far to what it did in windows before. Counters
// are those of all stages, so stages have none.
func (rd *round) byReplica(before []metric.Replica) []metric.Replica {
	if rd.inside == nil || !rd.inside.Several() || rd.stages != nil {
		return before
	}
	units := rd.shapes.Units(rd.Clock.Now(), rd.out.Samples)
	now := rd.inside.ByReplica(units[0].Start, units[len(units)-1].End)
	for i := range now {
		now[i].Missing = rd.secrets.Text(now[i].Missing)
	}
	return metric.AddReplicas(before, now)
}
