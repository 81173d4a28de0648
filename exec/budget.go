package exec

import (
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// tight reports whether the next round of the level is to be left out, so that
// everything still to come can be measured in metric.LeastRounds rounds at the
// pace so far, and every search makes a few probes. Of what a short budget
// sheds, rounds are the last: extensions go before, and so does the resolution
// of searches, for which no more than those probes is kept. Never a workload.
func (r *runner) tight(l *metric.Level) bool {
	done := len(l.Rounds)
	if l.Shed > 0 {
		return true
	}
	if r.deadline == 0 || done < metric.LeastRounds {
		return false
	}
	now := r.Clock.Now()
	spent := now - r.levelBegan
	pace := (r.fixed + spent) / time.Duration(r.rounds)
	level := (r.fixed + spent) / time.Duration(r.fixedLevels+1)
	need := spent/time.Duration(done) + // this round
		pace*metric.LeastRounds*time.Duration(r.remaining) +
		level*leastProbes*time.Duration(len(r.searches)) +
		r.launchTook*time.Duration(r.launches)
	// A twentieth is kept: the end of the budget ends everything.
	left := r.deadline - now
	return need > left-left/20
}

// leastProbes is how many levels a search is left the time for.
const leastProbes = 4

// ran notes how long a fixed level took.
func (r *runner) ran(l *metric.Level, took time.Duration) {
	r.took[l] = took
	r.levelBegan = 0
	r.fixed += took
	r.fixedLevels++
}

// spare is the part of the run's budget that the remaining fixed levels leave, if each takes as
// long as those before did on average; negative if it is too little.
func (r *runner) spare() time.Duration {
	now := r.Clock.Now()
	took, n := r.fixed, r.fixedLevels
	if r.levelBegan > 0 {
		took, n = took+now-r.levelBegan, n+1
	}
	left := r.deadline - now
	if n > 0 {
		left -= took / time.Duration(n) * time.Duration(r.remaining)
	}
	return left
}

// promised is the time of the searches that are still to come and have a
// budget of their own.
func (r *runner) promised() time.Duration {
	var sum time.Duration
	for _, s := range r.searches {
		sum += s.workload.Capacity.Budget
	}
	return sum
}

// searchBudget is the time of a search: its own budget, and no more than its
// share of what the run's leaves beside the fixed levels that are still to
// come. 0: no bound; false: there is no time at all.
func (r *runner) searchBudget(c *plan.Capacity) (time.Duration, bool) {
	if r.deadline == 0 {
		return c.Budget, true
	}
	share := r.spare() / time.Duration(max(1, len(r.searches)))
	// A twentieth is kept: the search is to end before the run's budget does,
	// since that ends everything.
	share -= share / 20
	if share <= 0 {
		return 0, false
	}
	if c.Budget > 0 {
		share = min(share, c.Budget)
	}
	return share, true
}

// expected guesses how long the level will take, from the requests that the
// workload has sent already; 0 when there were none.
func (r *runner) expected(c Case, due []int) time.Duration {
	d := r.durations[c.Workload]
	sum := time.Duration(0)
	if c.Load.Kind == metric.Users {
		return c.Workload.Settling(c.Load) + time.Duration(len(due))*c.Level.RoundTime() + d
	}
	for _, n := range due {
		switch c.Load.Kind {
		case metric.Burst:
			sum += d
		case metric.OpenLoop:
			sum += time.Duration(float64(n) / c.Level.Rate * float64(time.Second))
		default:
			sum += closedRound(c, n, d).Time(d)
		}
	}
	return sum
}

// requests guesses how many measured requests rounds of at least so many will
// have.
func (r *runner) requests(c Case, due []int) int {
	sum := 0
	for _, n := range due {
		if c.Load.Kind == metric.OpenLoop {
			sum += n
		} else {
			sum += closedRound(c, n, r.durations[c.Workload]).Requests(r.durations[c.Workload])
		}
	}
	return sum
}

// closedRound is a round of n measured requests, each expected to take d (0: not
// known).
func closedRound(c Case, n int, d time.Duration) load.Closed {
	cl := load.Closed{
		Slots: c.Level.N, Due: n, For: c.Level.RoundTime(), Warmup: c.Load.Warmup, Stagger: c.Load.Stagger, Pause: c.Load.Pause,
	}
	if cl.Warmup == plan.WarmupAuto {
		cl.Warmup, cl.Fill = cl.Slots, true
	}
	if cl.Stagger == plan.StaggerAuto {
		cl.Stagger = load.Stagger(d, cl.Pause, cl.Slots)
	}
	return cl
}
