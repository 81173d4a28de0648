package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Passage shows one window of an open loop over time: the arrivals, and the requests in flight. If
// a level has several windows, the document has only the first. Windows counts them all.
type Passage struct {
	Server   string `json:"server"`
	Workload string `json:"workload"`
	// Levels lists the levels of the window in the order in which they ran. They are the stages of
	// a load, or a single level. Begins lists when they began, in seconds from the start of the
	// window.
	Levels  []string  `json:"levels"`
	Begins  []float64 `json:"begins_s"`
	Windows int       `json:"windows"`
	At      float64   `json:"at_s"`   // start of the window, in seconds since the start of the run
	Step    float64   `json:"step_s"` // seconds that one element of the lists below covers
	// Arrivals is the number of measured requests that were due in each step. InFlight is, for each
	// step, the largest number of requests in flight at the same time: due and not yet ended.
	// Waiting is the largest number of requests in flight that had no token yet.
	Arrivals []int `json:"arrivals"`
	InFlight []int `json:"in_flight"`
	Waiting  []int `json:"waiting"`
}

// A document has at most mostPassages passages, each of passageSteps steps.
const (
	mostPassages = 24
	passageSteps = 48
)

// stretch is a round of an open loop, with the level that it belongs to.
type stretch struct {
	level *metric.Level
	round *metric.Round
}

// passages returns the measured windows of open loops, for the levels that the plan declares. The
// requests of a mix appear once, under the mix, not under its parts.
func (b *builder) passages() []Passage {
	type owner struct{ server, workload string }
	var order []owner
	of := map[owner][]stretch{}
	for _, l := range b.run.Levels {
		if l.Kind != metric.OpenLoop || l.Probe != nil {
			continue
		}
		k := owner{l.Server, l.Workload}
		if of[k] == nil {
			order = append(order, k)
		}
		for _, r := range l.Rounds {
			if r.WindowEnd > r.WindowStart {
				of[k] = append(of[k], stretch{l, r})
			}
		}
	}
	var out []Passage
	for _, k := range order {
		var own []Passage
		for _, w := range joined(of[k]) {
			p := b.passage(w)
			if i := slices.IndexFunc(own, func(x Passage) bool { return slices.Equal(x.Levels, p.Levels) }); i >= 0 {
				own[i].Windows++
				continue
			}
			own = append(own, p)
		}
		out = append(out, own...)
	}
	return out[:min(len(out), mostPassages)]
}

// joined groups the rounds of an open loop into windows. A round continues a window if it begins
// where the round before ends. Both rounds must belong to the same level, or to stages.
func joined(list []stretch) (windows [][]stretch) {
	slices.SortStableFunc(list, func(x, y stretch) int { return cmp.Compare(x.round.WindowStart, y.round.WindowStart) })
	for i, x := range list {
		if i == 0 || list[i-1].round.WindowEnd != x.round.WindowStart || x.level.Stage == nil && list[i-1].level != x.level {
			windows = append(windows, nil)
		}
		last := &windows[len(windows)-1]
		*last = append(*last, x)
	}
	return windows
}

func (b *builder) passage(window []stretch) Passage {
	first := window[0]
	from, to := first.round.WindowStart, window[len(window)-1].round.WindowEnd
	p := Passage{Server: first.level.Server, Workload: first.level.Workload, Windows: 1,
		At: from.Seconds(), Step: (to - from).Seconds() / passageSteps, Arrivals: make([]int, passageSteps)}
	var flights, waits []span
	for _, x := range window {
		if name := x.level.Name; len(p.Levels) == 0 || p.Levels[len(p.Levels)-1] != name {
			p.Levels, p.Begins = append(p.Levels, name), append(p.Begins, (x.round.WindowStart-from).Seconds())
		}
		for _, s := range x.round.All() {
			flights = append(flights, span{s.Scheduled, s.End})
			waits = append(waits, span{s.Scheduled, cmp.Or(s.First, s.End)})
			if s.Phase == metric.Measured && s.Scheduled >= from && s.Scheduled <= to {
				p.Arrivals[min(int(passageSteps*(s.Scheduled-from)/(to-from)), passageSteps-1)]++
			}
		}
	}
	p.InFlight, p.Waiting = countOverlaps(flights, from, to), countOverlaps(waits, from, to)
	return p
}

// span is a period during which a request was in flight, or waited for its first token.
type span struct{ from, to time.Duration }

// countOverlaps divides a time into equal steps. For each step it returns the largest number of
// spans that overlap at one instant.
func countOverlaps(spans []span, from, to time.Duration) []int {
	type change struct {
		at time.Duration
		by int
	}
	var changes []change
	for _, s := range spans {
		changes = append(changes, change{s.from, 1}, change{s.to, -1})
	}
	slices.SortFunc(changes, func(x, y change) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(y.by, x.by)) })
	out := make([]int, passageSteps)
	now, i := 0, 0
	for ; i < len(changes) && changes[i].at <= from; i++ {
		now += changes[i].by
	}
	for k := range out {
		out[k] = now
		for end := from + (to-from)*time.Duration(k+1)/passageSteps; i < len(changes) && changes[i].at < end; i++ {
			now += changes[i].by
			out[k] = max(out[k], now)
		}
	}
	return out
}

func (p *Passage) sum() int {
	n := 0
	for _, x := range p.Arrivals {
		n += x
	}
	return n
}
