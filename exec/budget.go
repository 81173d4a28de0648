package exec

import (
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// tight reports whether to leave out the next round of the level. It is left out if the
// time left would not suffice for metric.LeastRounds rounds of everything still to come, at
// the pace so far, and for a few probes of every search. A short budget drops extensions
// first, then resolution of searches (only those few probes are reserved), then rounds, and
// never a workload.
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
	// Keep a twentieth in reserve, because the end of the budget cuts off all that is running.
	left := r.deadline - now
	return need > left-left/20
}

// leastProbes is the number of levels for which each search gets time.
const leastProbes = 4

// ran records how long a fixed level took.
func (r *runner) ran(l *metric.Level, took time.Duration) {
	r.took[l] = took
	r.levelBegan = 0
	r.fixed += took
	r.fixedLevels++
}

// spare returns how much of the run's budget remains after the fixed levels that have not run
// yet. It assumes that each of them takes the mean time of the levels so far. It is negative if
// the budget is too short.
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

// promised is the total budget of the searches still to come that have their own
// budgets.
func (r *runner) promised() time.Duration {
	var sum time.Duration
	for _, s := range r.searches {
		sum += s.workload.Capacity.Budget
	}
	return sum
}

// searchBudget returns the time for a search: the search's own budget, but at most its share of
// the run's budget that the remaining fixed levels leave. 0 means that the time is not bounded.
// false means that no time is left.
func (r *runner) searchBudget(c *plan.Capacity) (time.Duration, bool) {
	if r.deadline == 0 {
		return c.Budget, true
	}
	share := r.spare() / time.Duration(max(1, len(r.searches)))
	// Keep a twentieth in reserve. The search should end before the run's budget does, because
	// the end of the budget cuts off all that is running.
	share -= share / 20
	if share <= 0 {
		return 0, false
	}
	if c.Budget > 0 {
		share = min(share, c.Budget)
	}
	return share, true
}

// expected estimates how long the level will take, from the workload's requests so far. It is 0
// if the workload had no requests yet.
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

// requests estimates the number of measured requests in rounds. due holds the smallest number of
// requests of each round.
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

// closedRound describes a round of n measured requests in a closed loop. d is the duration of a
// request; 0 if it is not known.
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

// Warmups is the number of warm-up requests of a case, over all its rounds. It is 0 if the
// warm-up is a duration.
func Warmups(c Case) int {
	rounds := max(c.Level.Rounds, 1)
	switch c.Load.Kind {
	case metric.ClosedLoop:
		return rounds * closedRound(c, 0, 0).Warmup
	case metric.Burst:
		if c.Load.Warmup == plan.WarmupAuto {
			return c.Level.N // bursts are warmed up once, before the first one
		}
		return rounds * c.Load.Warmup
	}
	return 0
}
