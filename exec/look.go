package exec

import (
	"fmt"
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

// Look is a planned moment at which a level is judged: on so many measured
// requests, the first ones by start, all of which have ended; 0: on all. Its
// Outcome is not known yet.
type Look = metric.Look

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

// looks plans those at a case, before it is run.
func (r *runner) looks(c Case) []plan.Look {
	if r.Judge == nil {
		return []plan.Look{{Due: load.Split(c.Level.Requests, max(c.Level.Rounds, 1)), Requests: c.Level.Requests, Spent: 1, Planned: 1}}
	}
	return r.Plan.Looks(c.Workload, c.Load, c.Level)
}

// decides holds a planned look, and says whether the level goes on.
func (s *series) decides(at plan.Look, last bool) (on bool) {
	l, look := s.level, metric.Look{Requests: at.Requests, Planned: at.Planned, Spent: at.Spent}
	ahead := at.Requests < s.Level.Requests && l.Shed == 0
	if last && !at.Extends {
		// Nothing hangs on it: it is left to the end of the run.
		if len(l.Looks) > 0 {
			l.Looks = append(l.Looks, look)
		}
		return false
	}
	j := s.Judge(s.Workload, l, look)
	if ahead && (j.Invalid != "" || j.Outcome == search.Pass && at.Spent == 0 || j.Outcome != search.Pass && j.Outcome != search.Fail) {
		look.Outcome = search.Inconclusive.String()
		l.Looks = append(l.Looks, look)
		return true
	}
	look.Outcome = j.Outcome.String()
	l.Looks = append(l.Looks, look)
	if ahead {
		said := map[search.Outcome]string{search.Pass: "passed", search.Fail: "failed"}[j.Outcome]
		l.Notes = append(l.Notes, fmt.Sprintf("it %s after %d of %d requests and was ended", said, at.Requests, s.Level.Requests))
	}
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
func (s *series) affords(at plan.Look) bool {
	if !s.check() {
		return false
	}
	if s.deadline == 0 {
		return true
	}
	takes, left := s.expected(s.Case, at.Due), s.spare()-s.promised()
	if takes > left {
		s.level.Notes = append(s.level.Notes, fmt.Sprintf("not extended to %d requests: that takes about %v, and the budget leaves %v",
			at.Requests, takes.Round(time.Second), max(0, left).Round(time.Second)))
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
