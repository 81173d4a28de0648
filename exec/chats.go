package exec

import (
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
)

// chats holds the running conversations of a load that starts conversations at a given rate.
type chats struct {
	thinking map[*talk]func() bool // for each conversation that waits: stops its timer
	ordered  map[seat]int          // requests so far
}

// starts sends the next item of the window's schedule. An item is a request, or the first turn of a
// conversation.
func (w *window) starts(turn load.Turn, at time.Duration) {
	switch {
	case w.replay != nil:
		w.plays(turn, at)
		return
	case !w.Workload.Prompt.Turns.Several():
		w.send(turn, at)
		return
	}
	w.say(w.meets(turn.Phase, turn.Order, turn.Slot), turn.Phase, at)
}

// goOn handles the end of a turn, and reports whether the conversation continues. The next turn is
// due when the simulated user has finished thinking.
func (w *window) goOn(f *flight) bool {
	t, phase := f.talk, f.turn.Phase
	at := f.sample.End + w.thinks(t)
	if w.halted() || !w.goesOn(f) {
		w.misses(f)
		return false
	}
	if w.thinking == nil {
		w.thinking = map[*talk]func() bool{}
	}
	w.thinking[t] = w.Clock.Timer(max(at, w.Clock.Now()), func() {
		delete(w.thinking, t)
		if w.halted() || w.pending == 0 {
			return
		}
		if len(w.flights) == 0 {
			w.waiting = w.Clock.Now()
		}
		w.say(t, phase, at)
	})
	return true
}

// leave ends conversations whose users are thinking. It counts the turns that are then missing from
// measured conversations.
func (w *window) leave() {
	for _, stop := range w.thinking {
		stop()
	}
	if w.replay != nil {
		for _, stop := range w.replay.waits {
			stop()
		}
	}
	if w.Workload.Prompt.Turns.Several() {
		w.out.Due = 0
		for i := range w.parts {
			w.out.Due += w.dueIn(i)
		}
	}
}

// dueIn returns the number of measured requests that belong to a part of the window. They are all
// turns of the conversations that begin in that part.
func (w *window) dueIn(part int) int {
	if !w.Workload.Prompt.Turns.Several() {
		return w.parts[part]
	}
	first := 0
	for _, n := range w.parts[:part] {
		first += n
	}
	due := 0
	for number := first; number < first+w.parts[part]; number++ {
		due += w.meets(metric.Measured, number, 0).turns
	}
	return due
}

// talking returns the time that a user spends thinking in a conversation, on average.
func (w *window) talking() time.Duration {
	if !w.Workload.Prompt.Turns.Several() {
		return 0
	}
	return time.Duration((w.Workload.Prompt.Turns.Mean - 1) * float64(w.Load.Think.Mean))
}

// numbered returns the number of a turn's request among the requests of its round and its phase,
// from 0.
func (w *window) numbered(s *metric.Sample) int {
	if w.ordered == nil {
		w.ordered = map[seat]int{}
	}
	at := seat{s.Round, s.Phase}
	w.ordered[at]++
	return w.ordered[at] - 1
}
