package shape

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// window is the warm-up and the measurement of an open loop, whose requests are due by arrivals. Its
// units follow each other without a pause, by order of start.
//
// After the last unit, requests continue to arrive until the last measured request has ended. They
// are not judged.
type window struct {
	Env
	arrivals arrivals
	trace    *Trace // the arrivals, if they are recorded traffic; else nil
	steps    queue
	begun    time.Duration
	next     arrival // that comes next
	known    bool    // whether it is known
	later    agenda[Due]
	flying   int
	pending  int // measured requests or conversations that have not ended
	warm     warming
	silence  silence
	// bounds holds the time at which each unit began, and after the last unit also its end.
	bounds []time.Duration
	given  time.Duration // time at which the window was given up; 0 if it was not
	seats  seats         // of turns of conversations, and of clients that leave
	leave  leaving
	last   time.Duration // when the last request was due
	late   int           // measured requests that were sent later than metric.MostLag
}

// arrivals says when the requests of an open loop are due.
type arrivals interface {
	// first returns the rate at the beginning of the window, in requests per second.
	first() float64
	// begin begins the arrivals at the given time.
	begin(now time.Duration)
	// has returns how many requests of a phase there are at most. If the number of warm-up requests
	// is known, they end the warm-up.
	has(phase metric.Phase) int
	// next returns the next request; ok is false if none comes any more.
	next() (t load.Ticket, at time.Duration, ok bool)
	// measures ends the warm-up, and returns the time at which the window begins.
	measures() time.Duration
}

type arrival struct {
	load.Ticket
	at time.Duration
}

// warming is what the warm-up of an open loop has seen.
type warming struct {
	steady            *load.Steady // nil when the warm-up is over
	completed, failed int
	took              time.Duration // total time of the completed requests
}

// silence says how long the server has sent no token while requests wait.
type silence struct {
	Tokens
	looks   time.Duration // time of the next look
	waiting time.Duration // time of the last request that was sent while none was in flight
	ttft    []time.Duration
}

// warmupPrompts is the number of prompts that are made in advance for a phase of unknown length.
const warmupPrompts = 100

func newWindow(e Env, a arrivals) Shape {
	w := &window{Env: e, arrivals: a, pending: e.due(), seats: seats{}, leave: newLeaving(&e)}
	w.trace, _ = a.(*Trace)
	prepare := Step{Do: Prepare, Connections: min(connections(a.first(), e.Each), e.Load.Open.MaxInFlight)}
	prepare.Prompts = []Prompts{
		{Phase: metric.Warmup, N: min(a.has(metric.Warmup), warmupPrompts)}, {Phase: metric.Measured, N: a.has(metric.Measured)},
		{Phase: metric.Filler, N: min(a.has(metric.Filler), warmupPrompts)}, {Phase: metric.Left, N: w.leave.of(e.due())},
	}
	w.steps = queue{prepare, {Do: Begin}}
	return w
}

func (w *window) Next(now time.Duration) Step {
	if s, ok := w.steps.next(); ok {
		return s
	}
	if w.begun == 0 {
		w.begun, w.silence.looks = now, now
		w.warm.steady = load.NewSteady(now, w.Overloaded)
		w.arrivals.begin(now)
		if w.arrivals.has(metric.Warmup) == 0 {
			w.measures()
			return w.Next(now)
		}
	}
	switch {
	case w.pending == 0:
		return Step{Do: Over}
	case now >= w.silence.looks:
		w.silence.looks = now + time.Second
		if silent, ok := w.silent(now); ok {
			words := fmt.Sprintf("no token came for %v, while %d requests waited", silent.Round(time.Second), w.flying)
			return w.giveUp(now, metric.CutStalled, words)
		}
	}
	if t, at, ok := w.later.due(now); ok {
		if t.Nth > 1 {
			w.leaves(t.Ticket, at)
		}
		return w.send(t, at, now)
	}
	if !w.known {
		w.next.Ticket, w.next.at, w.known = w.arrivals.next()
	}
	if w.known && w.next.at <= now {
		return w.arrives(now)
	}
	wait := soonest(w.silence.looks, w.later.next())
	if w.known {
		wait = min(wait, w.next.at)
	}
	return Step{Do: Wait, At: wait}
}

func (w *window) arrives(now time.Duration) Step {
	t, at := w.next.Ticket, w.next.at
	w.known = false
	if w.flying >= w.Load.Open.MaxInFlight {
		return w.giveUp(now, metric.CutFull, fmt.Sprintf("%d requests were in flight, the most that max_in_flight allows", w.flying))
	}
	var out Step
	switch {
	case w.trace != nil && w.trace.waits(t):
	case w.chats():
		out = w.send(w.meets(t.Phase, t.Order, t.Slot), at, now)
	default:
		out = w.send(Due{Ticket: t}, at, now)
	}
	if _, first := w.part(t.Order + 1); t.Phase == metric.Measured && first == t.Order+1 {
		w.bounds = append(w.bounds, at)
		w.steps = append(w.steps, Step{Do: Edge, N: len(w.bounds) - 1})
	}
	if w.warm.steady != nil && w.warmed(t, at-w.begun, now) {
		w.measures()
	}
	w.leaves(t, at)
	if out.Do != Send {
		return w.Next(now)
	}
	if t.Order+warmupPrompts < w.arrivals.has(t.Phase) {
		out.Ahead = out.Due.later(warmupPrompts)
	}
	return out
}

// leaves makes clients that leave come soon after a request that stays: within as much time as passed
// before it.
func (w *window) leaves(t load.Ticket, at time.Duration) {
	gap := max(at-max(w.last, w.begun), 0)
	if w.last = at; t.Phase != metric.Measured {
		return
	}
	for w.leave.stays(); w.leave.due(); {
		behind := w.leave.place - math.Floor(w.leave.place)
		w.later.add(at+time.Duration(behind*float64(gap)), w.leave.turn(0))
	}
}

func (w *window) send(t Due, at, now time.Duration) Step {
	if w.flying == 0 {
		w.silence.waiting = now
	}
	w.flying++
	t.Ear = &Ear{all: &w.silence.Tokens}
	return Step{Do: Send, Due: t, At: at}
}

// warmed reports whether the given request ends the warm-up. The parameter after is the time from
// the beginning of the warm-up to the request.
func (w *window) warmed(t load.Ticket, after, now time.Duration) bool {
	if n := w.arrivals.has(metric.Warmup); n < math.MaxInt {
		return t.Order == n-1
	}
	if fixed := w.Load.Open.Warmup; fixed != plan.OpenWarmupAuto {
		return after >= fixed
	}
	if after < w.talking() {
		return false
	}
	mean := time.Duration(0)
	if n := w.warm.completed; n > 0 {
		mean = w.warm.took / time.Duration(n)
	}
	return w.warm.steady.Over(now, mean, w.flying)
}

// talking returns the time that a user spends thinking in a conversation, on average.
func (w *window) talking() time.Duration {
	if !w.chats() {
		return 0
	}
	return time.Duration((w.Workload.Prompt.Turns.Mean - 1) * float64(w.Load.Think.Mean))
}

func (w *window) measures() {
	w.warm.steady = nil
	w.bounds = append(w.bounds, w.arrivals.measures())
	w.steps = append(w.steps, Step{Do: Edge, N: len(w.bounds) - 1})
}

// part returns the unit of a measured request. first is the number of the unit's first request.
func (w *window) part(order int) (part, first int) {
	for i, n := range w.Parts {
		if order < first+n {
			return i, first
		}
		first += n
	}
	return len(w.Parts), first
}

func (w *window) Place(t Due, _ time.Duration) (unit, order int) {
	first := 0
	switch t.Phase {
	case metric.Measured:
		unit, first = w.part(t.Order)
	case metric.Filler:
		unit = len(w.Parts) - 1
	case metric.Left:
		unit = min(max(len(w.bounds)-1, 0), len(w.Parts)-1)
	}
	if t.Chat != nil || t.Phase == metric.Left {
		return unit, w.seats.next(unit, t.Phase)
	}
	return unit, t.Order - first
}

func (w *window) Ended(now time.Duration, t Due, s *metric.Sample) {
	w.flying--
	if s.First > 0 {
		w.silence.ttft = append(w.silence.ttft, s.First-s.Scheduled)
	}
	if w.lags(t, s) {
		w.steps = append(w.steps, Step{Do: GiveUp, Why: fmt.Sprintf("%d of %d requests were sent late", w.late, w.due())})
	}
	if t.GoesOn(s) {
		at := s.End + w.thinks(t)
		t.Nth++
		w.later.add(at, t)
		return
	}
	if w.trace != nil {
		w.trace.ended(t.Ticket, s.End, &w.later)
	}
	switch {
	case t.Phase == metric.Measured:
		w.pending--
	case t.Phase != metric.Warmup:
	case s.Completed():
		w.warm.completed++
		w.warm.took += s.End - s.Scheduled
	default:
		w.warm.failed++
		if w.warm.steady != nil && w.warm.completed == 0 && w.warm.failed >= load.ColdFailures(0) {
			w.steps = append(w.steps, giveUp(s.Failure.Message))
		}
	}
}

// lags reports whether a probe of a search lost its rate with the sample s: more than a hundredth of its
// requests were sent so late that the p99 of the lag is above any limit. A level is not given up for
// that, because some of its thresholds may fail nevertheless.
func (w *window) lags(t Due, s *metric.Sample) bool {
	if !w.Probe || w.trace != nil || t.Phase != metric.Measured || s.Sent == 0 {
		return false
	}
	most := max(metric.MostLag, time.Duration(0.1*float64(time.Second)/w.arrivals.first()))
	if n := len(w.silence.ttft); n > 0 {
		most = max(most, slices.Max(w.silence.ttft)/10)
	}
	if s.Sent-s.Scheduled > most {
		w.late++
	}
	return s.Sent-s.Scheduled > most && w.late > max(w.due()/100, 10)
}

// patience is how long the server may send no token while requests wait. The method patience may
// allow a longer time.
const patience = time.Minute

// silent returns for how long no token has come. ok means that this is too long.
func (w *window) silent(now time.Duration) (silent time.Duration, ok bool) {
	silent = now - max(w.silence.waiting, time.Duration(w.silence.last.Load()))
	return silent, w.flying > 0 && silent > patience && silent > w.patience()
}

// patience is the longest time that tokgate waits for the next token of the server: ten times the
// median TTFT so far, but at least a minute. Before the first token it is the request's time-out.
func (w *window) patience() time.Duration {
	ttft := w.silence.ttft
	switch {
	case w.silence.last.Load() == 0:
		return w.Load.Timeout
	case len(ttft) == 0:
		return patience
	}
	slices.Sort(ttft)
	return max(patience, 10*ttft[len(ttft)/2])
}

// giveUp ends the level. Requests in flight become unfinished, and the remaining requests are never
// sent.
func (w *window) giveUp(now time.Duration, why metric.Cut, words string) Step {
	w.given = now
	return Step{Do: GiveUp, Cut: why, Why: words}
}

func (w *window) Units(now time.Duration, _ []*metric.Sample) []Unit {
	end := cmp.Or(w.given, now)
	if len(w.bounds) == 0 { // it never began
		due := 0
		for i := range w.Parts {
			due += w.dueIn(i)
		}
		return []Unit{{Window: load.Window{Start: end, End: end}, Due: due}}
	}
	bounds := w.bounds
	if len(bounds) <= len(w.Parts) {
		bounds = append(slices.Clip(bounds), end)
	}
	var out []Unit
	for i := range len(bounds) - 1 {
		u := Unit{Window: load.Window{Start: bounds[i], End: bounds[i+1], Busy: 1}, Due: w.dueIn(i)}
		if w.chats() { // they continue after the end of the window
			u.Time = u.End - u.Start
		}
		out = append(out, u)
	}
	return out
}

// dueIn returns the number of measured requests that belong to a unit. They are all turns of the
// conversations that begin in it.
func (w *window) dueIn(unit int) int {
	if !w.chats() {
		return w.Parts[unit]
	}
	first := 0
	for _, n := range w.Parts[:unit] {
		first += n
	}
	due := 0
	for number := first; number < first+w.Parts[unit]; number++ {
		due += w.meets(metric.Measured, number, 0).Chat.Turns
	}
	return due
}

// mostConnections is the largest number of connections that are opened in advance for a rate.
const mostConnections = 256

// connections returns how many connections the requests of a rate need at once. By Little's law
// (Operations Research 9, 1961), that is the rate times the duration of a request.
//
// The parameter each is the duration of a request. It counts as client.IdleTimeout if it is 0,
// which means unknown, or longer: a connection that waits longer is closed. The result is at most
// mostConnections.
func connections(rate float64, each time.Duration) int {
	if each == 0 || each > client.IdleTimeout {
		each = client.IdleTimeout
	}
	return int(min(math.Ceil(rate*each.Seconds()), mostConnections))
}
