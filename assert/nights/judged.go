package nights

import (
	"math"
	"slices"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// judgedLane is a lane of a series with what was found in it.
type judgedLane struct {
	lane
	src     *series
	at      []int // indices of the lane's nights
	watched []night
	last    night         // of the last night with a value
	changes []changePoint // in order
	alarm   int           // index of the change that the last night reports; -1 if there is none
}

// changePoint is a change of a lane.
type changePoint struct {
	cut
	weekly float64 // of a drift, how much the value moves in a week; 0 for a step
}

// readAll reads the series as lanes of the function watch. It returns the trends of the series that
// cannot be judged, by the index of the series.
func readAll(list []*series, nights []metric.Night, opts Options,
	known map[metric.Trend]map[laneName]memory) (out []*judgedLane, not map[int]Trend) {
	runners := make([]string, len(nights))
	for i, n := range nights {
		if n.Job != nil {
			runners[i] = n.Job.Runner
		}
	}
	not = map[int]Trend{}
	for i, s := range list {
		c, t, ok := s.read(nights, opts)
		if !ok {
			not[i] = t
			continue
		}
		for _, l := range lanes(c, runners, known[s.key], len(out)) {
			out = append(out, &judgedLane{src: s, lane: l})
		}
	}
	return out, not
}

func columnsOf(list []*judgedLane) []column {
	out := make([]column, len(list))
	for i, l := range list {
		out[i] = l.column
	}
	return out
}

// judge judges all series of the nights together, and fills in the trends and the events.
func (r *Result) judge(nights []metric.Night, opts Options, known map[metric.Trend]map[laneName]memory) {
	list := gather(nights)
	all, not := readAll(list, nights, opts, known)
	watched, states := watchAll(columnsOf(all))
	var living []*judgedLane
	for i, l := range all {
		if l.living {
			l.find(watched[i], nights)
			living = append(living, l)
		}
	}
	r.Events = events(living, nights)
	trendOf := map[*judgedLane]int{}
	for i, s := range list {
		if t, is := not[i]; is {
			r.Trends = append(r.Trends, t)
			continue
		}
		for _, l := range living {
			if l.src == s {
				trendOf[l] = len(r.Trends)
				r.Trends = append(r.Trends, l.trend(nights, opts))
			}
		}
	}
	for i := range r.Events {
		for k, of := range r.Events[i].Trends {
			r.Events[i].Trends[k] = trendOf[living[of]]
		}
	}
	judged := 0
	for _, t := range r.Trends {
		if t.Outcome != verdict.Skipped {
			judged++
		}
	}
	r.ByChance = byChance(states, judged)
}

func (l *judgedLane) find(watched []night, nights []metric.Night) {
	for i, x := range l.values {
		if !math.IsNaN(x) {
			l.at = append(l.at, i)
		}
	}
	l.watched, l.alarm = watched, -1
	tonight := l.at[len(l.at)-1]
	watched = watched[:tonight+1]
	cuts := located(l.column, watched)
	l.last = watched[tonight]
	if tonight >= l.from {
		l.last.confirm(cuts, l.column, watched)
	}
	for _, c := range cuts {
		l.changes = append(l.changes, changePoint{cut: c})
	}
	if !l.last.Changed {
		return
	}
	if c, ok := l.last.began(cuts, l.column); ok {
		l.alarm = slices.Index(cuts, c)
	} else {
		from := l.last.From
		l.alarm = len(cuts)
		before := l.last.Expected.Center
		l.changes = append(l.changes, changePoint{cut: cut{Night: from, Before: before, After: before + l.last.Shift, P: math.NaN()}})
	}
	l.creep(nights)
}

// failing reports whether the lane fails tonight: its last night has a change for the worse that
// still counts.
func (l *judgedLane) failing(tonight int) bool {
	return l.last.Changed && l.last.Worse && l.lasts(l.last.From, tonight)
}

// beyondErrors is how far the last nights must be beyond what is accepted, in standard errors. All
// nights since the change together need no margin.
const beyondErrors = 2

// beyond reports whether a series is worse than is allowed. worse holds how much worse than the
// reference each night since the change is, the last night first, and sigma is the noise of a night. It
// asks all nights together, and the last two, three or five, which show that a change has grown.
func beyond(worse []float64, sigma, allowed float64) bool {
	sum := 0.0
	for i, x := range worse {
		sum += x
		n := float64(i + 1)
		switch i + 1 {
		case 2, 3, 5:
			if sum/n > allowed+beyondErrors*sigma/math.Sqrt(n) {
				return true
			}
		}
	}
	return len(worse) == 0 || sum/float64(len(worse)) > allowed
}
