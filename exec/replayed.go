package exec

import (
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/plan"
)

// replayed returns the replay of a window. It sends the recorded stretch; in a comparison, only the
// part of the stretch for this leg, one server's turn. The window begins with the given round, and
// the parameter due is the number of measured requests in it.
func (s *series) replayed(round, due int) *replay {
	open, rows := s.Load.Open, s.Load.Open.Trace
	from, skip := rows.From, 0
	if s.leg != nil {
		for i := range round % s.Level.Rounds {
			skip += s.Level.RoundRequests(i)
		}
	}
	first := rows.First + skip
	if skip > 0 {
		from = rows.Rows[first].At
	}
	warmup := open.Warmup
	if warmup == plan.OpenWarmupAuto {
		warmup = plan.TraceWarmup
	}
	r := &replay{
		rows: rows, speed: s.Level.Speedup, context: s.target.Context, first: rows.Before(first, time.Duration(float64(warmup)*s.Level.Speedup)),
		Replay: &load.Replay{Due: due}, children: map[int][]int{}, answered: map[int]bool{}, ripe: map[int]bool{}, waits: map[int]func() bool{},
	}
	r.Warm = first - r.first
	for i, row := range rows.Rows[r.first:] {
		r.At = append(r.At, r.scaled(row.At-from))
		if row.Parent >= r.first {
			r.children[row.Parent-r.first] = append(r.children[row.Parent-r.first], i)
		}
	}
	r.shared = rows.Repeats(r.first, first+due, r.context, true)
	return r
}

// replays runs the windows of a replay. The parameter due holds the number of measured requests of
// each round. If the replayed stretch of the trace has too few requests for all rounds, the replay
// has several windows, one after another.
func (s *series) replays(due []int) (ended bool, lost error) {
	for len(due) > 0 {
		n, sum := 0, 0
		for n < len(due) && (n == 0 || sum+due[n] <= s.Load.Open.Trace.Due) {
			sum += due[n]
			n++
		}
		if ended, lost = s.window(due[:n]); !ended || lost != nil {
			return ended, lost
		}
		due = due[n:]
	}
	return true, nil
}

// plays sends a row of the trace when its time has come. If the row must wait for the answer to an
// earlier row, and that answer is missing, plays only marks the row; the answer then sends it.
func (w *window) plays(turn load.Turn, at time.Duration) {
	r := w.replay
	i := r.Index(turn.Phase, turn.Order)
	parent, follows := r.follows(i)
	switch {
	case !follows || r.rows.Rows[r.first+i].Wait < 0 && r.answered[parent]:
		w.send(turn, at)
	case r.rows.Rows[r.first+i].Wait < 0:
		r.ripe[i] = true
	}
}

// answers handles the end of the request f. Rows of the trace that had to wait for its answer
// become due.
func (w *window) answers(f *flight) {
	r := w.replay
	parent := r.Index(f.turn.Phase, f.turn.Order)
	r.answered[parent] = true
	for _, i := range r.children[parent] {
		wait, at := r.rows.Rows[r.first+i].Wait, f.sample.End
		if wait >= 0 {
			at += r.scaled(wait)
		} else if !r.ripe[i] {
			continue
		}
		r.waits[i] = w.Clock.Timer(max(at, w.Clock.Now()), func() {
			delete(r.waits, i)
			if w.halted() || w.pending == 0 {
				return
			}
			if len(w.flights) == 0 {
				w.waiting = w.Clock.Now()
			}
			w.send(r.Turn(i), at)
		})
	}
}
