package nights

import (
	"maps"
	"math"
	"slices"

	"github.com/tokgate/tokgate/metric"
)

const (
	// leastTogether is the minimum number of series that make an event.
	leastTogether = 2
	// aroundEvent is how many nights a change may be located from the night of its event.
	aroundEvent = 2
)

// vote is a step of one series, which may be part of an event.
type vote struct {
	of, change int // indices of the lane and of its change
	worse      bool
}

// events finds the nights on which several series changed in the same direction. It moves the
// changes of an event to its night, because several series date it better than one. Trends of an
// event are indices of lanes.
func events(lanes []*judgedLane, nights []metric.Night) []Event {
	var votes []vote
	for i, l := range lanes {
		for k, c := range l.changes {
			if c.weekly == 0 {
				sign := float64(l.worse)
				if sign == 0 {
					sign = math.Copysign(1, c.After-c.Before)
				}
				votes = append(votes, vote{i, k, sign*(c.After-c.Before) > 0})
			}
		}
	}
	var out []Event
	for {
		var most []vote
		for night := range nights {
			for _, worse := range []bool{true, false} {
				if together := around(lanes, votes, night, worse); len(together) > len(most) {
					most = together
				}
			}
		}
		if len(most) < leastTogether {
			break
		}
		votes = slices.DeleteFunc(votes, func(v vote) bool { return slices.Contains(most, v) })
		out = append(out, eventOf(lanes, most, nights))
	}
	slices.SortFunc(out, func(a, b Event) int { return a.Started.Compare(b.Started) })
	return out
}

// around returns the votes within aroundEvent nights of a night, at most one of each series.
func around(lanes []*judgedLane, votes []vote, night int, worse bool) []vote {
	var out []vote
	for _, v := range votes {
		from := night - lanes[v.of].changes[v.change].Night
		if v.worse == worse && -aroundEvent <= from && from <= aroundEvent &&
			!slices.ContainsFunc(out, func(o vote) bool { return lanes[o.of].src == lanes[v.of].src }) {
			out = append(out, v)
		}
	}
	return out
}

// eventOf places an event on the night that fits best: the squared deviations from the levels before
// and after, of all series together, are smallest.
func eventOf(lanes []*judgedLane, votes []vote, nights []metric.Night) Event {
	low, high := math.MaxInt, 0
	for _, v := range votes {
		night := lanes[v.of].changes[v.change].Night
		low, high = min(low, night), max(high, night)
	}
	low, high = max(low-aroundEvent, 1), min(high+aroundEvent, len(nights)-1)
	at, least := low, math.Inf(1)
	for night := low; night <= high; night++ {
		sum := 0.0
		for _, v := range votes {
			sum += lanes[v.of].misfit(v.change, night, low, high)
		}
		if sum < least {
			at, least = night, sum
		}
	}
	e := Event{Run: nights[at].Run, Started: nights[at].Started, Worse: votes[0].worse, Job: nights[at].Job, Least: math.Inf(1)}
	servers := map[string]bool{}
	for _, v := range votes {
		l := lanes[v.of]
		c := &l.changes[v.change]
		c.Night = l.nightFrom(at)
		e.Trends = append(e.Trends, v.of)
		size := l.src.scale.size(c.After - c.Before)
		e.Least, e.Most = min(e.Least, size), max(e.Most, size)
		servers[l.src.key.Server] = true
	}
	for _, server := range slices.Sorted(maps.Keys(servers)) {
		for _, d := range differs(nights[at-1], nights[at], server) {
			e.Differs = append(e.Differs, server+": "+d)
		}
	}
	return e
}

// misfit returns the sum of the squared deviations of the nights from low to high, in standard
// deviations, if the change was on the given night.
func (l *judgedLane) misfit(change, night, low, high int) float64 {
	c, sum := l.changes[change], 0.0
	for i := low; i <= high; i++ {
		level := c.Before
		if i >= night {
			level = c.After
		}
		if x := l.values[i]; !math.IsNaN(x) {
			z := min(math.Abs(x-level)/max(l.last.Expected.Sigma, l.floor), mostNight)
			sum += z * z
		}
	}
	return sum
}

// nightFrom returns the lane's first night that is not before the given one; its last night if
// there is none.
func (l *judgedLane) nightFrom(night int) int {
	i, _ := slices.BinarySearch(l.at, night)
	return l.at[min(i, len(l.at)-1)]
}
