package assert

import (
	"iter"
	"math"
	"slices"
	"time"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// A lifetime is the duration of a request. Requests that a server answers at the same time are fast
// or slow together for about one lifetime. A window of only a few lifetimes may miss the slowest
// times, and its rounds do not show this.

// leastLifetimes is how many request lifetimes a window must last for a percentile to pass. In a
// shorter window, the rounds cannot show whether requests are fast or slow together. From
// leastAlone lifetimes on, similar rounds show that requests are independent. Both numbers were
// found by simulation (TestLongMovingTogether).
const (
	leastLifetimes = 4
	leastAlone     = 10
)

// Lifetimes returns how many request lifetimes a threshold needs in the window of a rate. In a
// window of that many lifetimes, the threshold can pass although rounds differ. The given looks may
// extend the window. The result is 0 if the threshold needs no certified percentile of times, and
// no certified share of requests that are good by their times.
func Lifetimes(t *plan.Threshold, w *plan.Workload, looks []plan.Look) float64 {
	scoped := t.Metric.Scope == metric.PerRequest || t.Metric.Scope == metric.PerGap || t.Metric.Scope == metric.Counted
	timed := t.Metric.Name == "goodput" && slices.ContainsFunc(w.Good, func(g *plan.Threshold) bool { return !g.Metric.OfAnswers })
	binds := t.Stat.Kind == metric.Percentile && scoped || t.Stat.Kind == metric.Share && timed
	if !binds || w.Policy.Estimates() {
		return 0
	}
	alpha := w.Policy.Alpha()
	if len(looks) > 0 {
		alpha = errorAtLast(alpha, looks)
	}
	return lifetimesFor(t.Allowed(), alpha)
}

// lifetimesFor returns how many request lifetimes a window needs to certify a percentile. The
// percentile allows the share e of the requests to be over the limit. The result is at least
// leastAlone, or 0 if no window is long enough.
func lifetimesFor(e, alpha float64) float64 {
	need, ok := stat.MinimumN(e, alpha)
	if !ok || e >= 1 {
		return 0
	}
	return max(float64(need)/stat.PerLifetime(e), leastAlone)
}

// countMoments returns how many independent moments a rate's windows hold. If they suffice to
// certify a percentile that allows the share e of requests over the limit, ok is false: in such
// long windows the spread of the rounds shows how much requests are fast or slow together.
func (s *subject) countMoments(e float64) (moments float64, ok bool) {
	enough := lifetimesFor(e, s.alpha)
	if enough == 0 || !s.flows() {
		return 0, false
	}
	has := s.lifetimes()
	if has >= enough {
		return 0, false
	}
	return has * stat.PerLifetime(e), true
}

// fewMoments returns the result of the method countMoments. But if the rounds show that requests
// are not fast or slow together, ok is false.
func (s *subject) fewMoments(o observations, e float64) (moments float64, ok bool) {
	moments, ok = s.countMoments(e)
	long := moments >= leastAlone*stat.PerLifetime(e)
	if ok && long && stat.Effective(float64(s.n), nil, [][]stat.Ascending{o.values()}, s.policy.Alpha()) >= float64(s.n) {
		return 0, false
	}
	return moments, ok
}

// inWindow returns how many requests would decide a percentile or share that allows the share e of
// requests to be over the limit. In a long window it is the parameter needed. In a short window it
// is the number of requests at which the window is long enough.
func (s *subject) inWindow(needed, e float64) float64 {
	return max(needed, float64(s.n)*lifetimesFor(e, s.alpha)/s.lifetimes())
}

// flows reports whether the rounds of the level are parts of one window of constant rate.
func (s *subject) flows() bool { return s.level.Kind == metric.OpenLoop && s.level.Stage == nil }

// countAs returns how many requests count if they are fast or slow together: one for each
// independent moment, and at least 1.
func countAs(moments float64) float64 { return max(moments, 1) }

// persistence returns how much further apart independent rounds would be than these n rounds. Short
// rounds of a constant rate resemble their neighbours; see stat.Persistence. For any other load the
// result is 1.
func (s *subject) persistence(n int) float64 {
	if !s.flows() || n < 2 {
		return 1
	}
	return stat.Persistence(s.lifetimes(), n)
}

// lifetimes returns how many times a request's lifetime fits into the level's windows. For a part
// of a mix, it uses the lifetime of the whole mix if that is longer, because the parts share the
// server.
func (s *subject) lifetimes() float64 {
	if one := max(s.lifetime(), s.mixed); one > 0 {
		return s.seconds() / one
	}
	return math.Inf(1)
}

// lifetime calls Lifetime with the durations of the requests in all blocks.
func (e evidence) lifetime() float64 {
	return Lifetime(func(yield func(float64) bool) {
		for _, b := range e.blocks {
			for _, x := range b.samples {
				if !yield((x.End - x.Scheduled).Seconds()) {
					return
				}
			}
		}
	})
}

// Lifetime returns the mean duration, in seconds, of the requests in flight at a random moment. The
// sequence took has the durations of all requests. A longer request is in flight at more moments,
// so each duration is its own weight. Without requests the result is 0.
func Lifetime(took iter.Seq[float64]) float64 {
	sum, squares := 0.0, 0.0
	for x := range took {
		sum, squares = sum+x, squares+x*x
	}
	if !(squares > 0) {
		return 0
	}
	return squares / sum
}

// Window converts a number of request lifetimes to a duration. A lifetime is in seconds. The result
// is rounded up to a multiple of 10 s, or of a minute if it is above 10 minutes.
func Window(lifetimes, seconds float64) time.Duration {
	step := 10 * time.Second
	if lifetimes*seconds > 600 {
		step = time.Minute
	}
	return time.Duration(math.Ceil(lifetimes*seconds/step.Seconds())) * step
}

// NeverPasses reports whether a threshold cannot pass in a rate's window, even if all rounds are
// alike. It is for windows shorter than Lifetimes requires; a window of 0 is unknown. The parameter
// seconds is the lifetime of a request.
func NeverPasses(t *plan.Threshold, window time.Duration, seconds float64) bool {
	least := float64(leastLifetimes) // beyond this, a percentile far below its limit can pass
	if t.Stat.IsShare() {
		least = leastAlone
	}
	return window > 0 && (t.Metric.Scope == metric.Counted || window.Seconds() < least*seconds)
}
