package assert

import (
	"iter"
	"math"
	"time"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// If a server answers hundreds of requests of a rate at the same time, these are fast or slow
// together, for as long as one request takes: a lifetime. A window of few lifetimes may contain
// none of the slowest times, and the rounds of such a window do not show that they are missing.

// leastLifetimes is the smallest number of lifetimes in a window whose rounds show how much requests
// are fast or slow together. In a shorter window no percentile passes. From leastAlone lifetimes on,
// rounds that are alike show that requests are not fast or slow together. Both numbers were found by
// simulation (TestLongMovingTogether).
const (
	leastLifetimes = 4
	leastAlone     = 10
)

// Lifetimes is how many times as long as a request the window of a rate must be for a percentile
// to pass without its margin if rounds differ. The window may be extended by the given looks. It
// is 0 for anything but a certified percentile of requests or gaps.
func Lifetimes(t *plan.Threshold, policy plan.Policy, looks []plan.Look) float64 {
	scoped := t.Metric.Scope == metric.PerRequest || t.Metric.Scope == metric.PerGap
	if t.Stat.Kind != metric.Percentile || !scoped || policy.Decide == plan.Estimate {
		return 0
	}
	alpha := policy.Alpha()
	if len(looks) > 0 {
		alpha = errorAtLast(alpha, looks)
	}
	return lifetimesFor(t.Allowed(), alpha)
}

// lifetimesFor returns how many lifetimes a window needs to hold the independent moments for a
// percentile that allows the share e: at least leastAlone. It returns 0 if a percentile cannot pass
// with any number.
func lifetimesFor(e, alpha float64) float64 {
	need, ok := stat.MinimumN(e, alpha)
	if !ok {
		return 0
	}
	return max(float64(need)/stat.PerLifetime(e), leastAlone)
}

// together returns how many independent moments the windows of a rate hold, for a percentile that
// allows the share e. ok is false if that limit does not apply: there are enough moments, or the
// rounds show that requests are not fast or slow together. In longer windows the spread of rounds
// shows how much requests are.
func (s *subject) together(o observations, e float64) (moments float64, ok bool) {
	enough := lifetimesFor(e, s.alpha)
	if enough == 0 || !s.flows() {
		return 0, false
	}
	has := s.lifetimes()
	alone := has >= leastAlone && stat.Effective(float64(s.n), nil, [][]stat.Ascending{o.values()}, s.policy.Alpha()) >= float64(s.n)
	if alone || has >= enough {
		return 0, false
	}
	return has * stat.PerLifetime(e), true
}

// flows reports whether the level's rounds are parts of a window in which requests follow each other.
func (s *subject) flows() bool { return s.level.Kind == metric.OpenLoop && s.level.Stage == nil }

// atMost returns how many requests count if requests are fast or slow together: as many as there
// are moments, but always enough to fail. They are never enough to pass.
func atMost(moments float64) float64 { return max(moments, leastBlocks) }

// apart corrects the means of a rate's rounds. Neighbouring rounds that are short resemble each
// other, so apart moves their means as far apart as the means of independent rounds would be; see
// stat.Persistence.
func (s *subject) apart(means []float64) []float64 {
	if !s.flows() || len(means) < 2 {
		return means
	}
	k := stat.Persistence(s.lifetimes(), len(means))
	middle, _ := stat.Moments(means)
	out := make([]float64, len(means))
	for i, x := range means {
		out[i] = middle + k*(x-middle)
	}
	return out
}

// lifetimes is the length of the level's windows, in lifetimes of a request. Requests are weighted
// by their own times, because most requests that are in flight at a moment are long ones.
func (s *subject) lifetimes() float64 {
	one := Lifetime(func(yield func(float64) bool) {
		for _, b := range s.blocks {
			for _, x := range b.samples {
				if !yield((x.End - x.Scheduled).Seconds()) {
					return
				}
			}
		}
	})
	if one > 0 {
		return s.seconds() / one
	}
	return math.Inf(1)
}

// Lifetime is the mean duration, in seconds, of the requests that are in flight at a moment. took
// yields the durations of all requests. Each request has its duration as its weight, because a
// longer one is in flight at more moments. It is 0 without requests.
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

// Window converts a number of lifetimes to a duration that people would write: rounded up to ten
// seconds or, above ten minutes, to a minute.
func Window(lifetimes, seconds float64) time.Duration {
	step := 10 * time.Second
	if lifetimes*seconds > 600 {
		step = time.Minute
	}
	return time.Duration(math.Ceil(lifetimes*seconds/step.Seconds())) * step
}

// NonePasses reports whether a rate's window is too short, beside the time of a request in seconds,
// for any percentile to pass. 0 of either is unknown.
func NonePasses(window time.Duration, seconds float64) bool {
	return window > 0 && window.Seconds() < leastLifetimes*seconds
}
