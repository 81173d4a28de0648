package assert

import (
	"fmt"
	"math"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// notes adds a note on how many independent requests the measured requests are worth. e is the
// share of requests that a percentile allows beyond the limit; 0 for other statistics.
func (s *subject) notes(v *verdict.Verdict, o observations, e float64) {
	moments, together := s.fewMoments(o, e)
	words, crowded := s.crowded(v.Effective)
	switch {
	case !s.sound && v.Effective > 0:
		_, rounds := s.level.RoundNames()
		v.Note(fmt.Sprintf("%s and %s are too few to show how requests depend on each other, so each wave of %d requests counts as one request (%s in all)",
			verdict.Count(len(s.level.Rounds), rounds), verdict.Count(s.n, "requests"), s.level.AtOnce(), verdict.Count(s.waves, "waves")))
	case together && s.noteMoments(v, moments):
	case crowded:
		v.Note(words)
	case v.Effective > 0 && v.Effective < 0.995*float64(s.n):
		v.Note(fmt.Sprintf("the values of %[3]s differ so much that %[1]s count as only %[2]s independent requests",
			verdict.Count(s.n, "requests"), metric.Format(metric.Count, math.Floor(v.Effective)), s.evidence))
	}
	missing, leftOut := -o.failed, 0
	for _, d := range o.blocks {
		missing += d.Worst
		leftOut += d.LeftOut
	}
	if leftOut > 0 {
		v.Note(fmt.Sprintf("%s that came in one chunk are left out, because they have no %s", verdict.Count(leftOut, "answers"), o.def.Name))
	}
	if per := s.perChunk(); o.def.Scope == metric.PerGap && per > metric.FewPerChunk {
		v.Note(fmt.Sprintf("a chunk holds %s on average, so a gap between chunks is not the time of one token", metric.Format(metric.Tokens, per)))
	}
	if missing > 0 && v.Threshold.Stat.Kind != metric.Mean {
		v.Note(fmt.Sprintf("%s completed without a value of this metric; each counts as over the limit", verdict.Count(missing, "requests")))
	} else if missing > 0 {
		v.Note(fmt.Sprintf("the mean leaves out %s that completed without a value of this metric", verdict.Count(missing, "requests")))
	}
}

// crowded explains why many requests count as few: the rate is near the largest rate of the server.
// ok is false if something else limits the effective number of requests, or if this number is 0.
func (s *subject) crowded(effective float64) (words string, ok bool) {
	most := s.crowding() * float64(s.n)
	if effective <= 0 || s.crowding() >= 1 || effective > most || effective <= 0.995*most {
		return "", false
	}
	return fmt.Sprintf("at %s of the largest rate that the server can sustain, %s count as at most %s independent requests, because busy periods are few and long",
		s.nearness(), verdict.Count(s.n, "requests"), metric.Format(metric.Count, math.Floor(effective))), true
}

// moveTogether explains why many requests count as few: requests in flight at the same time are
// fast or slow together. worth is the number of independent requests that all of them count as.
func (s *subject) moveTogether(worth float64) string {
	return fmt.Sprintf("about %s are in flight at the same time, and they are fast or slow together. So in a window of only %s request lifetimes, %s count as at most %.0f independent requests",
		verdict.Count(s.wave(), "requests"), metric.FormatDigits(metric.Count, s.lifetimes(), 2), verdict.Count(s.n, "requests"), math.Floor(worth))
}

// noteMoments adds a note to v if too few moments were independent. It reports whether it did.
// moments is the number of independent moments.
func (s *subject) noteMoments(v *verdict.Verdict, moments float64) bool {
	limits := v.Effective == countAs(moments)
	if limits {
		v.Note(s.moveTogether(v.Effective))
	}
	return limits
}

// tooShort adds a note to an undecided percentile: the shortest window that it needs. e is the
// allowed share of requests beyond the limit, such as 0.05 for a p95.
func (s *subject) tooShort(v *verdict.Verdict, e float64) {
	if v.Outcome == verdict.Inconclusive && v.More > 0 {
		long := Window(lifetimesFor(e, s.alpha), s.seconds()/s.lifetimes())
		v.Note(fmt.Sprintf("needs a window of at least %s", plan.PlainDuration(long)))
	}
}

func (s *subject) perChunk() float64 {
	mean, _ := metric.Of(metric.MustLookup("tokens_per_chunk"), s.level.MeasuredSamples()).Mean()
	return mean
}

func noValue(v *verdict.Verdict, t *plan.Threshold, why string) {
	if why == "" {
		why = "nothing was measured"
	}
	v.Outcome, v.Value = verdict.Error, metric.None(why)
	v.Message = fmt.Sprintf("%s has no value: %s", label(t), why)
}

// label returns the metric and its statistic, such as "ttft p95". An implied threshold has only the
// metric, because nobody wrote its statistic.
func label(t *plan.Threshold) string {
	if s := t.Stat.String(); s != "" && t.Stat.Kind != metric.Implied {
		return t.Metric.Name + " " + s
	}
	return t.Metric.Name
}

// compared returns a value and its limit in words, such as "ttft p95 9.12 s > 8 s".
func compared(t *plan.Threshold, v metric.Value) string {
	relation := "="
	switch {
	case v.V > t.Limit:
		relation = ">"
	case v.V < t.Limit:
		relation = "<"
	}
	value, limit := metric.FormatPair(t.Metric.UnitOf(t.Stat), v.V, t.Limit)
	return fmt.Sprintf("%s %s %s %s", label(t), value, relation, limit)
}

func badSide(t *plan.Threshold) string {
	if sample.Upward(t.Op) {
		return "below"
	}
	return "over"
}

func (s *subject) bounds(v *verdict.Verdict, unit metric.Unit) string {
	return v.Bounds(metric.In(unit))
}
