package assert

import (
	"slices"
	"time"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// seenAt is the last look at a comparison that a server and a workload take part in.
type seenAt struct {
	*plan.Compare
	record *metric.Comparison
	rounds int // of the look
}

// looksAt returns the last looks at the comparisons of a workload on a server.
func looksAt(p *plan.Plan, run *metric.Run, server string, w *plan.Workload) (out []seenAt) {
	for _, c := range p.Compares {
		on := c.Candidate.Address() == server || c.Control.Server != nil && c.Control.Server.Address() == server
		if !on || !slices.Contains(c.Workloads(p), w) {
			continue
		}
		for _, r := range run.Comparisons {
			if r != nil && r.Name == c.Name && len(r.Looks) > 0 {
				out = append(out, seenAt{c, r, r.Looks[len(r.Looks)-1].Rounds})
				break
			}
		}
	}
	return out
}

// shed returns the level as planned, or with fewer rounds if its comparisons ended earlier.
func shed(w *plan.Workload, looks []seenAt, level plan.Level) plan.Level {
	n := 0
	for _, at := range looks {
		n = max(n, at.rounds)
	}
	if n > 0 && n < level.Rounds {
		level.Requests, level.Duration, level.Rounds = w.SentIn(level, n), time.Duration(n)*level.RoundTime(), n
	}
	return level
}

// stagedError sets the error at which the candidate's thresholds pass, and returns the error at which
// they fail. If the comparison may go on, it also sets the number of requests that are due.
func (s *subject) stagedError(p *plan.Plan, looks []seenAt, level plan.Level) (fail float64, staged bool) {
	fail = s.alpha
	for _, at := range looks {
		if at.Candidate.Address() != s.level.Server {
			continue
		}
		passes, fails, ok := compare.Errors(p, at.Compare, at.record, s.workload, s.policy.Alpha())
		if !ok {
			continue
		}
		staged, s.alpha, fail = true, min(s.alpha, passes), min(fail, fails)
		if most := slices.Max(at.record.Planned); at.rounds < most && len(s.level.Overran()) == 0 {
			s.due = max(s.due, s.workload.SentIn(level, most))
		}
	}
	return fail, staged
}

// inStages judges thresholds at a look of a staged comparison: each passes at the error of one test,
// and fails at the smaller error of as many tests as the plan has for the workload. A percentile or a
// mean waits until the server has started compare.LeastStarts times, because starts differ.
func (s *subject) inStages(list []required, fail float64) []verdict.Verdict {
	out := s.thresholds(list)
	pass := s.alpha
	s.alpha = fail
	strict := s.thresholds(list)
	s.alpha = pass
	for i := range out {
		v := &out[i]
		if v.Outcome == verdict.Fail && strict[i].Outcome != verdict.Fail {
			v.Outcome = verdict.Inconclusive
			v.Note("judged alone, this threshold would fail. But all that the plan requires is tested together, so one of them may fail by chance")
		}
		t := list[i].Threshold
		if few := len(s.level.Rounds) < compare.LeastStarts; few && !t.Stat.Exact() && !t.Stat.IsShare() && t.Metric.Name != "success" &&
			(v.Outcome == verdict.Pass || v.Outcome == verdict.Fail) {
			v.Outcome, v.More = verdict.Inconclusive, 0
			v.Needs = "needs " + verdict.Count(compare.LeastStarts, "starts") + " of the server, because starts differ"
		}
	}
	return out
}
