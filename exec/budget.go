package exec

import (
	"time"

	"github.com/tokgate/tokgate/exec/shape"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// spending is what the runner knows of its time, and of what is still to come.
type spending struct {
	deadline    time.Duration // end of the time that the run may take; 0 if there is no limit
	searches    []wanted      // searches still to come
	remaining   int           // number of fixed levels still to come
	launches    int           // number of server starts still to come
	launchTook  time.Duration // the longest start of a server so far
	fixed       time.Duration // total time of the fixed levels that have ended
	fixedLevels int
	rounds      int                             // number of rounds of the fixed levels so far
	levelBegan  time.Duration                   // beginning of the current fixed level; 0 if none
	took        map[*metric.Level]time.Duration // time of each level
}

// tight reports whether to leave out the next round of the level, because the rest of the plan
// would not fit into the budget at the present pace. The rest is metric.LeastRounds rounds of each
// level, a few probes of each capacity search, and the starts of servers.
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
	// Keep a twentieth of the remaining time in reserve. The end of the budget cuts off whatever
	// still runs.
	left := r.deadline - now
	return need > left-left/20
}

// leastProbes is the number of probes for which each capacity search gets time.
const leastProbes = 4

func (r *runner) ran(l *metric.Level, took time.Duration) {
	r.took[l] = took
	r.levelBegan = 0
	r.fixed += took
	r.fixedLevels++
}

// spare returns the time of the budget that the plan's remaining levels will leave. Each of them
// should take the mean time of the levels so far. A negative time means that the budget is too
// short.
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

// promised returns the sum of the budgets of the searches still to come. A search without a budget
// of its own adds nothing.
func (r *runner) promised() time.Duration {
	var sum time.Duration
	for _, s := range r.searches {
		sum += s.workload.Capacity.Budget
	}
	return sum
}

// searchBudget returns the time for a search; 0 means no limit. The time that the other levels
// leave is divided among the searches. A search gets its part, but at most its own budget. It
// returns false if no time is left.
func (r *runner) searchBudget(c *plan.Capacity) (time.Duration, bool) {
	if r.deadline == 0 {
		return c.Budget, true
	}
	share := r.spare() / time.Duration(max(1, len(r.searches)))
	// Keep a twentieth in reserve: the end of the run's budget cuts off a search that still runs.
	share -= share / 20
	if share <= 0 {
		return 0, false
	}
	if c.Budget > 0 {
		share = min(share, c.Budget)
	}
	return share, true
}

// expected returns how long the level should take, judging by earlier requests of its workload. It
// is 0 if there were none.
func (r *runner) expected(c Case, due []int) time.Duration {
	_, takes := shape.Expected(c, due, r.durations[c.Workload])
	return takes
}

// requests estimates the total number of measured requests of the rounds. due has the smallest
// number for each round.
func (r *runner) requests(c Case, due []int) int {
	n, _ := shape.Expected(c, due, r.durations[c.Workload])
	return n
}

// Warmups returns the number of warm-up requests of a case in all its rounds together. It is 0 if
// the warm-up is set as a duration.
func Warmups(c Case) int {
	if warmups := shape.Of(c).Warmups; warmups != nil {
		return warmups(c)
	}
	return 0
}
