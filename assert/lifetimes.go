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

// When a server answers hundreds of requests at the same time, they are fast or slow together for
// about one lifetime, the duration of a request. A window of only a few lifetimes may miss the
// slowest times, and its rounds do not show that these are missing.

// leastLifetimes is the smallest number of lifetimes in a window whose rounds can show whether
// requests are fast or slow together. In a shorter window no percentile passes. With at least
// leastAlone lifetimes, similar rounds show that requests are fast or slow independently. Both
// numbers were found by simulation (TestLongMovingTogether).
const (
	leastLifetimes = 4
	leastAlone     = 10
)

// Lifetimes is how many times as long as a request the window of a rate must be for a threshold of
// the workload to pass if rounds differ, a percentile without its margin. The window may be extended
// by the given looks. The result is 0 for anything but a certified percentile of requests or gaps, or
// of a histogram of the server, and a certified share of requests that are good by their times.
func Lifetimes(t *plan.Threshold, w *plan.Workload, looks []plan.Look) float64 {
	scoped := t.Metric.Scope == metric.PerRequest || t.Metric.Scope == metric.PerGap || t.Metric.Scope == metric.Counted
	timed := t.Metric.Name == "goodput" && slices.ContainsFunc(w.Good, func(g *plan.Threshold) bool { return !g.Metric.OfAnswers })
	binds := t.Stat.Kind == metric.Percentile && scoped || t.Stat.Kind == metric.Share && timed
	if !binds || w.Policy.Decide == plan.Estimate {
		return 0
	}
	alpha := w.Policy.Alpha()
	if len(looks) > 0 {
		alpha = errorAtLast(alpha, looks)
	}
	return lifetimesFor(t.Allowed(), alpha)
}

// lifetimesFor returns how many lifetimes a window needs, so that it holds enough independent
// moments for a percentile that e of the requests may miss. It is at least leastAlone. It is 0 if
// no window is long enough.
func lifetimesFor(e, alpha float64) float64 {
	need, ok := stat.MinimumN(e, alpha)
	if !ok || e >= 1 {
		return 0
	}
	return max(float64(need)/stat.PerLifetime(e), leastAlone)
}

// few returns how many independent moments the windows of a rate hold, for a percentile that allows
// the share e. ok is false if there are enough. In longer windows the spread of rounds shows how
// much requests are fast or slow together.
func (s *subject) few(e float64) (moments float64, ok bool) {
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

// together is few, but ok is also false if the rounds show that requests are not fast or slow
// together.
func (s *subject) together(o observations, e float64) (moments float64, ok bool) {
	moments, ok = s.few(e)
	long := moments >= leastAlone*stat.PerLifetime(e)
	if ok && long && stat.Effective(float64(s.n), nil, [][]stat.Ascending{o.values()}, s.policy.Alpha()) >= float64(s.n) {
		return 0, false
	}
	return moments, ok
}

// inWindow returns how many requests would decide a percentile or share that allows e. In windows
// that are too short, see together, that takes at least as many as make them long enough. needed is
// how many it would take in windows that are.
func (s *subject) inWindow(needed, e float64) float64 {
	return max(needed, float64(s.n)*lifetimesFor(e, s.alpha)/s.lifetimes())
}

// flows reports whether the level's rounds are parts of a window in which requests follow each other.
func (s *subject) flows() bool { return s.level.Kind == metric.OpenLoop && s.level.Stage == nil }

// countAs returns how many requests count if requests are fast or slow together: as many as there
// are moments, but at least one. They are never enough to pass.
func countAs(moments float64) float64 { return max(moments, 1) }

// persistence is how many times as far apart the values of n rounds of a rate would be if the rounds
// were independent: short rounds resemble their neighbours. See stat.Persistence. It is 1 for
// anything but a rate.
func (s *subject) persistence(n int) float64 {
	if !s.flows() || n < 2 {
		return 1
	}
	return stat.Persistence(s.lifetimes(), n)
}

// widened moves values k times as far from their mean.
func widened(values []float64, k float64) []float64 {
	if k == 1 {
		return values
	}
	middle, _ := stat.Moments(values)
	out := make([]float64, len(values))
	for i, x := range values {
		out[i] = middle + k*(x-middle)
	}
	return out
}

// lifetimes is the length of the level's windows, in lifetimes of a request. The parts of a mix share
// the server, so a part's own requests are fast or slow for a lifetime of the whole mix, if that is
// longer.
func (s *subject) lifetimes() float64 {
	if one := max(s.lifetime(), s.mixed); one > 0 {
		return s.seconds() / one
	}
	return math.Inf(1)
}

// lifetime is the Lifetime of the requests in all blocks.
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

// Lifetime returns the mean duration, in seconds, of the requests that are in flight at a moment.
// The sequence took yields the durations of all requests. A longer request is more likely to be in
// flight, so durations are weighted by themselves. Without requests the result is 0.
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

// Window converts a number of lifetimes, each of the given seconds, to a duration. It rounds up to
// ten seconds, or to a minute above ten minutes.
func Window(lifetimes, seconds float64) time.Duration {
	step := 10 * time.Second
	if lifetimes*seconds > 600 {
		step = time.Minute
	}
	return time.Duration(math.Ceil(lifetimes*seconds/step.Seconds())) * step
}

// NeverPasses reports whether a threshold cannot pass in a rate's window, beside the time of a request
// in seconds, even if rounds are alike. The window is shorter than Lifetimes says; 0 is unknown.
func NeverPasses(t *plan.Threshold, window time.Duration, seconds float64) bool {
	least := float64(leastLifetimes) // from here on a percentile may pass by its margin
	switch {
	case t.Metric.Scope == metric.Counted:
		return true
	case t.Stat.IsShare():
		least = leastAlone
	}
	return window > 0 && window.Seconds() < least*seconds
}
