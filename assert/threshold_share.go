package assert

import (
	"fmt"
	"math"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// share judges success and the goodput share. What fails in a round may fail for
// one reason, and such reasons come seldom: most samples of a few rounds hold
// none, and nothing in them tells how the next would cluster. So that every
// round counts as one request to pass, which failed as far as its requests did:
// an exact binomial test of as many as there are rounds. To fail, where the
// failures are there to be counted, the effective number of requests is used.
func (s *subject) share(v *Verdict, t *plan.Threshold) {
	good := (*metric.Sample).Completed
	noun, point := "failed", s.level.Success()
	if t.Metric.Name == "goodput" {
		if good = sample.Good(s.workload); good == nil {
			noValue(v, t, t.Metric.NoValue)
			return
		}
		noun, point = "were not good", s.level.GoodputShare(good)
	}
	groups, bad := s.badOnes(good)
	v.N, v.Over, v.Value = s.n, float64(bad), point
	if !v.Value.OK {
		noValue(v, t, v.Value.Why)
		return
	}
	if t.Stat.Kind == metric.Every {
		v.Message = fmt.Sprintf("%s %s: %d of %d requests %s", label(t), metric.Format(metric.Ratio, v.Value.V), bad, s.n, noun)
		v.Notes = append(v.Notes, thisRun)
		decided(v, bad == 0)
		return
	}
	if !sample.Upward(t.Op) {
		v.Outcome = Error
		v.Message = fmt.Sprintf("%s can only be bounded from below", label(t))
		return
	}
	share, e := float64(bad)/float64(s.n), 1-t.Limit
	counted := fmt.Sprintf("%s: %d of %d requests %s (%s, allowed %s)", compared(t, v.Value), bad, s.n, noun,
		metric.Format(metric.Ratio, share), metric.Format(metric.Ratio, e))
	if t.Stat.Kind == metric.Observed {
		v.Message = counted
		v.Notes = append(v.Notes, thisRun)
		decided(v, sample.Meets(v.Value.V, t.Op, t.Limit))
		return
	}
	v.Message = counted
	s.certifyShare(v, t, groups, share, e)
}

// certifyShare decides a share of which e may be bad; share is.
func (s *subject) certifyShare(v *Verdict, t *plan.Threshold, groups []stat.Group, share, e float64) {
	lost, rounds := s.byRound(groups)
	// Where rounds are of unequal length, a long bad one weighs by its requests.
	lost = max(lost, share*rounds)
	effective := s.effective(groups, nil)
	low, _, fine := stat.ClopperPearson(share*effective, effective, s.alpha)
	_, high, ok := stat.ClopperPearson(lost, rounds, s.alpha)
	if ok && fine {
		v.Low, v.High = metric.Some(1-high), metric.Some(1-low)
	}
	v.Effective = rounds
	v.Message += ", " + s.bounds(v, metric.Ratio)
	if s.policy.Decide == plan.Estimate {
		estimated(v, sample.Meets(v.Value.V, t.Op, t.Limit))
		return
	}
	switch {
	case stat.Share(share*effective, effective, e, s.alpha) == stat.Above:
		v.Outcome, v.Effective = Fail, effective
		s.notes(v, observations{})
		return
	case stat.Share(lost, rounds, e, s.alpha) == stat.Below:
		v.Outcome = Pass
	default:
		v.Outcome = Inconclusive
		v.Needs, v.More = s.moreForShare(share, lost/rounds, effective, rounds, e)
	}
	if rounds < float64(s.n) {
		v.Notes = append(v.Notes, fmt.Sprintf("requests of one round may fail together: to pass, each of %s counts as one request", verdict.Count(int(rounds), "rounds")))
	}
}

// badOnes counts, block by block, the requests that are not good, the lost ones
// included.
func (s *subject) badOnes(good func(*metric.Sample) bool) (groups []stat.Group, bad int) {
	groups = make([]stat.Group, len(s.blocks))
	for i, b := range s.blocks {
		k := b.lost
		for _, x := range b.samples {
			if !good(x) {
				k++
			}
		}
		groups[i] = stat.Group{K: float64(k), N: float64(len(b.samples) + b.lost)}
		bad += k
	}
	return groups, bad
}

// byRound adds up, over the rounds, the share of each one's requests that is
// bad, and counts the rounds. groups are those of the blocks.
func (s *subject) byRound(groups []stat.Group) (bad, rounds float64) {
	for i := 0; i < len(groups); {
		var k, n float64
		for round := s.blocks[i].round; i < len(groups) && s.blocks[i].round == round; i++ {
			k, n = k+groups[i].K, n+groups[i].N
		}
		bad, rounds = bad+k/n, rounds+1
	}
	return bad, rounds
}

// moreForShare is what would settle a share: rounds, to pass; where so many are
// bad that it heads for a failure, requests.
func (s *subject) moreForShare(share, byRound, effective, rounds, e float64) (words string, requests int) {
	if e <= 0 {
		return `no number of requests proves that none ever fails: write "observed >= 100%" for the requests of this run`, -1
	}
	needed := math.Inf(1)
	if max(share, byRound) >= e {
		if n, ok := stat.Needed(share, e, s.alpha); ok && share > e {
			needed = float64(n) / s.worth(effective, s.alpha)
		}
		return s.more(needed)
	}
	n, ok := stat.Needed(byRound, e, s.alpha)
	if !ok {
		return s.more(needed)
	}
	extra := max(float64(n)-rounds, 1)
	requests = int(math.Ceil(extra * float64(s.n) / rounds))
	return "needs about " + verdict.Count(int(extra), "more rounds") + s.lasting(float64(requests)), requests
}
