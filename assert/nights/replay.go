package nights

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Morning is what a team would have seen on the morning after a night.
type Morning struct {
	Red    bool // a series failed
	Judged bool // a series had enough nights
	// Pinned is the pin that the team made since the morning before; nil if it made none.
	Pinned *metric.Pin
	// Told is the whole result if the morning had something new to say: the verdict changed, a
	// series failed, recovered or was suspect, or the night is the last. Otherwise it is nil.
	Told *Result
}

// Replay judges a history on each of its mornings, with the pins that were made by then. If pinAfter
// is above 0, a red history is pinned after so many red mornings in a row, as a team does that
// accepts every change.
func Replay(h metric.History, opts Options, pinAfter int) []Morning {
	var out []Morning
	var s replayed
	pins, standing := slices.Clone(h.Pins), 0
	h.Pins = nil
	for i, n := range h.Nights {
		m := Morning{}
		for len(pins) > 0 && pins[0].At.Before(n.Started) {
			p := pins[0]
			m.Pinned, h.Pins, pins = &p, append(h.Pins, p), pins[1:]
		}
		if i == 0 || m.Pinned != nil {
			s = replayOf(h, opts)
		}
		fresh := s.morning(&m, i)
		fresh = fresh || m.Pinned != nil || i == 0 || i == len(h.Nights)-1 || m.Judged != out[i-1].Judged
		if standing++; !m.Red {
			standing = 0
		}
		accept := pinAfter > 0 && standing == pinAfter
		if fresh || accept {
			r := Judge(metric.History{Nights: h.Nights[:i+1], Pins: h.Pins}, opts)
			m.Told = &r
		}
		if accept && m.Told.Accept != "" {
			why := fmt.Sprintf("red for %d mornings", pinAfter)
			pins = slices.Insert(pins, 0, metric.Pin{Run: m.Told.Accept, At: n.Started.Add(time.Second), Why: why})
			standing = 0
		}
		out = append(out, m)
	}
	return out
}

// replayed is a history since a pin, judged on every night at once. Later nights do not change the
// result of a night.
type replayed struct {
	first   int // index of the first night since the pin
	lanes   []lane
	watched [][]night
	red     []bool // of each lane, on the last morning
	began   []int  // first night of its change
}

// replayOf judges the nights since the last pin. The nights of h may be later than the morning.
func replayOf(h metric.History, opts Options) replayed {
	before, nights, _ := sinceLastPin(h)
	known := remember(before, opts)
	s := replayed{first: len(h.Nights) - len(nights)}
	nights, _ = sameGPU(nights)
	list, _ := readAll(gather(nights), nights, opts, known)
	for _, l := range list {
		s.lanes = append(s.lanes, l.lane)
	}
	s.start()
	return s
}

func (s *replayed) start() {
	columns := make([]column, len(s.lanes))
	for i, l := range s.lanes {
		columns[i] = l.column
	}
	s.watched, s.red, s.began = watch(columns), make([]bool, len(columns)), make([]int, len(columns))
}

// morning fills in a morning, and reports whether a series failed, recovered or was suspect.
func (s *replayed) morning(m *Morning, of int) (fresh bool) {
	i := of - s.first
	for k, l := range s.lanes {
		was := s.red[k]
		s.night(k, i)
		tonight := s.watched[k][i]
		fresh = fresh || s.red[k] != was || tonight.Suspect && !s.red[k]
		m.Red, m.Judged = m.Red || s.red[k], m.Judged || tonight.Judged && i >= l.from
	}
	return fresh
}

// night says whether a lane is red tonight. It stays as it is on nights that do not measure it.
func (s *replayed) night(k, i int) {
	c, watched := s.lanes[k].column, s.watched[k]
	if math.IsNaN(c.values[i]) {
		s.red[k] = s.red[k] && c.lasts(s.began[k], i)
		return
	}
	tonight := watched[i]
	if !tonight.Changed && i >= c.from {
		tonight.confirm(located(c, watched[:i+1]), c, watched[:i+1])
	}
	s.red[k], s.began[k] = tonight.Changed && tonight.Worse, tonight.From
}
