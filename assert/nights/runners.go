package nights

import (
	"math"
	"slices"
)

// lane is the part of a series that is judged by itself: the nights of one runner, or the nights of
// all runners that have few.
type lane struct {
	column
	name laneName
	// living means that tonight's runners are judged in this lane, or could be.
	living bool
}

// laneName identifies a lane within its series.
type laneName struct {
	runner  string // "" if not known
	several bool   // all runners with few nights
}

// lanes splits a series by the runner of each night. Two machines are seldom equally fast, so
// nights of one are not compared with nights of another. A runner is judged by itself when it has
// leastReference earlier nights, or leastKnown if the noise is known from other nights. Until then
// its nights are judged together with those of all other such runners. So nights are judged even if
// every night has another runner. first is the index that the first lane will have among the
// columns of the plan.
//
// A later night does not change the lane of an earlier night.
func lanes(c column, runners []string, known map[laneName]memory, first int) []lane {
	names, alone := maturity(c, runners, known)
	var out []lane
	for k, r := range names {
		l := lane{column: c, name: laneName{runner: r}, living: len(names) == 1}
		l.values, l.before = c.only(func(i int) bool { return runners[i] == r }), known[l.name]
		if len(names) > 1 {
			l.from, l.living = alone[r], alone[r] < len(c.values)
		}
		l.others = allBut(k, len(names), first)
		out = append(out, l)
	}
	if len(names) < 2 {
		return out
	}
	l := lane{column: c, name: laneName{several: true}}
	l.common, l.others = true, allBut(-1, len(names), first)
	l.values, l.before = c.only(func(i int) bool { return i < alone[runners[i]] }), known[l.name]
	l.lasting = func(from, tonight int) bool {
		for i := from; i <= tonight; i++ {
			if !math.IsNaN(l.values[i]) && alone[runners[i]] > tonight {
				return true
			}
		}
		return false
	}
	for _, r := range names {
		l.living = l.living || alone[r] == len(c.values)
	}
	return append(out, l)
}

// maturity returns the runners of a series, in the order of their first nights, and for each the
// first night that is judged by itself; the number of nights if there is none.
func maturity(c column, runners []string, known map[laneName]memory) (names []string, alone map[string]int) {
	earlier := map[string]int{} // nights of each runner
	alone = map[string]int{}
	for i, x := range c.values {
		if math.IsNaN(x) {
			continue
		}
		r, enough := runners[i], leastReference
		if !slices.Contains(names, r) {
			names = append(names, r)
			alone[r] = len(c.values)
		}
		if known[laneName{runner: r}].noise.N >= leastReference ||
			slices.ContainsFunc(names, func(o string) bool { return o != r && earlier[o] >= leastReference }) {
			enough = leastKnown
		}
		if earlier[r] >= enough {
			alone[r] = min(alone[r], i)
		}
		earlier[r]++
	}
	return names, alone
}

// only returns the values of the nights that match, and NaN for all others.
func (c column) only(matches func(night int) bool) []float64 {
	out := slices.Clone(c.values)
	for i := range out {
		if math.IsNaN(out[i]) || !matches(i) {
			out[i] = math.NaN()
		}
	}
	return out
}

// allBut returns the numbers from first to first+n-1, but not first+k.
func allBut(k, n, first int) []int {
	var out []int
	for i := range n {
		if i != k {
			out = append(out, first+i)
		}
	}
	return out
}
