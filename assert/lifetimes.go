package assert

import (
	"iter"
	"math"
	"time"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Where hundreds of requests of a rate are answered at once, they are fast or slow together for
// as long as one takes, a lifetime. A window of few lifetimes may hold none of the slowest times,
// and the rounds of such a window do not show that.

// leastLifetimes is the number of lifetimes below which rounds show nothing: neither that requests
// do not move together, nor how far they do. A percentile does not pass then. It was found by
// simulation (TestLongMovingTogether).
const leastLifetimes = 4

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

// lifetimesFor is as many lifetimes as hold the independent moments that a percentile takes
// that allows the share e; 0 if no number of them passes.
func lifetimesFor(e, alpha float64) float64 {
	need, ok := stat.MinimumN(e, alpha)
	if !ok {
		return 0
	}
	return float64(need) / stat.PerLifetime(e)
}

// together is how many independent moments the windows of a rate hold for a percentile that
// allows the share e. ok is false if there are as many as any such percentile takes, or if rounds
// show that requests do not move together. Longer windows show by the spread of their rounds how
// far requests do.
func (s *subject) together(o observations, e float64) (moments float64, ok bool) {
	enough := lifetimesFor(e, s.alpha)
	if enough == 0 || !s.flows() {
		return 0, false
	}
	has := s.lifetimes()
	alone := has >= leastLifetimes && stat.Effective(float64(s.n), nil, [][]stat.Ascending{o.values()}, s.policy.Alpha()) >= float64(s.n)
	if alone || has >= enough {
		return 0, false
	}
	return has * stat.PerLifetime(e), true
}

// flows reports whether the level's rounds are parts of a window in which requests follow each other.
func (s *subject) flows() bool { return s.level.Kind == metric.OpenLoop && s.level.Stage == nil }

// atMost is how many requests count if they move together: the moments, but enough to fail.
// They pass nothing, however few a percentile takes.
func atMost(moments float64) float64 { return max(moments, leastBlocks) }

// apart moves the means of a rate's rounds as far apart as they would be if rounds were
// independent, given how long they are: see stat.Persistence.
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

// lifetimes is how many times as long as a request the level's windows are. Requests weigh by
// their own times, because most of those in flight are long ones.
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

// Lifetime is the mean time that the requests take which are in flight at a moment, in seconds,
// given the times that all of them took: each weighs by its own. 0 without any.
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

// Window is that many lifetimes of a request, as people set it: in steps of ten seconds, of a
// minute from ten minutes on.
func Window(lifetimes, seconds float64) time.Duration {
	step := 10 * time.Second
	if lifetimes*seconds > 600 {
		step = time.Minute
	}
	return time.Duration(math.Ceil(lifetimes*seconds/step.Seconds())) * step
}
