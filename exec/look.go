package exec

import (
	"fmt"
	"slices"
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/exec/search"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Judge says what a level came to, as far as it was measured. A level with a
// Probe is judged by the thresholds of the workload's capacity, any other by
// those that hold at it.
type Judge func(w *plan.Workload, l *metric.Level, look Look) Judgement

// Look is a planned moment at which a level is judged.
type Look struct {
	// Requests is how many measured requests are judged: the first ones by
	// start, all of which have ended; 0: all.
	Requests int
	// Planned is over how many looks the error probability is split; 0: 1.
	Planned int
}

// Judgement is what a look came to.
type Judgement struct {
	Outcome search.Outcome
	// Invalid says why the measurement cannot be judged; "" when it can.
	Invalid string
	// Needs is about how many more requests would settle an inconclusive
	// outcome; 0: unknown, negative: no number would.
	Needs   int
	Binding string // the threshold that failed, or came closest to it
	Margins []search.Margin
}

// A look in the middle of a fixed level may only end it for a failure, and so
// costs a sound server nothing but the chance of a false alarm: a tenth of what
// the verdict allows itself.
const abortShare = 10

// stage is a stretch of a level up to a look.
type stage struct {
	due      []int // measured requests of its rounds
	requests int   // at its end, those of the stages before included
	planned  int
	abort    bool // only a failure counts
	extends  bool // beyond what the plan asks for
}

// stages plans the looks of a fixed level, before it is run: half-way, at its
// end, and, where the plan has an inconclusive level extended, at twice its
// requests and so on up to the most that the plan allows.
func (r *runner) stages(c Case) []stage {
	due := load.Split(c.Level.Requests, max(c.Level.Rounds, 1))
	whole := stage{due: due, requests: c.Level.Requests, planned: 1}
	if !r.judges(c) {
		return []stage{whole}
	}
	looks := []int{c.Level.Requests}
	if c.Workload.Policy.OnInconclusive == plan.Extend {
		most := c.Workload.Policy.MaxRequests
		if most == 0 {
			most = 4 * c.Level.Requests
		}
		looks = lookPlan(c.Load.Kind, c.Level.N, c.Level.Requests, most)
	}
	whole.planned = len(looks)
	stages := []stage{whole}
	if half := len(due) / 2; half > 0 {
		first := stage{due: due[:half], planned: abortShare * whole.planned, abort: true}
		for _, n := range first.due {
			first.requests += n
		}
		whole.due = due[half:]
		stages = []stage{first, whole}
	}
	for i, k := range looks[1:] {
		stages = append(stages, stage{
			due: roundsOf(c, k-looks[i]), requests: k, planned: whole.planned, extends: true,
		})
	}
	return stages
}

// judges says whether looks at the level could end or extend it.
func (r *runner) judges(c Case) bool {
	if r.Judge == nil || r.Plan.Gate.MeasureOnly || c.Workload.Policy.Decide == plan.Estimate {
		return false
	}
	return slices.ContainsFunc(c.Workload.SLAs, func(s *plan.SLA) bool {
		return s.Severity == plan.SeverityError && slices.Contains(s.At, c.Level.Name)
	})
}

// lookPlan doubles the requests from first up to most; of bursts whole ones.
func lookPlan(kind metric.LoadKind, n, first, most int) []int {
	if kind == metric.Burst {
		most -= most % n
	}
	return search.Doubling(first, max(first, most))(n)
}

// roundsOf shares out further requests of a level in rounds of about the size
// that the level has; never of fewer requests than are in flight.
func roundsOf(c Case, requests int) []int {
	rounds := (requests*c.Level.Rounds + c.Level.Requests - 1) / c.Level.Requests
	return load.Split(requests, max(1, min(rounds, requests/c.Level.N)))
}

// decides holds the look at the end of a stage, and says whether the level
// goes on.
func (s *series) decides(st stage, last bool) (on bool) {
	l, look := s.level, metric.Look{Requests: st.requests, Planned: st.planned}
	if last && !st.extends {
		// Nothing hangs on it: it is left to the end of the run.
		if len(l.Looks) > 0 {
			l.Looks = append(l.Looks, look)
		}
		return false
	}
	j := s.Judge(s.Workload, l, Look{Requests: st.requests, Planned: st.planned})
	if st.abort {
		if j.Invalid != "" || j.Outcome != search.Fail {
			look.Outcome = search.Inconclusive.String()
			l.Looks = append(l.Looks, look)
			return true
		}
		l.Notes = append(l.Notes, fmt.Sprintf("it failed after %d of %d requests and was ended", st.requests, s.Level.Requests))
	}
	look.Outcome = j.Outcome.String()
	l.Looks = append(l.Looks, look)
	if j.Invalid != "" || j.Outcome != search.Inconclusive {
		return false
	}
	if j.Needs < 0 {
		if !last {
			l.Notes = append(l.Notes, "not extended: no number of requests would settle it")
		}
		return false
	}
	return true
}

// affords says whether there is time to extend the level. Of what a short
// budget sheds, extension is the first: the cases that are still to come, and
// the time that searches were promised, go before it.
func (s *series) affords(st stage) bool {
	if !s.check() {
		return false
	}
	if s.deadline == 0 {
		return true
	}
	takes, left := s.expected(s.Case, st.due), s.spare()-s.promised()
	if takes > left {
		s.level.Notes = append(s.level.Notes, fmt.Sprintf("not extended to %d requests: that takes about %v, and the budget leaves %v",
			st.requests, takes.Round(time.Second), max(0, left).Round(time.Second)))
	}
	return takes <= left
}

// tight says whether the next round of the level is to be left out, so that
// everything still to come can be measured in metric.LeastRounds rounds at the
// pace so far, and every search makes a few probes. Of what a short budget
// sheds, rounds are the last: extensions go before, and so does the resolution
// of searches, for which no more than those probes is kept. Never a workload.
func (s *series) tight() bool {
	done := len(s.level.Rounds)
	if s.level.Shed > 0 {
		return true
	}
	if s.deadline == 0 || done < metric.LeastRounds {
		return false
	}
	now := s.Clock.Now()
	spent := now - s.levelBegan
	pace := (s.fixed + spent) / time.Duration(s.rounds)
	level := (s.fixed + spent) / time.Duration(s.fixedLevels+1)
	need := spent/time.Duration(done) + // this round
		pace*metric.LeastRounds*time.Duration(s.remaining) +
		level*leastProbes*time.Duration(len(s.searches)) +
		s.launchTook*time.Duration(s.launches)
	// A twentieth is kept: the end of the budget ends everything.
	left := s.deadline - now
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

// spare is what the run's budget leaves beside the fixed levels that are still
// to come, each of which is expected to take as long as those before did on
// average; negative when that is too little.
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
