package assert

import (
	"fmt"
	"math"
	"slices"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// subject is the measurement of one case. The thresholds of the case are judged on it.
type subject struct {
	evidence
	workload *plan.Workload
	one      *metric.Level   // level 1 of the same workload and server; nil if it was not measured
	pairs    []*metric.Level // same workload and level on servers that may take turns with it
	price    metric.Price
	policy   plan.Policy
	alpha    float64 // allowed one-sided error: 1 − confidence
	mixed    float64 // for a part of a mix: lifetime of a request of the whole mix, in seconds; otherwise 0
	due      int     // planned number of requests if the level still runs; otherwise 0
}

// effective returns how many independent requests the level's requests count as. Requests at the
// same moment depend on each other, so they count less; see stat.Effective and the methods
// resemblance and crowding. With too few blocks the number is at most the number of waves.
func (s *subject) effective(groups []stat.Group, quantities [][]stat.Ascending) float64 {
	n := stat.Effective(float64(s.n), groups, quantities, s.policy.Alpha()) / s.resemblance(quantities)
	if !s.sound {
		n = min(n, float64(s.waves))
	}
	return min(n, s.crowding()*float64(s.n))
}

func (s *subject) unfinished() bool { return s.due > s.n }

// largest returns the largest rate that the saturated server sustained, in requests per second, from
// the rates in the parts of the saturation. low and high are its bounds at the error alpha. ok is
// false if the rate is unknown.
func largest(parts []float64, alpha float64) (mean, low, high float64, ok bool) {
	if slices.ContainsFunc(parts, func(x float64) bool { return !(x >= 0) || math.IsInf(x, 0) }) {
		return 0, 0, 0, false
	}
	mean, low, high, ok = stat.MeanInterval(parts, alpha)
	return mean, low, high, ok && low > 0
}

// crowding returns the share of requests that count as independent, in (0, 1]. Near the largest
// rate a queue has few and long busy periods, so requests depend on each other and count as fewer.
//
// The share is at most (1 − ρ)²/(c² + 0.5). ρ is the rate divided by the lower bound of the largest
// rate. c² is the variance of the gaps between arrivals, divided by the square of their mean. If
// the plan forbids to measure the largest rate, each wave counts as one request. If the largest rate is
// unknown for another reason, the share is 1.
func (s *subject) crowding() float64 {
	_, least, _, ok := largest(s.level.Saturation, s.policy.Alpha())
	switch {
	case s.unsaturated():
		return min(1, float64(s.waves)/float64(max(s.n, 1)))
	case !ok || s.level.Kind != metric.OpenLoop:
		return 1
	}
	idle := max(1-s.level.Rate/least, 0)
	worth := min(1, idle*idle/(s.scatter()+0.5))
	return spaced(worth, s.level.Fraction())
}

// spaced returns how many independent requests one request of a mix's part is worth. The parameter
// worth is the same number for a request of the whole mix, and share is the part's share. Requests
// of a part are further apart in time, so each is worth more.
//
// The variance of the mean of n of N requests has two terms. Choosing the n requests at random adds
// 1/n. Dependence among the N requests adds 1/(worth·N) − 1/N. The second term counts twice, for
// safety, because there may be only a few busy periods.
func spaced(worth, share float64) float64 { return max(worth, 1/(1+2*share*(1/worth-1))) }

// nearness writes the level's rate as a percentage of the server's largest rate, for which it takes
// the lower bound.
func (s *subject) nearness() string {
	_, least, _, _ := largest(s.level.Saturation, s.policy.Alpha())
	return metric.Format(metric.Ratio, s.level.Rate/least)
}

// lowerRate says that only a lower rate can be certified. The level's rate is at or above the lower
// bound of the largest rate.
func (s *subject) lowerRate() string {
	_, least, _, _ := largest(s.level.Saturation, s.policy.Alpha())
	return fmt.Sprintf("needs a rate below %s, the largest rate that the server is certified to sustain; at a higher rate no number of requests decides the verdict", metric.Format(metric.PerSecond, least))
}

// scatter returns the squared coefficient of variation of the gaps between arrivals.
func (s *subject) scatter() float64 {
	if open := s.arrivals(); open != nil {
		return 1 / open.Shape()
	}
	return 1
}

func (s *subject) arrivals() *plan.Open {
	if c := s.workload.Root().Capacity; s.level.Probe != nil && c != nil && c.Load != nil && c.Load.Open != nil {
		return c.Load.Open
	}
	for _, load := range s.workload.Loads {
		if load.Open != nil && slices.ContainsFunc(load.Levels, func(l plan.Level) bool { return l.Name == s.level.Name }) {
			return load.Open
		}
	}
	return nil
}

// unsaturated reports whether the level has a rate, and the plan forbids to measure the largest rate of
// the server. Then nothing tells how near the rate is, and how long busy periods are.
func (s *subject) unsaturated() bool {
	if s.level.Kind != metric.OpenLoop {
		return false
	}
	open, c := s.arrivals(), s.workload.Root().Capacity
	return open != nil && (open.Unsaturated || s.level.Probe != nil && c != nil && c.Largest > 0)
}
