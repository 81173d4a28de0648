package assert

import (
	"fmt"
	"math"
	"time"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/metric"
)

// A level whose latency changes while it is measured is no steady state: its
// numbers depend on how long it was measured. Reported, from leastDrift and at
// a significance of driftError, both ways together; it invalidates nothing,
// since thresholds count every request whenever it came.
const (
	leastDrift = 0.05
	driftError = 0.01
)

// drift words the changes of latency over the level, from round to round, and
// within its rounds.
func (e evidence) drift() []string {
	var notes []string
	word := func(change, p float64, from string) {
		verb := "grows"
		if change < 0 {
			verb = "falls"
		}
		if math.Abs(change) >= leastDrift && p < driftError {
			notes = append(notes, fmt.Sprintf("drift: the end-to-end time %s by %s %s (p = %.2g): not a steady state", verb, metric.Format(metric.Ratio, math.Abs(change)), from, p))
		}
	}
	var at, mean []float64
	for _, b := range e.blocks {
		if t, m, ok := latency(b.samples); ok {
			at, mean = append(at, t), append(mean, m)
		}
	}
	if change, p, ok := slope(at, mean); ok && e.sound {
		word(change, p, "from the first of "+e.String()+" to the last")
	}
	if e.level.Kind != metric.ClosedLoop || len(e.level.Rounds) < leastRounds {
		return notes
	}
	var halves []float64
	for _, r := range e.level.Rounds {
		samples := r.MeasuredSamples()
		_, first, ok1 := latency(samples[:len(samples)/2])
		_, second, ok2 := latency(samples[len(samples)/2:])
		if ok1 && ok2 && len(samples) >= 2*e.level.N {
			halves = append(halves, math.Log(second/first))
		}
	}
	if mean, variance := stat.Moments(halves); len(halves) >= leastRounds {
		// Student's t of the rounds' own changes.
		word(math.Exp(mean)-1, tails(mean/math.Sqrt(variance/float64(len(halves))), len(halves)-1), "from the first half of a round to the second")
	}
	return notes
}

// latency is when the requests that completed started and how long they took,
// on average, in seconds.
func latency(samples []*metric.Sample) (at, mean float64, ok bool) {
	n := 0.0
	var start time.Duration
	for _, x := range samples {
		if e2e, timed := x.Value("e2e"); timed && e2e > 0 {
			start, mean, n = start+x.Sent, mean+e2e, n+1
		}
	}
	return start.Seconds() / n, mean / n, n > 0
}

// slope fits a line and gives the change from the first x to the last as a
// share of the mean, and how likely one as steep is by chance (Student's t
// test of the slope, two-sided).
func slope(x, y []float64) (change, p float64, ok bool) {
	n := len(x)
	if n < leastRounds {
		return 0, 1, false
	}
	mx, vx := stat.Moments(x)
	my, vy := stat.Moments(y)
	cov := 0.0
	for i := range x {
		cov += (x[i] - mx) * (y[i] - my) / float64(n-1)
	}
	if !(vx > 0) || !(my > 0) {
		return 0, 1, false
	}
	b := cov / vx
	rest := math.Max(vy-b*cov, 0) * float64(n-1) / float64(n-2)
	return b * (x[n-1] - x[0]) / my, tails(b/math.Sqrt(rest/(vx*float64(n-1))), n-2), true
}

// tails is P(|T| ≥ |t|); of no spread and no change it is 1.
func tails(t float64, df int) float64 {
	if math.IsNaN(t) {
		return 1
	}
	return 2 * (1 - stat.StudentCDF(math.Abs(t), float64(df)))
}
