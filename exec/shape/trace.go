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
	Windowed: true, Takes: rates.Takes, Requests: planned,
}

// Trace says when the rows of recorded traffic are due. The first row that is sent has the number
// 0.
type Trace struct {
	*load.Replay
	Rows     *traffic.Replay
	First    int // index in Rows of the first row that is sent
	speed    float64
	children map[int][]int
	answered map[int]bool
	ripe     map[int]bool // rows that are due, but wait for an earlier answer
}

// newTrace returns the replay of one window. It sends the recorded stretch; in a comparison, only
// the part of the stretch for this leg, one server's turn.
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
		Rows: rows, First: rows.Before(first, time.Duration(float64(warmup)*speed)), Replay: &load.Replay{Due: e.due()},
		speed: speed, children: map[int][]int{}, answered: map[int]bool{}, ripe: map[int]bool{},
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
		if t, ok := w.arrivals.(*Trace); ok {
			return t
		}
	}
	return nil
}

// scaled divides a recorded duration by the speed of the replay.
func (t *Trace) scaled(d time.Duration) time.Duration { return time.Duration(float64(d) / t.speed) }

// Row returns the row of a request; nil without a row.
func (t *Trace) Row(phase metric.Phase, order int) (i int, row *traffic.Recorded) {
	if i = t.Index(phase, order); i < 0 {
		return i, nil
	}
	return i, &t.Rows.Rows[t.First+i]
}

func (t *Trace) first() float64 {
	n := sort.Search(len(t.At), func(i int) bool { return t.At[i] >= t.At[0]+client.IdleTimeout })
	return float64(n) / client.IdleTimeout.Seconds()
}

func (t *Trace) begin(now time.Duration) { t.Replay = t.Begin(now) }

func (t *Trace) has(phase metric.Phase) int {
	switch phase {
	case metric.Measured:
		return t.Due
	case metric.Warmup:
		return min(t.Warm, warmupPrompts)
	}
	return min(len(t.At)-t.Warm-t.Due, warmupPrompts)
}

func (t *Trace) next() (load.Turn, time.Duration, bool) { return t.Next() }

func (t *Trace) cold() bool { return t.Warm == 0 }

func (t *Trace) measures() time.Duration { return t.Window() }

func (t *Trace) warmed(turn load.Turn) (over, known bool) { return turn.Order == t.Warm-1, true }

// waits reports whether a row must wait for the answer to an earlier row. A row whose own time has
// come meanwhile goes as soon as that answer is there.
func (t *Trace) waits(turn load.Turn) bool {
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
func (t *Trace) ended(turn load.Turn, end time.Duration, later func(load.Turn, time.Duration)) {
	parent := t.Index(turn.Phase, turn.Order)
	t.answered[parent] = true
	for _, i := range t.children[parent] {
		if wait := t.Rows.Rows[t.First+i].Wait; wait >= 0 {
			later(t.Turn(i), end+t.scaled(wait))
		} else if t.ripe[i] {
			later(t.Turn(i), end)
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
