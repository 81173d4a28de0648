package assert

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// share judges success, the goodput share, and shares of answers. Several requests may fail for one
// rare reason, which a few rounds often do not contain. Such rounds do not show how many requests
// fail together. So a pass uses the plan's assumption on which requests fail together; see the
// function toPass. A fail has failures to observe, so it uses the effective number of requests.
// With clusters = "wave" the observed clusters limit that number as well.
func (s *subject) share(v *Verdict, t *plan.Threshold) {
	good := (*metric.Sample).Completed
	noun, point := "failed", s.level.Success()
	var quantities [][]stat.Ascending // values that show how requests depend on each other even if no request is bad
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
		v.Notes = append(v.Notes, thisRun)
		decided(v, bad == 0)
		return
	}
	if sample.Upward(t.Op) == (t.Metric.Better == metric.LowerIsBetter) {
		v.Outcome = Error
		v.Message = fmt.Sprintf("%s can only be bounded from below", label(t))
		if t.Metric.Better == metric.LowerIsBetter {
			v.Message = fmt.Sprintf("%s can only be bounded from above", label(t))
		}
		return
	}
	share, e := float64(bad)/float64(s.n), t.Allowed()
	v.Message = fmt.Sprintf("%s: %d of %d requests %s", compared(t, v.Value), bad, s.n, noun)
	// If lower is better, the value in the message is already the share of bad requests.
	if t.Metric.Better != metric.LowerIsBetter {
		v.Message += fmt.Sprintf(" (%s, allowed %s)", metric.Format(metric.Ratio, share), metric.Format(metric.Ratio, e))
	}
	if t.Stat.Kind == metric.Observed {
		v.Notes = append(v.Notes, thisRun)
		decided(v, sample.Meets(v.Value.V, t.Op, t.Limit))
		return
	}
	k, n, why := s.toPass(groups, spells, clusters, share, s.effective(groups, quantities))
	if moments < n {
		k, n, why = k*moments/n, moments, s.moveTogether(moments)
	}
	s.certifyShare(v, t, min(s.toFail(groups, clusters), countAs(moments)), k, n, share, e)
	s.inWindow(v, moments, e)
	if n < 0.995*float64(s.n) && (v.Outcome == Pass || v.Outcome == Inconclusive) && s.policy.Decide != plan.Estimate {
		v.Notes = append(v.Notes, why)
	}
}

// inWindow notes why a share failed. It lets no share pass in windows that are too short for a
// percentile that allows e: moments is finite.
func (s *subject) inWindow(v *Verdict, moments, e float64) {
	switch {
	case s.policy.Decide == plan.Estimate:
	case v.Outcome == Fail:
		if !s.noteMoments(v, moments) {
			s.notes(v, observations{}, e)
		}
	case !math.IsInf(moments, 1):
		if v.Outcome == Pass {
			s.decide(v, stat.Open, s.longer(e))
		}
		s.tooShort(v, e)
	}
}

// goodBy returns the values that decide which requests are good. moments is how many independent
// moments the level holds at most, for a share e of bad requests; see together.
func (s *subject) goodBy(e float64) (quantities [][]stat.Ascending, moments float64) {
	moments = math.Inf(1)
	for _, g := range s.workload.Good {
		if g.Metric.OfAnswers {
			continue
		}
		o := s.observe(g.Metric)
		quantities = append(quantities, o.values())
		if few, ok := s.together(o, e); ok {
			moments = min(moments, few)
		}
	}
	return quantities, moments
}

// asked returns a copy of s with only those requests that a metric of answers applies to.
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

// badAnswer says what makes an answer bad, in words, for a metric of answers.
func badAnswer(def metric.Def) string {
	words := map[string]string{
		"stop_rate": "did not end by themselves", "empty": "were empty", "repetition": "repeat themselves", "invalid_text": "have invalid text",
		"valid_json": "are not the JSON asked for", "valid_tool_call": "call no tool as offered", "accuracy": "are wrong",
	}
	return words[def.Name] + " or failed"
}

// certifyShare decides a threshold that allows the share e of bad requests. The parameter share is
// the measured share. A fail is tested with the effective number of requests. A pass is tested as
// if k of n requests were bad.
func (s *subject) certifyShare(v *Verdict, t *plan.Threshold, effective, k, n, share, e float64) {
	low, _, fine := stat.ClopperPearson(share*effective, effective, s.alpha)
	_, high, ok := stat.ClopperPearson(k, n, s.alpha)
	if ok && fine {
		v.Low, v.High = metric.Some(1-high), metric.Some(1-low)
		if t.Metric.Better == metric.LowerIsBetter {
			v.Low, v.High = metric.Some(low), metric.Some(high)
		}
	}
	v.Effective = n
	v.Message += ", " + s.bounds(v, metric.Ratio)
	if s.policy.Decide == plan.Estimate {
		estimated(v, sample.Meets(v.Value.V, t.Op, t.Limit))
		return
	}
	switch {
	case stat.Share(share*effective, effective, e, s.alpha) == stat.Above:
		v.Outcome, v.Effective = Fail, effective
	case stat.Share(k, n, e, s.alpha) == stat.Below && stat.Share(0, float64(s.units()), e, s.alpha) == stat.Below:
		v.Outcome = Pass
	default:
		v.Outcome = Inconclusive
		v.Needs, v.More = s.moreForShare(t, share, k/n, effective, n, e)
	}
}

// toFail returns how many independent requests count when a fail is tested.
func (s *subject) toFail(groups []stat.Group, clusters stat.Clusters) float64 {
	n := s.effective(groups, nil)
	if s.policy.Clusters == plan.ClustersWave || s.policy.Clusters == "" {
		n = min(n, float64(s.n)/clusters.Mean())
	}
	return n
}

// togetherness is the weight of clusters of failures that occur in only a few rounds. Ten rounds
// show little of a cause that lasts longer than a wave, so such clusters need more weight. It was
// found by simulation (make characteristics). Of servers at their limit with half of the variance
// between rounds, 3 % pass with this weight, and 16 % without it. If 98 % of requests succeed
// independently, nine of ten servers still pass a limit of 95 % with 1,200 requests.
const togetherness = 16

// toPass returns the numbers with which a pass is tested: k bad requests among n. They follow from
// the plan's assumption on which requests fail together. The result why is the reason in words. The
// parameter share is the share of bad requests among all requests. The parameter effective is the
// number of independent requests, from the differences between rounds.
func (s *subject) toPass(groups, spells []stat.Group, clusters stat.Clusters, share, effective float64) (k, n float64, why string) {
	requests := verdict.Count(s.n, "requests")
	switch s.policy.Clusters {
	case plan.ClustersRound:
		k, n = s.byRound(groups)
		// If rounds have different numbers of requests, a large bad round weighs as much as its
		// requests.
		return max(k, share*n), n, fmt.Sprintf("requests of one round may fail together, so each of %s counts as one request towards a pass", verdict.Count(int(n), "rounds"))
	case plan.ClustersNone:
		n = effective
		why = fmt.Sprintf("the spread of %[3]s shows that %[1]s count as %.0[2]f independent requests", requests, math.Floor(n), s.evidence)
	default:
		n = min(effective, float64(s.n)/stat.ClusterEffect(clusters, float64(s.wave())))
		why = fmt.Sprintf("%s count as %.0f towards a pass, because all requests in flight (%d) may fail together; they count as more if failures turn out to be isolated", requests, math.Floor(n), s.wave())
		if few := float64(s.n) / (clusters.Mean() * (1 + togetherness*stat.Excess(spells))); few < n {
			n = few
			why = fmt.Sprintf("%s count as %.0f towards a pass, because the failures came in few of %s and so may last longer than a wave", requests, math.Floor(n), s.evidence)
		}
	}
	return share * n, n, why
}

// units returns the number of independent units (requests, waves or rounds) if no request is bad.
func (s *subject) units() int {
	rounds := 0
	for i, b := range s.blocks {
		if i == 0 || b.round != s.blocks[i-1].round {
			rounds++
		}
	}
	return s.policy.Clusters.Units(s.level.Kind, s.wave(), rounds, s.n)
}

// wave returns the number of requests that are in flight at the same time. For a rate that is the
// mean number. For a stage it is the largest number, because a stage shares the server with the
// stages next to it.
func (s *subject) wave() int {
	if s.level.Kind != metric.OpenLoop {
		return s.level.AtOnce()
	}
	if mean := s.level.Value("in_flight", metric.Steady, nil, nil); mean.OK && s.level.Stage == nil {
		return max(int(math.Ceil(mean.V)), 1)
	}
	most := 1
	for _, p := range s.level.Passages() {
		most = max(most, p.Max)
	}
	return most
}

// badOnes counts bad requests, including lost requests, in each block (groups) and in total (bad).
// It also gathers bad requests into clusters, and counts the clusters that begin in each block
// (spells). A cluster begins with a bad request, and includes every bad request among the next
// requests by start time, as many as are in flight at the same time. Requests of one cluster may
// have failed for the same cause. Lost requests of a block count as consecutive.
func (s *subject) badOnes(good func(*metric.Sample) bool) (groups, spells []stat.Group, clusters stat.Clusters, bad int) {
	groups, spells = make([]stat.Group, len(s.blocks)), make([]stat.Group, len(s.blocks))
	wave, open, end := s.wave(), 0, 0 // size of a wave, number of bad requests in the open cluster, and where that cluster ends
	at := 0
	for i, b := range s.blocks {
		if i > 0 && b.round != s.blocks[i-1].round {
			end = at
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

// byRound returns the sum over all rounds of the share of bad requests, and the number of rounds.
// The slice groups holds the bad and all requests of each block.
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

// moreForShare returns how many more rounds or requests would decide a threshold on a share. A pass
// is tested with toPass bad requests among n. If a round counts as one request, the answer is in
// rounds. If the share is likely to fail, the answer is in requests, by their effective number.
func (s *subject) moreForShare(t *plan.Threshold, share, toPass, effective, n, e float64) (words string, requests int) {
	if e <= 0 {
		return fmt.Sprintf("a sample cannot prove that every request succeeds: write \"observed %s %s\" to judge only the requests of this run", t.Op, metric.Format(metric.Ratio, t.Limit)), -1
	}
	needed := math.Inf(1)
	if max(share, toPass) >= e {
		if n, ok := stat.Needed(share, e, s.alpha); ok && share > e {
			needed = float64(n) / s.worth(effective)
		}
		return s.more(needed)
	}
	wanted, ok := stat.Needed(toPass, e, s.alpha)
	if !ok {
		return s.more(needed)
	}
	extra := max(float64(wanted)-n, 1)
	requests = int(math.Ceil(extra * float64(s.n) / n))
	if s.policy.Clusters != plan.ClustersRound {
		return s.more(float64(s.n + requests))
	}
	return "needs about " + verdict.Count(int(extra), "more rounds") + s.lasting(float64(requests)), requests
}

// A rate also requires that the server keeps up with it. There are two kinds of evidence. The first
// is the backlog of the level itself: its growth may certainly be below or above the limit. The
// backlog comes first, because a server may lose throughput when its queue is never empty. The
// second is the saturation, which shows the largest rate. A rate certainly below the largest rate
// is sustained. A rate certainly above it is not, unless the server was faster at this level than
// when saturated.

// sustained judges the growth of the backlog, which shows whether the server sustains a rate.
func (s *subject) sustained(v *Verdict, t *plan.Threshold) {
	g, ok := s.level.Growth()
	if !ok || math.IsNaN(g.Share) || math.IsNaN(g.Error) {
		noValue(v, t, t.Metric.NoValue)
		return
	}
	x := s.bounded(g)
	v.N, v.Value, v.Low, v.High = g.Arrivals, metric.Some(g.Share), metric.Some(x.low), metric.Some(x.high)
	v.Message = fmt.Sprintf("%s of %s: %s", compared(t, v.Value), verdict.Count(g.Arrivals, "requests"), s.bounds(v, metric.Ratio))
	if g.Lost > 0 {
		v.Message += fmt.Sprintf("; %s timed out and are still in the backlog", verdict.Count(g.Lost, "requests"))
	}
	if x.known {
		v.Message += fmt.Sprintf("; the largest rate that the server can sustain is %s, and certainly at least %s", metric.Format(metric.PerSecond, x.most), metric.Format(metric.PerSecond, x.least))
	}
	switch {
	case s.level.Cut == metric.CutStalled:
		v.Outcome = Fail
		v.Message = "not sustained: the server stopped answering; " + v.Message
	case s.policy.Decide == plan.Estimate:
		estimated(v, sample.Meets(g.Share, t.Op, t.Limit))
	case sample.Meets(x.high, t.Op, t.Limit) && !x.over:
		v.Outcome = Pass
		v.Message = "sustained, as the backlog shows: " + v.Message
	case !sample.Meets(x.low, t.Op, t.Limit):
		v.Outcome = Fail
		v.Message = "not sustained, as the backlog shows: " + v.Message
	case x.below && !x.slowed(t) && s.level.Cut == "" && sample.Meets(float64(g.Lost)/float64(g.Arrivals), t.Op, t.Limit):
		v.Outcome = Pass
		v.Message = "sustained, because the rate is below the largest rate that the server can sustain: " + v.Message
		if !sample.Meets(g.Share, t.Op, t.Limit) {
			v.Value = metric.None("the backlog grew by more than the limit, by chance or because the server was filling up; this decides nothing, because the rate is below the largest rate that the server can sustain")
		}
	case x.over && !sample.Meets(g.Share, t.Op, t.Limit):
		v.Outcome = Fail
		v.Message = "not sustained, because requests arrive faster than the server can sustain: " + v.Message
	default:
		v.Outcome = Inconclusive
		v.Notes = append(v.Notes, x.unclear(s.level, t, g)...)
		// The fluctuation of a stable backlog does not grow with the window.
		v.Needs, v.More = s.more((max(g.Share, 0) + x.half) * float64(g.Arrivals) / t.Limit)
	}
}

// grown holds the growth of a backlog, and what the saturation shows about it.
type grown struct {
	low, high, half float64
	most, least     float64 // the largest rate and its lower bound, if known
	beyond          float64 // growth beyond chance, with what fills the server up
	known           bool
	below           bool // it is certain that requests arrive more slowly than at the largest rate
	over            bool // the rate is certainly above the largest rate, and the server was no faster than when saturated
	slower          bool // the saturated server answered more requests with as many in flight
	fills           bool // no more requests are in flight than the server answers at the same time
}

func (s *subject) bounded(g metric.Growth) (x grown) {
	above := 0.0
	x.most, x.least, above, x.known = largest(s.level, s.alpha)
	x.half = stat.NormalQuantile(1-s.alpha) * g.Error
	x.low, x.high = g.Share-x.half, g.Share+x.half
	if !x.known {
		return x
	}
	x.below = s.level.Rate < x.least
	// Above the largest rate the backlog may stay constant by chance, if fewer requests arrive. So
	// the server's answers are compared as well.
	x.over = s.level.Rate > above && answered(s.level) <= above
	x.fills = s.level.Rate < above && float64(g.End) <= s.level.SaturationAt
	if x.fills { // no queue is needed for so few requests in flight
		x.low = min(x.low, 0)
	}
	if x.below {
		// Near the largest rate a backlog moves like a random walk with a step at each arrival. It
		// varies more than its distance from its own line shows. What fills the server up is taken
		// off first.
		chance := stat.NormalQuantile(1-s.alpha) * math.Sqrt((s.scatter()+0.5)/float64(g.Arrivals))
		x.low = min(x.low, queued(s.level)-chance)
		x.beyond = g.Share - max(x.half, chance)
		// With fewer requests in flight a server answers at least as large a share of its largest rate.
		x.slower = answered(s.level)*s.level.SaturationAt < x.least*min(float64(g.End), s.level.SaturationAt)
	}
	return x
}

// slowed reports whether the backlog certainly grew by more than the limit, and not only because the
// server was filling up.
func (x grown) slowed(t *plan.Threshold) bool {
	return x.slower && !sample.Meets(x.beyond, t.Op, t.Limit)
}

// unclear returns notes on why neither the backlog nor the saturation decides.
func (x grown) unclear(l *metric.Level, t *plan.Threshold, g metric.Growth) []string {
	if x.over {
		return []string{"the rate is above the largest rate that the server can sustain, but by chance fewer requests arrived"}
	}
	notes := []string{fmt.Sprintf("these requests could have certified a growth below %s", metric.Format(metric.Ratio, max(x.high, 0)))}
	if x.slowed(t) {
		notes = append(notes, "the rate is below the largest rate, but the backlog grew by more than chance explains, and the server answered a smaller share of its largest rate than the share of its slots that was taken at the end")
	} else if x.fills {
		notes = append(notes, fmt.Sprintf("%d requests in the backlog at the end need not be a queue: the server, when saturated, answered %.0f at once", g.End, l.SaturationAt))
	}
	return notes
}

// queued is the part of a backlog's growth that must be a queue, as a share of the arrivals:
// requests that timed out, and requests in flight beyond the number that the server answered at the
// same time when saturated.
func queued(l *metric.Level) float64 {
	grew, arrivals := 0.0, 0
	for _, p := range l.Passages() {
		grew += float64(p.Lost) + max(float64(p.End), l.SaturationAt) - max(float64(p.Begin), l.SaturationAt)
		arrivals += p.Arrivals
	}
	return grew / float64(arrivals)
}

// answered returns how many requests per second ended during a rate, not counting those that timed
// out.
func answered(l *metric.Level) float64 {
	n, length := 0, time.Duration(0)
	for _, p := range l.Passages() {
		n += p.Arrivals - (p.End + p.Lost - p.Begin)
		length += p.To - p.From
	}
	return float64(n) / length.Seconds()
}

// recovered judges how long after the start of a stage requests are good again. It takes the
// longest time over all passes of the schedule. The result is exact for these passes and says
// nothing about others.
func (s *subject) recovered(v *Verdict, t *plan.Threshold) {
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
		v.Message = fmt.Sprintf("requests were not good again in %d of %s", never, verdict.Count(v.N, "passes"))
	}
	v.Notes = append(v.Notes, "exact for the passes of this run; it says nothing about other passes")
	decided(v, never == 0 && v.N > 0 && sample.Meets(worst, t.Op, t.Limit))
}

// goodBySLA returns the rule for a good request if the workload has no good block. A good request
// meets every threshold of the level that applies to single requests.
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
