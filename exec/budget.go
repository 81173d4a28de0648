package exec

import (
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// tight reports whether to leave out the next round of the level, to save time. It does so if too
// little time would be left for the rest of the plan at the present pace. The rest is
// metric.LeastRounds rounds of everything that is still to run, and a few probes of every search.
//
// A short budget drops extensions of levels first, then precision of searches, then rounds. It
// never drops a workload.
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
	// Keep a twentieth of the budget in reserve: at its end, everything that still runs is cut off.
	left := r.deadline - now
	return need > left-left/20
}

// leastProbes is the number of probes for which each capacity search gets time.
const leastProbes = 4

// ran records how long a level of the plan took.
func (r *runner) ran(l *metric.Level, took time.Duration) {
	r.took[l] = took
	r.levelBegan = 0
	r.fixed += took
	r.fixedLevels++
}

// spare returns how much of the run's budget remains after the levels of the plan that are still to
// run. It assumes that each of them takes the mean time of the levels so far. A negative time means
// that the budget is too short.
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

// promised returns the total budget of the searches that are still to come. A search without its
// own budget adds nothing.
func (r *runner) promised() time.Duration {
	var sum time.Duration
	for _, s := range r.searches {
		sum += s.workload.Capacity.Budget
	}
	return sum
}

// searchBudget returns the time for a search; 0 means no limit. It is the search's own budget. But
// it is at most the search's share of what the remaining levels leave of the run's budget. It
// returns false if no time is left.
func (r *runner) searchBudget(c *plan.Capacity) (time.Duration, bool) {
	if r.deadline == 0 {
		return c.Budget, true
	}
	share := r.spare() / time.Duration(max(1, len(r.searches)))
	// Keep a twentieth in reserve. The search should end before the run's budget does: at the end
	// of the budget everything that still runs is cut off.
	share -= share / 20
	if share <= 0 {
		return 0, false
	}
	if c.Budget > 0 {
		share = min(share, c.Budget)
	}
	return share, true
}

// expected returns how long the level should take, by the requests of its workload so far. It is 0
// if there were none.
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

// requests estimates how many measured requests the rounds will have in total. due holds the
// smallest number of requests for each round.
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

// closedRound describes a round of n measured requests in a closed loop. d is the mean duration of
// a request; 0 if it is not known.
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

// Warmups returns the number of warm-up requests of a case in all its rounds together. It is 0 if
// the warm-up is set as a duration.
func Warmups(c Case) int {
	rounds := max(c.Level.Rounds, 1)
	switch c.Load.Kind {
	case metric.ClosedLoop:
		return rounds * closedRound(c, 0, 0).Warmup
	case metric.Burst:
		if c.Load.Warmup == plan.WarmupAuto {
			return c.Level.N // a level of bursts has one warm-up, before its first burst
		}
		return rounds * c.Load.Warmup
	}
	return 0
}
