package exec

import (
	"fmt"
	"slices"
	"sort"
	"sync/atomic"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// window is the warm-up and the measurement of an open loop. The measurement is divided into parts,
// which follow each other without a pause. Each part becomes a round of the level.
//
// After the last part, requests continue to arrive until the last measured request has ended. They
// are not judged. Package load decides when each request is due.
type window struct {
	*round
	schedule *load.Schedule
	parts    []int // number of measured requests in each part of the window
	// bounds holds the time at which each part of the window began, and after the last part also
	// its end. health holds the generator's health in the parts that have ended.
	bounds  []time.Duration
	health  []metric.Health
	pending int // number of measured requests that have not ended

	steady *load.Steady // not nil while the window warms up
	warm   struct {     // warm-up requests that ended
		completed, failed int
		took              time.Duration // total time of the completed requests
	}
	token   atomic.Int64  // time at which the last token arrived
	waiting time.Duration // time of the last request that was sent while none was in flight
	given   time.Duration // time at which the window was given up; 0 if it was not given up
	// stages holds the series of each stage, if the parts of the window are stages with different
	// rates. It is empty if all parts are rounds of one level.
	stages []*series
	stop   func() bool
	chats  // open conversations, if the rate counts new conversations
}

// open runs the window of an open loop.
func (rd *round) open(health *func() metric.Health) {
	w := rd.window.(*window)
	w.pending = rd.out.Due
	rd.prepare(metric.Warmup, 0, warmupPrompts)
	rd.prepare(metric.Measured, 0, rd.out.Due)
	rd.prepare(metric.Filler, 0, warmupPrompts)
	o := rd.Load.Open
	rd.connect(min(expected(w.firstRate(), rd.durations[rd.Workload]), o.MaxInFlight))
	if !rd.check() || rd.halted() {
		return
	}
	rd.watch(health)
	rd.look()
	begin := rd.Clock.Now()
	w.steady = load.NewSteady(begin)
	if rd.replay != nil {
		rd.replay.Replay = rd.replay.Begin(begin)
	} else {
		w.schedule = load.Open{
			Rate: rd.level.Rate, Shape: o.Shape(), Due: rd.out.Due,
			Seed: rd.arrivals(), Workload: rd.level.Workload, Level: rd.level.Name, Round: rd.out.Index, Stages: w.rates(),
		}.Begin(begin)
	}
	if w.cold() {
		w.begins(health)
	}
	rd.ended, rd.listen = w.took, w.listen
	w.next(health, begin)
	end := w.guard()
	rd.runUntil(func() bool { return w.pending == 0 || rd.halted() })
	end()
	w.stop()
	w.leave()
	rd.ended = nil
}

// arrivals returns the seed of the arrivals. Real runs of one plan have the same arrivals, so that
// they can be compared. Each salt of a simulation draws others.
func (rd *round) arrivals() int64 {
	if !rd.run.Simulated {
		return rd.out.Seed
	}
	return load.Salted(rd.out.Seed, rd.run.Salt)
}

// firstRate returns the rate at the beginning of the window, in requests per second.
func (w *window) firstRate() float64 {
	switch {
	case w.replay != nil:
		at := w.replay.At
		n := sort.Search(len(at), func(i int) bool { return at[i] >= at[0]+client.IdleTimeout })
		return float64(n) / client.IdleTimeout.Seconds()
	case len(w.stages) > 0:
		return w.stages[0].Level.Stage.From
	}
	return w.level.Rate
}

// rates returns the stages of the window, each with its rate and number of requests. It returns nil
// if there are no stages.
func (w *window) rates() []load.Stage {
	var out []load.Stage
	for i, s := range w.stages {
		out = append(out, load.Stage{Due: w.parts[i], From: s.Level.Stage.From, To: s.Level.Stage.To})
	}
	return out
}

// warmupPrompts is the number of prompts that are made in advance for a phase of unknown length.
const warmupPrompts = 100

// cold reports whether the window begins without a warm-up.
func (w *window) cold() bool {
	if w.replay != nil {
		return w.replay.Warm == 0
	}
	return w.Load.Open.Warmup == 0
}

// nextDue returns the next request of the schedule; ok is false at the end of a trace.
func (w *window) nextDue() (turn load.Turn, at time.Duration, ok bool) {
	if w.replay != nil {
		return w.replay.Next()
	}
	turn, at = w.schedule.Next()
	return turn, at, true
}

// next waits until the next request is due, and sends it.
func (w *window) next(health *func() metric.Health, begin time.Duration) {
	turn, at, ok := w.nextDue()
	if !ok {
		w.stop = func() bool { return false }
		return
	}
	w.stop = w.Clock.Timer(at, func() {
		if w.halted() {
			return
		}
		if len(w.flights) >= w.Load.Open.MaxInFlight {
			w.giveUp(metric.CutFull, fmt.Sprintf("%d requests were in flight, the most that max_in_flight allows", len(w.flights)))
			return
		}
		if len(w.flights) == 0 {
			w.waiting = w.Clock.Now()
		}
		w.starts(turn, at)
		if turn.Phase == metric.Measured {
			w.passes(turn.Order, at, health)
		}
		if w.steady != nil && w.warmed(turn, at-begin) {
			w.begins(health)
		}
		if w.wants(turn.Phase, turn.Order+warmupPrompts) {
			w.Clock.Post(func() {
				if !w.halted() && w.pending > 0 {
					w.prepare(turn.Phase, turn.Order+warmupPrompts, 1)
				}
			})
		}
		w.next(health, begin)
	})
}

// warmed reports whether the given request ends the warm-up. The parameter after is the time from
// the beginning of the warm-up to the request.
func (w *window) warmed(turn load.Turn, after time.Duration) bool {
	if w.replay != nil {
		return turn.Order == w.replay.Warm-1
	}
	if after < w.talking() && w.Load.Open.Warmup == plan.OpenWarmupAuto {
		return false
	}
	if fixed := w.Load.Open.Warmup; fixed != plan.OpenWarmupAuto {
		return after >= fixed
	}
	mean := time.Duration(0)
	if n := w.warm.completed; n > 0 {
		mean = w.warm.took / time.Duration(n)
	}
	return w.steady.Over(w.Clock.Now(), mean, len(w.flights))
}

// begins ends the warm-up.
func (w *window) begins(health *func() metric.Health) {
	w.steady = nil
	from := time.Duration(0)
	if w.replay != nil {
		from = w.replay.Window()
	} else {
		from = w.schedule.Warm()
	}
	w.bounds = append(w.bounds, from)
	w.meter(health)
}

// passes ends the current part of the window if the given measured request is the last of the part.
// at is the time at which the request is due.
func (w *window) passes(order int, at time.Duration, health *func() metric.Health) {
	if _, first := w.part(order + 1); first == order+1 {
		w.bounds = append(w.bounds, at)
		w.health = append(w.health, (*health)())
		w.meter(health)
	}
}

// meter begins to measure a part of the window: it observes the generator, and reads the server's
// own metrics.
func (w *window) meter(health *func() metric.Health) {
	w.watch(health)
	if w.inside != nil {
		w.inside.Read()
	}
}

// part returns the index of the part of the window to which a measured request belongs. first is
// the number of the part's first request.
func (w *window) part(order int) (part, first int) {
	for i, n := range w.parts {
		if order < first+n {
			return i, first
		}
		first += n
	}
	return len(w.parts), first
}

// place sets the round to which a sample belongs, and its number within the round.
func (w *window) place(s *metric.Sample) {
	s.FromDue = true
	part, first := 0, 0
	switch s.Phase {
	case metric.Measured:
		part, first = w.part(s.Order)
	case metric.Filler:
		part = len(w.parts) - 1
	}
	s.Order -= first
	if len(w.stages) > 0 {
		s.Level = w.stages[part].level.Name
	} else {
		s.Round += part
	}
	if s.Turn > 0 {
		s.Order = w.numbered(s)
	}
}

// took handles the end of the request f. It continues f's conversation, or makes the rows of the
// trace due that wait for f. If f belongs to the warm-up, it counts f.
func (w *window) took(f *flight) {
	s := f.sample
	if f.talk != nil && w.goOn(f) {
		return
	}
	if w.replay != nil && !w.halted() {
		w.answers(f)
	}
	if f.turn.Phase == metric.Measured {
		w.pending--
	}
	if f.turn.Phase != metric.Warmup {
		return
	}
	if s.Completed() {
		w.warm.completed++
		w.warm.took += s.End - s.Scheduled
		return
	}
	w.warm.failed++
	if w.steady != nil && w.warm.completed == 0 && w.warm.failed >= load.ColdFailures(0) {
		w.cut(nothingCompletes + w.lastWarmup)
	}
}

// patience is how long the server may send no token while requests wait. The method patience may
// allow a longer time.
const patience = time.Minute

// guard looks every second whether the server still sends tokens. It gives the window up if no
// token has come for too long.
func (w *window) guard() (stop func()) {
	var again func() bool
	var look func()
	look = func() {
		if !w.halted() && len(w.flights) > 0 {
			silent := w.Clock.Now() - max(w.waiting, time.Duration(w.token.Load()))
			if silent > patience && silent > w.patience() {
				w.giveUp(metric.CutStalled, fmt.Sprintf("no token came for %v, while %d requests waited", silent.Round(time.Second), len(w.flights)))
			}
		}
		again = w.Clock.Timer(w.Clock.Now()+time.Second, look)
	}
	look()
	return func() { again() }
}

// patience is the longest time that tokgate waits for the next token of the server: ten times the
// median TTFT so far, but at least a minute. Before the first token it is the request's time-out.
func (w *window) patience() time.Duration {
	if w.token.Load() == 0 {
		return w.Load.Timeout
	}
	var ttft []time.Duration
	for _, s := range w.out.Samples {
		if s.First > 0 {
			ttft = append(ttft, s.First-s.Scheduled)
		}
	}
	if len(ttft) == 0 {
		return patience
	}
	slices.Sort(ttft)
	return max(patience, 10*ttft[len(ttft)/2])
}

// giveUp ends the level. Requests in flight become unfinished, and the remaining requests are never
// sent.
func (w *window) giveUp(why metric.Cut, words string) {
	if w.halted() {
		return
	}
	w.level.Cut, w.given = why, w.Clock.Now()
	for _, s := range w.stages {
		s.level.Cut = why
	}
	w.cut(words)
}

// unfinished marks a measured request as failed if it was in flight when its level was given up.
func (w *window) unfinished(s *metric.Sample) {
	if w.level.Cut != "" && s.Canceled() && s.Phase == metric.Measured {
		s.Failure = &metric.Failure{Kind: metric.FailUnfinished, Message: "it had not ended when its level was given up"}
	}
}

// listen returns a stream that also records in the window when each token arrives.
func (w *window) listen(_ *flight, a *client.Answer) client.Stream { return heard{a, &w.token} }

// heard is an answer that also records when its latest token arrived.
type heard struct {
	*client.Answer
	token *atomic.Int64
}

// Event implements client.Stream.
func (h heard) Event(at time.Duration, e *client.Event) {
	if e.Content || e.Reasoning || e.ToolCall {
		h.token.Store(int64(at))
	}
	h.Answer.Event(at, e)
}

// span returns the measured part of the window up to now.
func (w *window) span() load.Window {
	end := w.given
	if end == 0 {
		end = w.Clock.Now()
	}
	if n := len(w.bounds); n == 0 {
		return load.Window{Start: end, End: end}
	} else if n > len(w.parts) {
		end = w.bounds[n-1]
	}
	return load.Window{Start: w.bounds[0], End: end, Busy: 1}
}

// rounds divides the finished window into the rounds of its level. If the level was given up,
// rounds leaves out requests that were due later, because they were never sent.
func (w *window) rounds() []*metric.Round {
	whole := w.out
	if len(w.bounds) == 0 {
		return []*metric.Round{whole} // it never began
	}
	if len(w.bounds) <= len(w.parts) {
		w.bounds = append(w.bounds, whole.WindowEnd)
		w.health = append(w.health, whole.Health)
	} else {
		w.health[len(w.health)-1].Drain(whole.Health)
	}
	var out []*metric.Round
	for i := range len(w.bounds) - 1 {
		r := *whole
		r.Due = w.dueIn(i)
		if len(w.stages) == 0 {
			r.Index += i
		}
		r.WindowStart, r.WindowEnd, r.Health = w.bounds[i], w.bounds[i+1], w.health[i]
		// Conversations continue after the end of the window.
		if w.Workload.Prompt.Turns.Several() {
			r.Time = r.WindowEnd - r.WindowStart
		}
		r.Start, r.End, r.Samples = 0, 0, nil
		for _, s := range whole.Samples {
			if s.Round == r.Index && (len(w.stages) == 0 || s.Level == w.stages[i].level.Name) {
				r.Samples = append(r.Samples, s)
			}
		}
		w.ends(&r)
		out = append(out, &r)
	}
	return out
}

// ends computes the results of a part of the window from its requests.
func (w *window) ends(r *metric.Round) {
	measured := r.MeasuredSamples()
	for i, s := range measured {
		if i == 0 || s.Scheduled < r.Start {
			r.Start = s.Scheduled
		}
		r.End = max(r.End, s.End)
	}
	if w.level.Cut != "" {
		r.Due = len(measured)
	}
	ended := 0
	for _, s := range measured {
		if !s.Canceled() {
			ended++
		}
	}
	if r.Busy, r.Complete = 1, ended == r.Due; r.Complete {
		r.Stopped = ""
	}
	if w.inside != nil {
		begin, end := w.bounds[0], w.bounds[len(w.bounds)-1]
		if len(w.stages) > 0 { // each part is a level of its own
			begin, end = r.WindowStart, r.WindowEnd
		}
		r.Telemetry = w.toldOver(r.WindowStart, r.WindowEnd, begin, end)
	}
}
