package exec

import "math"

// several runs each of n tasks, in order and at most atOnce at a time, and waits for all of them.
// The function begin begins task i.
//
// When a task ends, it calls the function over once, with a function that the clock's loop is to
// run.
func (r *runner) several(n, atOnce int, begin func(i int, over func(then func()))) {
	open := 0
	for i := range n {
		if !r.check() {
			break
		}
		open++
		begin(i, func(then func()) {
			r.Clock.Post(func() {
				open--
				then()
			})
		})
		r.runUntil(func() bool { return open < atOnce })
	}
	r.runUntil(func() bool { return open == 0 })
}

// inFlight returns the number of requests in flight at the level. For a rate it is the mean over
// the last round, by Little's law.
func inFlight(s *levelRun) int {
	if s.level.N > 0 || s.last == nil {
		return max(s.level.N, 1)
	}
	var spent, from, to float64
	for i, x := range s.last.out.Samples {
		if i == 0 || x.Sent.Seconds() < from {
			from = x.Sent.Seconds()
		}
		spent += (x.End - x.Sent).Seconds()
		to = max(to, x.End.Seconds())
	}
	if to <= from {
		return 1
	}
	return max(1, int(math.Round(spent/(to-from))))
}
