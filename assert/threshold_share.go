package assert

import (
	"fmt"
	"math"
	"slices"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// share judges success, the goodput share, and shares of answers. Requests may fail together for a
// rare cause that a few rounds do not show. So a pass uses the plan's assumption on which requests
// fail together; see toPass. A fail uses the effective number of requests, because failures were
// seen. With clusters = "wave", the observed clusters limit that number too.
func (s *subject) share(v *verdict.Verdict, t *plan.Threshold) {
	good := (*metric.Sample).Completed
	noun, point := "failed", s.level.Success()
	var quantities [][]stat.Ascending // values that show whether requests depend on each other
	moments := math.Inf(1)
	switch {
	case t.Metric.OfAnswers:
		s = s.asked(t.Metric)
		good = func(x *metric.Sample) bool { return !x.Bad(t.Metric) }
		noun, point = badAnswer(t.Metric), s.level.AnswerShare(t.Metric)
	case t.Metric.Name == "goodput":
		if good = sample.Good(s.workload); good == nil {
			noValue(v, t, t.Metric.NoValue)
			return
		}
		noun, point = "were not good", s.level.GoodputShare(good)
		quantities, moments = s.goodBy(t.Allowed())
	}
	v.Value = point
	if !point.OK {
		noValue(v, t, point.Why)
		return
	}
	groups, spells, clusters, bad := s.badOnes(good)
	v.N, v.Over = s.n, float64(bad)
	if t.Stat.Kind == metric.Every {
		v.Message = fmt.Sprintf("%s %s: %d of %d requests %s", label(t), metric.Format(metric.Ratio, v.Value.V), bad, s.n, noun)
		v.Note(thisRun)
		decided(v, bad == 0)
		return
	}
	if sample.Upward(t.Op) == (t.Metric.Better == metric.LowerIsBetter) {
		v.Outcome = verdict.Error
		v.Message = fmt.Sprintf("a threshold can bound %s only from below", label(t))
		if t.Metric.Better == metric.LowerIsBetter {
			v.Message = fmt.Sprintf("a threshold can bound %s only from above", label(t))
		}
		return
	}
	share, e := float64(bad)/float64(s.n), t.Allowed()
	v.Message = fmt.Sprintf("%s: %d of %d requests %s", compared(t, v.Value), bad, s.n, noun)
	// For a metric where lower is better, the message already has the share of bad requests.
	if t.Metric.Better != metric.LowerIsBetter {
		v.Message += fmt.Sprintf(" (%s, allowed %s)", metric.Format(metric.Ratio, share), metric.Format(metric.Ratio, e))
	}
	if t.Stat.Kind == metric.Implied {
		s.fewFailed(v, shareTest{share: share, e: e, toFail: s.toFail(groups, clusters)})
		return
	}
	if t.Stat.Kind == metric.Observed {
		v.Note(thisRun)
		decided(v, sample.Meets(v.Value.V, t.Op, t.Limit))
		return
	}
	c, why := shareTest{share: share, e: e, toFail: s.toFail(groups, clusters)}, ""
	c.k, c.n, why = s.toPass(groups, spells, clusters, share, s.effective(groups, quantities))
	s.certifyShare(v, t, c, moments, why)
	s.goodThroughout(v, t, groups)
}

// goodThroughout withdraws a pass of goodput where the plan forbids to measure how near the rate is to
// the largest, unless every part of the window meets the limit.
func (s *subject) goodThroughout(v *verdict.Verdict, t *plan.Threshold, groups []stat.Group) {
	if v.Outcome == verdict.Pass && t.Metric.Name == "goodput" && s.unsaturated() && !s.policy.Estimates() &&
		slices.ContainsFunc(groups, func(g stat.Group) bool { return g.K > t.Allowed()*g.N }) {
		v.Outcome, v.Needs = verdict.Inconclusive, "needs every part of the window to meet the limit, because the plan forbids to measure how near the rate is to the largest"
	}
}

// fewFailed decides an implied threshold on success. The share in this run suffices for a pass, so
// it never needs more requests than the threshold that implies it. A fail must be certain.
func (s *subject) fewFailed(v *verdict.Verdict, c shareTest) {
	v.Effective = c.toFail
	test := stat.Below
	if c.share > c.e {
		test = stat.Share(c.share*c.toFail, c.toFail, c.e, s.alpha)
	}
	s.decide(v, c.share <= c.e, test, s.needed(c.share, c.e, c.toFail))
}

// shareTest is a test of a share of bad requests.
type shareTest struct {
	share, e float64 // measured and allowed share
	toFail   float64 // effective number of requests for the test of a fail
	k, n     float64 // a pass is tested as if k of n requests were bad
}

// goodBy returns the measured values that decide which requests are good. The result moments is the
// largest number of independent moments in the level, if the share e of the requests is bad; see
// the method fewMoments.
func (s *subject) goodBy(e float64) (quantities [][]stat.Ascending, moments float64) {
	moments = math.Inf(1)
	for _, g := range s.workload.Good {
		if g.Metric.OfAnswers {
			continue
		}
		o := s.observe(g.Metric)
		quantities = append(quantities, o.values())
		if few, ok := s.fewMoments(o, e); ok {
			moments = min(moments, few)
		}
	}
	return quantities, moments
}

// asked returns a copy of s with only those requests for which the metric def is defined.
func (s *subject) asked(def metric.Def) *subject {
	out := *s
	out.blocks, out.n = nil, 0
	for _, b := range s.blocks {
		whole := len(b.samples)
		if b.samples = metric.AskedFor(def, b.samples); len(b.samples) == 0 && whole > 0 {
			continue
		}
		out.blocks = append(out.blocks, b)
		out.n += len(b.samples) + b.lost
	}
	return &out
}

// badAnswer returns words for the answers that a metric counts as bad, such as "were empty or
// failed".
func badAnswer(def metric.Def) string {
	words := map[string]string{
		"stop_rate": "had an answer that did not end by itself", "empty": "had an empty answer", "repetition": "had a repetitive answer", "invalid_text": "had invalid text",
		"valid_json": "had no valid JSON", "valid_tool_call": "had no valid tool call", "accuracy": "had a wrong answer",
	}
	return words[def.Name] + " or failed"
}

// certifyShare decides a threshold on a share. The string why explains why c.n is less than the
// number of requests. In a short window, moments is the number of independent moments, which limits
// how many requests count; see the method fewMoments. In a longer window it is infinite.
func (s *subject) certifyShare(v *verdict.Verdict, t *plan.Threshold, c shareTest, moments float64, why string) {
	if words, ok := s.crowded(c.n); ok {
		why = words
	}
	short, needed := !math.IsInf(moments, 1), s.neededForShare(c)
	if short {
		if needed = s.inWindow(needed, c.e); moments < c.n {
			c.k, c.n, why = c.k*moments/c.n, moments, s.moveTogether(moments)
		}
		c.toFail = min(c.toFail, countAs(moments))
	}
	low, _, fine := stat.ClopperPearson(c.share*c.toFail, c.toFail, s.alpha)
	_, high, ok := stat.ClopperPearson(c.k, c.n, s.alpha)
	if ok && fine {
		v.Low, v.High = metric.Some(1-high), metric.Some(1-low)
		if t.Metric.Better == metric.LowerIsBetter {
			v.Low, v.High = metric.Some(low), metric.Some(high)
		}
	}
	v.Effective = c.n
	v.Message += ", " + s.bounds(v, metric.Ratio)
	if s.estimated(v, sample.Meets(v.Value.V, t.Op, t.Limit)) {
		return
	}
	switch {
	case stat.Share(c.share*c.toFail, c.toFail, c.e, s.alpha) == stat.Above:
		v.Outcome, v.Effective = verdict.Fail, c.toFail
		if !s.noteMoments(v, moments) {
			s.notes(v, observations{}, c.e)
		}
		return
	case !short && stat.Share(c.k, c.n, c.e, s.alpha) == stat.Below && stat.Share(0, float64(s.units()), c.e, s.alpha) == stat.Below:
		v.Outcome = verdict.Pass
	default:
		s.undecidedShare(v, t, c, needed)
	}
	if 0 < c.n && c.n < 0.995*float64(s.n) {
		v.Note(why)
	}
	if short {
		s.tooShort(v, c.e)
	}
}

// undecidedShare says how many more rounds or requests would decide a threshold on a share. The
// parameter needed is the total number of requests for a decision. If a round counts as one
// request, the answer is in rounds, unless the share is likely to fail.
func (s *subject) undecidedShare(v *verdict.Verdict, t *plan.Threshold, c shareTest, needed float64) {
	s.decide(v, false, stat.Open, needed)
	switch {
	case c.e <= 0:
		v.Needs, v.More = fmt.Sprintf("a sample cannot prove that every request succeeds: write \"observed %s %s\" to judge only the requests of this run", t.Op, metric.Format(metric.Ratio, t.Limit)), -1
	case s.policy.Clusters == plan.ClustersRound && v.More > 0 && c.share < c.e:
		rounds := float64(s.units())
		more := max(math.Ceil(rounds*needed/float64(s.n)-1e-9)-rounds, 1)
		v.Needs = verdict.NeedsMore(int(more), "rounds") + s.lasting(float64(v.More))
	}
}

// toFail returns the number of independent requests for testing whether a share fails.
func (s *subject) toFail(groups []stat.Group, clusters stat.Clusters) float64 {
	n := s.effective(groups, nil)
	if s.policy.Clusters == plan.ClustersWave || s.policy.Clusters == "" {
		n = min(n, float64(s.n)/clusters.Mean())
	}
	return n
}

// togetherness is the weight of clusters of failures that occur in only a few rounds. Ten rounds
// show little of a rare cause, so such clusters need more weight.
//
// The value was found by simulation (make characteristics). If servers at their limit fail more in
// some rounds than in others, 3 % of them pass with this weight, and 16 % without it. Good servers
// pass nine times in ten: with 98 % successes, a limit of 95 % and 1,200 requests.
const togetherness = 16

// toPass returns the numbers for testing a pass: k bad requests among n. They follow from the
// plan's assumption on which requests fail together; why explains them in words. The parameter
// share is the share of bad requests. The parameter effective is the number of independent
// requests, judged by how rounds differ.
func (s *subject) toPass(groups, spells []stat.Group, clusters stat.Clusters, share, effective float64) (k, n float64, why string) {
	requests := verdict.Count(s.n, "requests")
	switch s.policy.Clusters {
	case plan.ClustersRound:
		rounds, all := s.byRound(groups)
		n = min(all, s.crowding()*float64(s.n))
		// A large bad round must count by its requests, not only as one of many rounds.
		return max(rounds, share*all) * n / all, n, fmt.Sprintf("requests of one round may fail together, so for a pass each of %s counts as one request", verdict.Count(int(all), "rounds"))
	case plan.ClustersNone:
		n = effective
		why = fmt.Sprintf("the values of %[3]s differ so much that %[1]s count as only %.0[2]f independent requests", requests, math.Floor(n), s.evidence)
	default:
		n = min(effective, float64(s.n)/stat.ClusterEffect(clusters, float64(s.wave())))
		why = fmt.Sprintf("for a pass, %s count as only %.0f, because all requests in flight (%d) may fail together; they count as more if failures turn out to be isolated", requests, math.Floor(n), s.wave())
		if few := float64(s.n) / (clusters.Mean() * (1 + togetherness*stat.Excess(spells))); few < n {
			n = few
			why = fmt.Sprintf("for a pass, %s count as only %.0f, because the failures came in only a few of %s, so their cause may last longer than a wave", requests, math.Floor(n), s.evidence)
		}
	}
	return share * n, n, why
}

// units returns how many independent units (requests, waves or rounds) the judged requests count as
// if none of them is bad.
func (s *subject) units() int {
	rounds := 0
	for i, b := range s.blocks {
		if i == 0 || b.round != s.blocks[i-1].round {
			rounds++
		}
	}
	return s.policy.Clusters.Units(s.level.Kind, s.wave(), rounds, s.n)
}

// wave returns how many requests are in flight at the same time: at a rate the mean, in a stage the
// largest number of the stage's own requests.
func (s *subject) wave() int {
	switch mean := s.level.Value("in_flight", metric.Steady, nil, nil); {
	case s.level.Kind != metric.OpenLoop:
		return s.level.AtOnce()
	case s.level.Stage == nil && mean.OK:
		return max(int(math.Ceil(mean.V)), 1)
	}
	return max(s.level.MostInFlight(), 1)
}

// badOnes counts bad requests in each block (groups) and in total (bad). Lost requests are bad too,
// and count as consecutive.
//
// It also gathers bad requests into clusters, which may have failed for the same cause. A cluster
// begins with a bad request. It includes the bad ones among the next requests by start time, as
// many as are in flight at once. The result spells counts the clusters that begin in each block.
func (s *subject) badOnes(good func(*metric.Sample) bool) (groups, spells []stat.Group, clusters stat.Clusters, bad int) {
	groups, spells = make([]stat.Group, len(s.blocks)), make([]stat.Group, len(s.blocks))
	wave, open, end := s.wave(), 0, 0 // requests per wave, bad ones in a cluster, the cluster's end
	at := 0
	for i, b := range s.blocks {
		if i > 0 && b.round != s.blocks[i-1].round && !s.batched() {
			end = at // batches are cut where a cluster may go on
		}
		k := b.lost
		for _, x := range b.samples {
			if !good(x) {
				if k++; at >= end {
					clusters.Add(float64(open), 1)
					spells[i].K++
					open, end = 0, at+wave
				}
				open++
			}
			at++
		}
		clusters.Add(float64(wave), float64(b.lost/wave))
		clusters.Add(float64(b.lost%wave), 1)
		spells[i].K += math.Ceil(float64(b.lost) / float64(wave))
		spells[i].N = float64(len(b.samples) + b.lost)
		groups[i] = stat.Group{K: float64(k), N: spells[i].N}
		bad += k
	}
	clusters.Add(float64(open), 1)
	return groups, spells, clusters, bad
}

// byRound adds up the shares of bad requests of all rounds. It returns the sum and the number of
// rounds. For each block of requests, groups has the numbers of bad and of all requests.
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

// neededForShare returns how many requests in total would decide a threshold on a share: as a fail
// if the share is likely to fail, and otherwise as a pass. It assumes that further requests count
// as much as those so far.
func (s *subject) neededForShare(c shareTest) float64 {
	toPass := c.k / c.n
	if max(c.share, toPass) >= c.e {
		if c.share > c.e {
			return s.needed(c.share, c.e, c.toFail)
		}
		return math.Inf(1)
	}
	wanted, ok := stat.Needed(toPass, c.e, s.alpha)
	if !ok {
		return math.Inf(1)
	}
	return float64(s.n) * max(float64(wanted), c.n+1) / c.n
}

// recovered judges how long it takes from the start of a stage until requests are good again. If
// the stages are repeated, the longest time counts. The result says nothing about later
// repetitions.
func (s *subject) recovered(v *verdict.Verdict, t *plan.Threshold) {
	good := sample.Good(s.workload)
	if good == nil {
		good = s.goodBySLA()
	}
	worst, never := 0.0, 0
	for _, r := range s.level.Rounds {
		x := r.Recovery(good)
		if !x.OK {
			never++
		}
		worst = max(worst, x.V)
	}
	v.N, v.Value = len(s.level.Rounds), metric.Some(worst)
	v.Message = fmt.Sprintf("%s, the longest of %s", compared(t, v.Value), verdict.Count(v.N, "passes"))
	if never > 0 {
		v.Value = metric.Some(math.Inf(1))
		v.Message = fmt.Sprintf("the server did not recover in %d of %s: requests did not become good again", never, verdict.Count(v.N, "passes"))
	}
	v.Note("the value is exact for the passes of this run; it says nothing about other passes")
	decided(v, never == 0 && v.N > 0 && sample.Meets(worst, t.Op, t.Limit))
}

// goodBySLA returns the rule for a good request, for a workload without a good block. A good
// request meets every threshold of the level that applies to single requests.
func (s *subject) goodBySLA() func(*metric.Sample) bool {
	var bounds []*plan.Threshold
	for _, sla := range s.workload.SLAs {
		for _, t := range sla.Thresholds {
			if slices.Contains(sla.At, s.level.Name) && t.Metric.Scope == metric.PerRequest {
				bounds = append(bounds, t)
			}
		}
	}
	return func(x *metric.Sample) bool {
		return !slices.ContainsFunc(bounds, func(t *plan.Threshold) bool {
			value, ok := x.Value(t.Metric.Name)
			return !ok || !sample.Meets(value, t.Op, t.Limit)
		})
	}
}
