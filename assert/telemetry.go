package assert

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// counted judges a threshold on a percentile or mean of a server's histogram.
//
// The exact binomial test decides, with rounds as groups. If the limit is inside a bucket, a pass
// counts the whole bucket as over the limit, and a fail counts none of it. The server also counts
// warm-up requests and fillers, so the effective number is at most the number of measured requests.
func (s *subject) counted(v *verdict.Verdict, t *plan.Threshold) {
	h, why := s.level.Histogram(t.Metric.Name)
	if why = cmp.Or(why, sample.Elsewhere(s.level)); why != "" {
		noValue(v, t, why)
		return
	}
	v.Note("the value comes from the server's own histogram of all requests that the server finished in the window")
	v.N = int(math.Round(h.N()))
	if t.Stat.Kind == metric.Mean {
		m, _ := h.Mean()
		v.Value = metric.Some(m)
		var units []float64
		for _, r := range s.level.Rounds {
			if m, ok := r.Telemetry.Histograms[t.Metric.Name].Mean(); ok {
				units = append(units, m)
			}
		}
		s.overRounds(v, t, units)
		return
	}
	s.bucketed(v, t, h)
}

func (s *subject) bucketed(v *verdict.Verdict, t *plan.Threshold, h metric.Histogram) {
	estimate, low, high, ok := h.Percentile(t.Stat.P)
	if !ok {
		noValue(v, t, "the server reports only a mean, not a distribution")
		return
	}
	v.Value = metric.Some(estimate)
	e := t.Allowed()
	atLeast, atMost := h.Over(t.Limit)
	counted := s.worthOf(t, h)
	moments, few := s.countMoments(e)
	if v.Over, v.Effective = atMost, counted; few {
		v.Effective = min(counted, countAs(moments))
	}
	v.Low, v.High = bucketBounds(h, v.Effective, t.Stat.P/100, s.alpha)
	within := fmt.Sprintf("between %s and %s", metric.Format(t.Metric.Unit, low), metric.Format(t.Metric.Unit, high))
	over := fmt.Sprintf("%.0f", atMost)
	if atLeast != atMost {
		over = fmt.Sprintf("%.0f to %.0f", atLeast, atMost)
	}
	v.Message = fmt.Sprintf("%s (an estimate; the true value is %s): %s of %d requests are over the limit (allowed %s), %s", compared(t, v.Value), within,
		over, v.N, metric.Format(metric.Ratio, e), s.bounds(v, t.Metric.Unit))
	allowed := float64(v.N - nearestRank(t.Stat.P, v.N))
	switch {
	case (atMost <= allowed || atLeast > allowed) && s.estimated(v, atMost <= allowed):
	case s.policy.Estimates():
		v.Outcome, v.More = verdict.Inconclusive, -1
		v.Needs = bucketAdvice(t, low, high)
	case !few && stat.Share(atMost/h.N()*v.Effective, v.Effective, e, s.alpha) == stat.Below:
		v.Outcome = verdict.Pass
	case stat.Share(atLeast/h.N()*v.Effective, v.Effective, e, s.alpha) == stat.Above:
		v.Outcome = verdict.Fail
	case atLeast/h.N() <= e && atMost/h.N() > e:
		v.Outcome, v.More = verdict.Inconclusive, -1
		v.Needs = bucketAdvice(t, low, high)
	case few:
		s.noteMoments(v, moments)
		s.decide(v, false, stat.Open, s.inWindow(s.needed(atMost/h.N(), e, counted), e))
		s.tooShort(v, e)
	default:
		s.decide(v, false, stat.Open, s.needed(atMost/h.N(), e, counted))
	}
}

// worthOf returns the effective number of the requests in a histogram. If the limit is inside a
// bucket, the number of requests over the limit is known only to lie between a smallest and a
// largest one. worthOf then returns the smaller of the effective numbers for these two.
func (s *subject) worthOf(t *plan.Threshold, h metric.Histogram) float64 {
	var least, most []stat.Group
	for _, r := range s.level.Rounds {
		x := r.Telemetry.Histograms[t.Metric.Name]
		a, b := x.Over(t.Limit)
		least, most = append(least, stat.Group{K: a, N: x.N()}), append(most, stat.Group{K: b, N: x.N()})
	}
	n := min(h.N(), float64(s.n))
	with := len(slices.DeleteFunc(slices.Clone(most), func(g stat.Group) bool { return g.N == 0 }))
	effective := min(stat.Effective(n, least, nil, s.policy.Alpha()), stat.Effective(n, most, nil, s.policy.Alpha()))
	if with < leastRounds {
		effective = min(effective, float64(s.waves))
	}
	return min(effective, s.crowding()*n)
}

// bucketAdvice returns a note for a limit in the same bucket as the percentile. It suggests a limit
// at one end of the bucket.
func bucketAdvice(t *plan.Threshold, low, high float64) string {
	return fmt.Sprintf("the buckets of the server's histogram do not show on which side of the limit %s the value lies; use a limit of %s or %s",
		metric.Format(t.Metric.Unit, t.Limit), metric.Format(t.Metric.Unit, low), metric.Format(t.Metric.Unit, high))
}

// mostBuckets is the largest number of observations of a histogram for which bounds are computed. A
// faulty metrics page may claim more, and they would take too long.
const mostBuckets = 1 << 20

// bucketBounds returns bounds on the quantile q of a histogram. For the lower bound, every
// observation is at the lower end of its bucket. For the upper bound, it is at the upper end.
func bucketBounds(h metric.Histogram, effective, q, alpha float64) (low, high metric.Value) {
	if h.N() > mostBuckets {
		return metric.None("too many observations"), metric.None("too many observations")
	}
	var lower, upper []float64
	for i, c := range h.Counts {
		a, b := 0.0, math.Inf(1)
		if i > 0 {
			a = max(h.Bounds[i-1], 0)
		}
		if i < len(h.Bounds) {
			b = h.Bounds[i]
		}
		for range int(math.Round(c)) {
			lower, upper = append(lower, a), append(upper, b)
		}
	}
	l, _ := stat.PercentileBounds(lower, 0, effective, q, alpha)
	_, u := stat.PercentileBounds(upper, 0, effective, q, alpha)
	return metric.Some(max(l, 0)), metric.Some(u)
}

// overRounds decides a threshold by a t interval over rounds. units has one value for each round.
func (s *subject) overRounds(v *verdict.Verdict, t *plan.Threshold, units []float64) {
	rounds := *s
	rounds.rounds = true
	rounds.interval(v, t, units)
}

// read judges a threshold on a gauge, a value that was read repeatedly. A mean gets an interval
// over the rounds. A minimum or maximum is compared with the limit as it is, and a note says that
// it holds for these readings only.
func (s *subject) read(v *verdict.Verdict, t *plan.Threshold) {
	g, why := s.level.Gauge(t.Metric.Name)
	x, ok := g.Stat(t.Stat)
	if t.Metric.Source == metric.Server {
		why = cmp.Or(why, sample.Elsewhere(s.level))
	}
	if why != "" || !ok {
		noValue(v, t, why)
		return
	}
	v.N, v.Value = g.N, metric.Some(x)
	if t.Metric.Source == metric.Starts {
		v.Message = fmt.Sprintf("%s in %s", compared(t, v.Value), verdict.Count(g.N, "starts"))
		v.Note("the value is exact for the starts of this run; it says nothing about later ones")
		decided(v, sample.Meets(x, t.Op, t.Limit))
		return
	}
	if t.Stat.Kind == metric.Mean {
		var units []float64
		for _, r := range s.level.Rounds {
			if g, ok := r.Telemetry.Gauges[t.Metric.Name]; ok && g.N > 0 {
				units = append(units, g.Mean)
			}
		}
		s.overRounds(v, t, units)
		v.Note(fmt.Sprintf("mean of %s", verdict.Count(g.N, "readings")))
		return
	}
	v.Message = fmt.Sprintf("%s in %s", compared(t, v.Value), verdict.Count(g.N, "readings"))
	v.Note("the value is exact for the readings of this run; it says nothing about the time between readings")
	decided(v, sample.Meets(x, t.Op, t.Limit))
}

// judgeLevelValue judges metrics that have one value for a level. The value comes from the server's
// counters, the GPUs or the plan's prices. A t interval over rounds decides, or the value itself if
// it is exact. For all other metrics judgeLevelValue returns false.
func (s *subject) judgeLevelValue(v *verdict.Verdict, t *plan.Threshold) bool {
	name := t.Metric.Name
	of := func(l *metric.Level) metric.Value { return l.Value(name, s.policy.Window, nil, nil) }
	switch {
	case t.Metric.Source == metric.Prices:
		of = func(l *metric.Level) metric.Value { return l.Cost(name, s.price, l.Windows(s.policy.Window)) }
	case name == "prefill_speed":
		if _, told := s.level.PrefillSpeed(nil); !told {
			return false
		}
		v.Note("computed from the server's own prefill time")
	case name == "imbalance":
		s.imbalanced(v, t)
		return true
	case name == "cache_hit_rate":
		if _, told := s.level.CacheHitRate(s.level.MeasuredSamples()); !told {
			return false
		}
		v.Note("the value comes from the server's counters, because the server's usage does not report cached tokens")
	case t.Metric.Source == metric.Client:
		return false
	}
	if why := sample.Elsewhere(s.level); why != "" && t.Metric.Source != metric.GPU && t.Metric.Source != metric.Prices {
		noValue(v, t, why)
		return true
	}
	v.N, v.Value = s.n, of(s.level)
	if !v.Value.OK || math.IsNaN(v.Value.V) {
		noValue(v, t, v.Value.Why)
		return true
	}
	switch {
	case name == "preemptions":
		v.Message = compared(t, v.Value)
		v.Note("the value is exact for the windows of this run; it says nothing about other windows")
		decided(v, sample.Meets(v.Value.V, t.Op, t.Limit))
		return true
	case name == "cost_per_hour" && s.price.Electricity == 0:
		v.Message = compared(t, v.Value)
		v.Note("from the plan's prices alone")
		decided(v, sample.Meets(v.Value.V, t.Op, t.Limit))
		return true
	}
	var units []float64
	for _, one := range s.level.Each() {
		if x := of(one); x.OK {
			units = append(units, x.V)
		}
	}
	s.overRounds(v, t, units)
	return true
}

// queue describes the server's queue of waiting requests, and how many requests the server
// rejected. The counters come from the rounds that have them; see metric.Level.Told.
func queue(l, told *metric.Level, say func(format string, args ...any)) {
	if g, why := l.Gauge("waiting"); why == "" && g.Max >= 1 {
		say("the queue held up to %s, and %s on average", verdict.Count(int(math.Round(g.Max)), "requests"), metric.Format(metric.Count, g.Mean))
	} else if why == "" {
		say("the queue was empty at each reading")
	}
	if g, why := l.Gauge("waiting_deferred"); why == "" && g.Max >= 1 {
		say("up to %s requests waited for something other than room in the batch or the cache", metric.Format(metric.Count, math.Round(g.Max)))
	}
	for _, c := range []struct{ counter, words string }{
		{metric.Rejected, "were not admitted"}, {metric.Errors, "ended with an engine error"},
	} {
		if x := told.Added(c.counter); x.OK && x.V >= 0.5 {
			say("%s %s", verdict.Count(int(math.Round(x.V)), "requests"), c.words)
		}
	}
}

// doing describes in one line what the server says that it did during the level. It returns "" if
// the server said nothing.
func doing(l *metric.Level) string {
	told, _ := l.Told()
	var parts []string
	say := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	whole := func(x float64) string { return metric.Format(metric.Count, math.Round(x)) }
	queue(l, told, say)
	if g, why := l.Gauge("running"); why == "" {
		say("up to %s requests ran at once", whole(g.Max))
	}
	if g, why := l.Gauge("kv_usage"); why == "" {
		say("the KV cache was up to %s full", metric.Format(metric.Ratio, g.Max))
	}
	if x := told.Added(metric.Preempted); x.OK && x.V >= 0.5 {
		say("%s", verdict.Count(int(math.Round(x.V)), "preemptions"))
	} else if x.OK {
		say("no preemption")
	}
	if h, why := told.Histogram("queue_wait"); why == "" {
		if m, ok := h.Mean(); ok {
			say("requests waited %s on average", metric.Format(metric.Seconds, m))
		}
	}
	if g, why := l.Gauge("gpu_clock"); why == "" && g.Min < 0.9*g.Max {
		say("the clock of a GPU fell to %s from %s", metric.Format(metric.Hertz, g.Min), metric.Format(metric.Hertz, g.Max))
	}
	if len(parts) == 0 {
		return ""
	}
	return "the server then: " + strings.Join(parts, "; ")
}
