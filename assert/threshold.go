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

// percentile judges a threshold such as "p95 < 8s" as "at most 5% of the requests take 8 s or
// longer". It tests this share by an exact binomial test in each direction, with the number of
// independent requests. For a metric of gaps it tests the share of all gaps, but counts at most as
// many gaps as requests.
func (s *subject) percentile(v *verdict.Verdict, t *plan.Threshold) {
	o := s.observe(t.Metric)
	d := o.all(t.Op)
	groups, over, total := o.countFailing(t.Op, t.Limit)
	e := t.Allowed()
	if total == 0 {
		noValue(v, t, t.Metric.NoValue)
		return
	}
	v.N, v.Over = total, float64(over)
	p, _ := d.Percentile(t.Stat.P)
	v.Value = metric.Some(p)
	counted := s.effective(groups, [][]stat.Ascending{o.values()})
	v.Effective = counted
	moments, together := s.fewMoments(o, e)
	if together {
		v.Effective = min(counted, countAs(moments))
	}
	low, high := percentileBounds(d, v.Effective, e, t.Op, s.alpha)
	v.Low, v.High = metric.Some(max(low, 0)), metric.Some(max(high, 0))

	share := float64(over) / float64(total)
	decision := stat.Share(share*v.Effective, v.Effective, e, s.alpha)
	few := s.unfinished() || s.grouped(e, total) || s.unsaturated()
	if decision == stat.Below && (together || few && !s.clear(t, o, e)) || s.tooFew() {
		decision = stat.Open
	}
	if decision == stat.Open && !(together && s.lifetimes() < leastLifetimes) && s.margin(v, t, o, groups, share, e) {
		decision = stat.Below
	}
	what := "requests"
	if t.Metric.Scope == metric.PerGap {
		what = "gaps"
	}
	v.Message = fmt.Sprintf("%s: %d of %d %s %s (%s, allowed %s), %s", compared(t, v.Value), over, total, what,
		badSide(t), metric.Format(metric.Ratio, share), metric.Format(metric.Ratio, e), s.bounds(v, t.Metric.Unit))
	s.notes(v, o, e)
	// The point estimate meets the limit if no more observations miss the limit than lie beyond the
	// percentile's nearest rank.
	rank := nearestRank(t.Stat.P, total)
	most := total - rank
	if sample.Upward(t.Op) {
		most = rank - 1
	}
	needed := max(s.needed(share, e, counted), s.enoughFor(e))
	if together {
		needed = s.inWindow(needed, e)
	}
	s.decide(v, over <= most, decision, needed)
	if together {
		s.tooShort(v, e)
	}
}

// needed returns how many requests in total would decide the test of a share against the limit e.
// It assumes that further requests count as much as those so far.
func (s *subject) needed(share, e, effective float64) float64 {
	n, ok := stat.Needed(share, e, s.alpha)
	if !ok {
		return math.Inf(1)
	}
	return float64(n) / s.independence(effective)
}

// settled sets the outcome by sample.Decide. It returns false if the verdict is inconclusive.
func (s *subject) settled(v *verdict.Verdict, meets bool, test stat.Side) bool {
	if !s.estimated(v, meets) {
		v.Outcome = sample.Decide(s.policy, meets, test)
	}
	return v.Outcome != verdict.Inconclusive
}

// estimated sets the outcome by the point estimate, which meets the limit or not, if the plan decides by
// point estimates. Otherwise it returns false.
func (s *subject) estimated(v *verdict.Verdict, meets bool) bool {
	if !s.policy.Estimates() {
		return false
	}
	v.Outcome = sample.Decide(s.policy, meets, stat.Open)
	v.Caution(verdict.ByEstimate)
	return true
}

// decide settles an exact test of a share. The parameter needed is the total number of requests that
// would decide an open test.
func (s *subject) decide(v *verdict.Verdict, meets bool, test stat.Side, needed float64) {
	switch {
	case s.settled(v, meets, test):
	case v.Effective == 0: // see crowding
		v.Needs, v.More = s.lowerRate(), -1
	default:
		v.Needs, v.More = s.shortfall(needed)
	}
}

func within(t *plan.Threshold, low, high float64) stat.Side {
	switch a, b := sample.Meets(low, t.Op, t.Limit), sample.Meets(high, t.Op, t.Limit); {
	case a && b:
		return stat.Below
	case a || b:
		return stat.Open
	}
	return stat.Above
}

// margin is a second way to certify a percentile. It helps if rounds differ, so that the effective
// number of requests is small, but every round stays far from the limit. It uses a tolerance bound
// on the worst observation of a round, and no round may have a missing value. The exact test must
// pass too, but here differing values of rounds do not reduce the number of requests. If neighbours
// resemble each other, either the requests or the rounds count as fewer.
//
// The bound assumes that the logarithms of the rounds are normal. In simulations with very skewed
// (exponential) rounds it erred three times as often as allowed. So the bound must cover all
// but half of the share that may miss the limit, and may err with a fifth of the plan's error only.
func (s *subject) margin(v *verdict.Verdict, t *plan.Threshold, o observations, groups []stat.Group, share, e float64) bool {
	if s.unfinished() || s.policy.Estimates() || !s.rounds || len(s.blocks) < leastRounds {
		return false
	}
	content, bound, ok := 1-e/2, 0.0, false
	counted := min(stat.Effective(float64(min(s.n, v.N)), groups, nil, s.policy.Alpha()), s.crowding()*float64(s.n))
	alike := s.resemblance([][]stat.Ascending{o.values()})
	blocks := len(s.blocks)
	for _, way := range []struct {
		counted float64
		blocks  int
	}{{counted / alike, blocks}, {counted, max(int(float64(blocks)/alike), leastRounds)}} {
		if stat.Share(share*way.counted, way.counted, e, s.alpha) != stat.Below {
			continue
		}
		if bound, ok = o.worst(t.Op, content, 1-s.alpha/5, way.blocks); ok && sample.Meets(bound, t.Op, t.Limit) {
			break
		}
		ok = false
	}
	if !ok {
		return false
	}
	side := "below"
	if sample.Upward(t.Op) {
		v.Low = metric.Some(max(v.Low.V, bound))
		side = "above"
	} else {
		v.High = metric.Some(min(v.High.V, bound))
	}
	_, rounds := s.level.RoundNames()
	v.Caution(fmt.Sprintf("certified by its margin: judging by the worst request of each of %[4]s, every request stays %[2]s %[3]s in %[1]s of all %[5]s",
		metric.Format(metric.Ratio, content), side, metric.Format(t.Metric.Unit, bound), verdict.Count(len(s.blocks), rounds), rounds))
	return true
}

// clear reports whether almost all rounds stay within the limit, with 85 % confidence. Judgements
// before the end of a level use it, because the first rounds often look good by chance.
func (s *subject) clear(t *plan.Threshold, o observations, e float64) bool {
	bound, ok := o.worst(t.Op, 1-e, 0.85, len(o.blocks))
	return ok && sample.Meets(bound, t.Op, t.Limit)
}

// worst returns a tolerance bound on the worst value of a block. With the given confidence, the
// worst value meets the bound in at least the share "content" of all blocks. The blocks count as the
// given number of independent ones. ok is false if a block has no values, or if a value is missing.
func (o observations) worst(op plan.Op, content, confidence float64, independent int) (bound float64, ok bool) {
	worst := make([]float64, len(o.blocks))
	for i, d := range o.blocks {
		switch n := len(d.Values); {
		case d.Worst > 0 || n == 0:
			return 0, false
		case sample.Upward(op):
			worst[i] = 1 / d.Values[0]
		default:
			worst[i] = d.Values[n-1]
		}
	}
	bound = stat.ToleranceBound(worst, stat.ToleranceFactor(independent, content, confidence))
	if sample.Upward(op) {
		bound = 1 / bound
	}
	return bound, true
}

// nearestRank returns the rank of a percentile among n values, as metric.Distribution.Percentile
// does.
func nearestRank(p float64, n int) int { return min(max(int(math.Ceil(p/100*float64(n)-1e-9)), 1), n) }

// percentileBounds returns the confidence bounds of a percentile. The parameter e is the share of
// the observations that may miss the percentile's limit.
func percentileBounds(d metric.Distribution, effective, e float64, op plan.Op, alpha float64) (low, high float64) {
	l, h := stat.PercentileRanks(d.N(), effective, 1-e, alpha)
	if sample.Upward(op) { // if higher is better, the worst values are the smallest
		return d.Rank(d.Count() + 1 - h), d.Rank(d.Count() + 1 - l)
	}
	return d.Rank(l), d.Rank(h)
}

// mean judges a mean over completed requests by a t interval. The interval uses the means of rounds
// or blocks, which count as independent. Single requests depend on each other.
func (s *subject) mean(v *verdict.Verdict, t *plan.Threshold) {
	o := s.observe(t.Metric)
	d := o.all(t.Op)
	m, ok := d.Mean()
	if !ok {
		noValue(v, t, t.Metric.NoValue)
		return
	}
	v.N = d.Count()
	v.Value = metric.Some(m)
	s.interval(v, t, o.means())
	s.notes(v, o, 0)
	if o.failed > 0 {
		v.Note(fmt.Sprintf("the mean leaves %s out", verdict.Count(o.failed, "failed requests")))
	}
}

// interval judges a mean by a t interval. The units are the values of rounds or blocks, or the
// reciprocals of these values for a pooled metric. Rounds of a constant rate and batches resemble
// their neighbours, so the interval is widened first (see persistence and sample.Resemblance).
func (s *subject) interval(v *verdict.Verdict, t *plan.Threshold, units []float64) {
	k := s.persistence(len(units)) * math.Sqrt(sample.Resemblance(s.level, units, t.Metric.Scope == metric.PerLevel))
	skewed := stat.LogMeanBound(units, k, s.alpha)
	units = stat.Stretched(units, k)
	_, low, high, ok := stat.MeanInterval(units, s.alpha)
	limit := t.Limit
	if ok {
		low, high = max(low, 0), min(max(high, skewed), t.Metric.Most())
		if t.Metric.Pooled {
			low, high, limit = 1/high, 1/low, 1/limit
		}
		v.Low, v.High = metric.Some(low), metric.Some(high)
	}
	noun := "blocks"
	if s.rounds {
		_, noun = s.level.RoundNames()
	}
	v.Message = fmt.Sprintf("%s: %s over %s", compared(t, v.Value), s.bounds(v, t.Metric.Unit), verdict.Count(len(units), noun))
	test, few := within(t, low, high), !ok || len(units) < 2
	if few || s.tooFew() {
		test = stat.Open
	}
	switch {
	case s.settled(v, sample.Meets(v.Value.V, t.Op, t.Limit), test):
	case s.tooFew():
		v.Needs, v.More = s.shortfall(float64(leastRounds * s.level.AtOnce()))
	case few:
		v.Needs = "needs at least two rounds, or two blocks of requests; a block has as many requests as are in flight"
	default:
		needed := math.Inf(1)
		switch n, ok := stat.MeanNeeded(units, limit, s.alpha); {
		case ok && n <= len(units) && skewed > limit: // the bound of skewed units decides, which shrinks about as fast
			mean, _ := stat.Moments(units)
			needed = float64(s.n) * math.Pow((skewed-mean)/(limit-mean), 2)
		case ok:
			needed = float64(s.n) * float64(n) / float64(len(units))
		}
		v.Needs, v.More = s.shortfall(needed)
	}
}

// exact judges a statistic such as min or every. Its value is exact for the requests of this run,
// and says nothing about other requests.
func (s *subject) exact(v *verdict.Verdict, t *plan.Threshold) {
	o := s.observe(t.Metric)
	d := o.all(t.Op)
	_, over, total := o.countFailing(t.Op, t.Limit)
	x, ok := d.Stat(t.Stat)
	if !ok || total == 0 {
		noValue(v, t, t.Metric.NoValue)
		return
	}
	v.N, v.Over, v.Value = total, float64(over), metric.Some(x)
	what := "requests"
	if t.Metric.Scope == metric.PerGap {
		what = "gaps"
	}
	pass := sample.Meets(x, t.Op, t.Limit)
	if t.Stat.Kind == metric.Every {
		pass = over == 0
	}
	v.Message = compared(t, v.Value)
	if t.Stat.Kind == metric.Every || (t.Stat.Kind == metric.Min) == sample.Upward(t.Op) {
		// Add how many values miss the limit. This number would say nothing about the best value,
		// such as a min with an upper limit.
		v.Message += fmt.Sprintf(": %d of %d %s %s", over, total, what, badSide(t))
	}
	v.Note(thisRun)
	s.notes(v, o, 0)
	decided(v, pass)
}

const thisRun = "the value is exact for the requests of this run; it says nothing about other requests"

// judgeByRounds judges a metric with one value for a level, such as throughput. It uses a t
// interval over the values of the rounds or blocks.
func (s *subject) judgeByRounds(v *verdict.Verdict, t *plan.Threshold) {
	if t.Metric.Name == growing {
		s.sustained(v, t)
		return
	}
	if t.Metric.Name == "recovery" {
		s.recovered(v, t)
		return
	}
	good := sample.Good(s.workload)
	v.N, v.Value = s.n, s.level.Value(t.Metric.Name, s.policy.Window, good, s.one)
	if !v.Value.OK || math.IsNaN(v.Value.V) {
		noValue(v, t, v.Value.Why)
		return
	}
	if t.Metric.Name == "scaling_efficiency" {
		s.scaling(v, t)
		return
	}
	var units []float64
	add := func(x metric.Value) {
		if x.OK {
			units = append(units, x.V)
		}
	}
	switch t.Metric.Name {
	case "prefill_speed":
		for _, b := range s.blocks {
			add(s.level.FirstTokenSpeed(b.samples))
		}
		v.Note("computed from ttft at concurrency 1, because the server reports no prefill time")
	case "cache_hit_rate":
		for _, b := range s.blocks {
			add(metric.CacheHitRate(b.samples))
		}
	case "synchrony":
		for _, x := range s.level.Synchronies() {
			add(x)
		}
	default:
		for _, st := range s.stretches(s.policy.Window) {
			x := metric.RateOver(t.Metric.Name, []metric.Stretch{st}, good)
			if !x.OK && st.Seconds() > 0 {
				x = metric.Some(0) // no token arrived in this interval
			}
			add(x)
		}
	}
	s.interval(v, t, units)
}

// scaling judges the ratio throughput(N) / (N·throughput(1)). Each of the two throughputs has a t
// interval with half of the allowed error. For an upper bound on the ratio, the high end of the
// first interval is divided by the low end of the second, and vice versa (Bonferroni).
func (s *subject) scaling(v *verdict.Verdict, t *plan.Threshold) {
	bounds := func(e evidence) (low, high float64, ok bool) {
		var units []float64
		for _, st := range e.stretches(s.policy.Window) {
			units = append(units, metric.RateOver("throughput", []metric.Stretch{st}, nil).V)
		}
		_, low, high, ok = stat.MeanInterval(units, s.alpha/2)
		return max(low, 0), high, ok && len(units) >= 2
	}
	lowN, highN, okN := bounds(s.evidence)
	low1, high1, ok1 := bounds(gather(s.one))
	ok := okN && ok1 && high1 > 0
	n := float64(s.level.N)
	if s.one == s.level {
		lowN, highN, low1, high1, ok = 1, 1, 1, 1, true
	}
	low, high, test := 0.0, math.Inf(1), stat.Open
	if ok {
		low = lowN / (n * high1)
		if low1 > 0 {
			high = highN / (n * low1)
		}
		test = within(t, low, high)
	}
	v.Low, v.High = metric.Some(low), metric.Some(high)
	v.Message = fmt.Sprintf("%s: %s", compared(t, v.Value), s.bounds(v, t.Metric.Unit))
	if !s.settled(v, sample.Meets(v.Value.V, t.Op, t.Limit), test) {
		v.Needs = "needs more rounds at this level and at concurrency 1"
	}
}

func decided(v *verdict.Verdict, pass bool) {
	v.Outcome = verdict.Fail
	if pass {
		v.Outcome = verdict.Pass
	}
}
