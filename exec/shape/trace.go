package shape

import (
	"sort"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

var traces = &Kind{
	New:      func(e Env) Shape { return newWindow(e, newTrace(e)) },
	Windowed: true, Takes: rates.Takes,
}

// Trace says when the rows of recorded traffic are due. The first row that is sent has the number
// 0. The first Warm rows are a warm-up before the window. The next Due rows are measured. The
// remaining rows only keep up the load.
type Trace struct {
	Rows             *traffic.Replay
	First, Warm, Due int             // First is the index in Rows of the first row that is sent
	At               []time.Duration // when each row is due, from the beginning of the window
	began            time.Duration   // beginning of the window
	sent             int             // rows that were due so far
	speed            float64
	children         map[int][]int
	answered         map[int]bool
	ripe             map[int]bool // rows that are due, but wait for an earlier answer
}

// newTrace returns the replay of one window. It sends the recorded stretch; in a comparison, only
// the part of the stretch for this leg.
func newTrace(e Env) *Trace {
	open, rows := e.Load.Open, e.Load.Open.Trace
	from, skip := rows.From, 0
	if e.Leg {
		for i := range e.Index % e.Case.Level.Rounds {
			skip += e.Case.Level.RoundRequests(i)
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
	speed := e.Case.Level.Speedup
	t := &Trace{
		Rows: rows, First: rows.Before(first, time.Duration(float64(warmup)*speed)), Due: e.due(), speed: speed,
		children: map[int][]int{}, answered: map[int]bool{}, ripe: map[int]bool{},
	}
	t.Warm = first - t.First
	for i, row := range rows.Rows[t.First:] {
		t.At = append(t.At, t.scaled(row.At-from))
		if row.Parent >= t.First {
			t.children[row.Parent-t.First] = append(t.children[row.Parent-t.First], i)
		}
	}
	return t
}

// TraceOf returns the recorded traffic that a shape replays; nil if it replays none.
func TraceOf(s Shape) *Trace {
	if w, ok := s.(*window); ok {
		return w.trace
	}
	return nil
}

func (t *Trace) scaled(d time.Duration) time.Duration { return time.Duration(float64(d) / t.speed) }

// Turn returns the request of a row.
func (t *Trace) Turn(i int) load.Ticket {
	switch {
	case i < t.Warm:
		return load.Ticket{Phase: metric.Warmup, Order: i}
	case i < t.Warm+t.Due:
		return load.Ticket{Phase: metric.Measured, Order: i - t.Warm}
	}
	return load.Ticket{Phase: metric.Filler, Order: i - t.Warm - t.Due}
}

// Row returns the number of a request's row, and the row.
func (t *Trace) Row(phase metric.Phase, order int) (i int, row *traffic.Recorded) {
	switch i = order; phase {
	case metric.Measured:
		i += t.Warm
	case metric.Filler:
		i += t.Warm + t.Due
	}
	return i, &t.Rows.Rows[t.First+i]
}

func (t *Trace) first() float64 {
	n := sort.Search(len(t.At), func(i int) bool { return t.At[i] >= t.At[0]+client.IdleTimeout })
	return float64(n) / client.IdleTimeout.Seconds()
}

func (t *Trace) begin(now time.Duration) {
	t.began = now
	if t.Warm > 0 {
		t.began -= t.At[0]
	}
}

func (t *Trace) has(phase metric.Phase) int {
	switch phase {
	case metric.Measured:
		return t.Due
	case metric.Warmup:
		return t.Warm
	}
	return len(t.At) - t.Warm - t.Due
}

func (t *Trace) next() (turn load.Ticket, at time.Duration, ok bool) {
	if t.sent == len(t.At) {
		return load.Ticket{}, 0, false
	}
	t.sent++
	return t.Turn(t.sent - 1), t.began + t.At[t.sent-1], true
}

func (t *Trace) measures() time.Duration { return t.began }

// waits reports whether a row must wait for the answer to an earlier row. A row whose own time has
// come meanwhile goes as soon as that answer is there.
func (t *Trace) waits(turn load.Ticket) bool {
	i, row := t.Row(turn.Phase, turn.Order)
	parent := row.Parent - t.First
	switch {
	case parent < 0 || row.Wait < 0 && t.answered[parent]:
		return false
	case row.Wait < 0:
		t.ripe[i] = true
	}
	return true
}

// ended makes the rows due that had to wait for this answer.
func (t *Trace) ended(turn load.Ticket, end time.Duration, later *agenda[Due]) {
	parent, _ := t.Row(turn.Phase, turn.Order)
	t.answered[parent] = true
	for _, i := range t.children[parent] {
		if wait := t.Rows.Rows[t.First+i].Wait; wait >= 0 {
			later.add(end+t.scaled(wait), Due{Ticket: t.Turn(i)})
		} else if t.ripe[i] {
			later.add(end, Due{Ticket: t.Turn(i)})
		}
	}
}

// Windows divides units into windows. If the replayed stretch of a trace has too few requests for
// all of them, the replay has several windows, one after another.
func Windows(c Case, due []int) [][]int {
	var out [][]int
	switch {
	case !Of(c).Windowed:
		for _, n := range due {
			out = append(out, []int{n})
		}
		return out
	case c.Level.Speedup == 0:
		return [][]int{due}
	}
	for len(due) > 0 {
		n, sum := 0, 0
		for n < len(due) && (n == 0 || sum+due[n] <= c.Load.Open.Trace.Due) {
			sum += due[n]
			n++
		}
		out, due = append(out, due[:n]), due[n:]
	}
	return out
}
