package assert

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// These are the limits for the report of a drift, a change of latency during a level. A drift must
// be at least leastDrift, and significant at driftError (two-sided).
//
// A drift shows that results depend on the length of the level. It does not make the level invalid.
const (
	leastDrift = 0.05
	driftError = 0.01
)

// drift returns notes on how latency changes during the level: from round to round, and within a
// round.
func (e evidence) drift() []string {
	if e.level.Kind.Windowed() && !e.level.Steady() {
		return nil // the load itself changes
	}
	var notes []string
	word := func(change, p float64, from string) {
		verb := "grows"
		if change < 0 {
			verb = "falls"
		}
		if math.Abs(change) >= leastDrift && p < driftError {
			notes = append(notes, fmt.Sprintf("drift: the end-to-end time %s by %s %s (p = %.2g), so this is not a steady state", verb, metric.Format(metric.Ratio, math.Abs(change)), from, p))
		}
	}
	at, logs := e.latencies()
	if warming := e.warming(); warming != "" {
		notes = append(notes, warming)
	} else if change, p, ok := slope(at, logs); ok && e.sound {
		word(math.Exp(change)-1, p, "from the first of "+e.String()+" to the last")
	}
	if e.level.Kind != metric.ClosedLoop || e.batched() || len(e.level.Rounds) < leastRounds {
		return notes // a batch has no beginning and end of its own
	}
	var halves []float64
	for _, r := range e.level.Rounds {
		samples := r.MeasuredSamples()
		_, first, ok1 := latency(samples[:len(samples)/2])
		_, second, ok2 := latency(samples[len(samples)/2:])
		if ok1 && ok2 && len(samples) >= 2*e.level.AtOnce() {
			halves = append(halves, math.Log(second/first))
		}
	}
	if mean, variance := stat.Moments(halves); len(halves) >= leastRounds {
		// This is Student's t test on the change within a round. Each round is one observation.
		word(math.Exp(mean)-1, tails(mean/math.Sqrt(variance/float64(len(halves))), len(halves)-1), "from the first half of a round to the second")
	}
	return notes
}

// latencies returns the mean start time of each block, and the logarithm of its mean latency. It
// leaves out blocks without a completed request.
func (e evidence) latencies() (at, logs []float64) {
	for _, b := range e.blocks {
		if t, m, ok := latency(b.samples); ok {
			at, logs = append(at, t), append(logs, math.Log(m))
		}
	}
	return at, logs
}

// latency returns the mean start time and the mean latency of the completed requests, in seconds.
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

// leastWarming is the ratio of latencies that shows a warm-up was too short. It divides latencies
// in the first blocks of a level by those in later blocks.
const leastWarming = 1.5

// warming returns a note if the warm-up seems too short; otherwise "". It seems too short if the
// first blocks are all much slower than every later block, and are at most half of all blocks.
//
// By chance the k slowest of n blocks come first with probability 1 / C(n, k).
func (e evidence) warming() string {
	_, logs := e.latencies()
	if !e.sound || e.level.Kind != metric.ClosedLoop || len(logs) < leastRounds || len(logs) < len(e.blocks) {
		return ""
	}
	at, gap := 0, math.Log(leastWarming)
	for k := 1; 2*k <= len(logs); k++ {
		if d := slices.Min(logs[:k]) - slices.Max(logs[k:]); d > gap {
			at, gap = k, d
		}
	}
	if at == 0 {
		return ""
	}
	first, _ := stat.Moments(logs[:at])
	rest, _ := stat.Moments(logs[at:])
	n := 0
	for _, b := range e.blocks[:at] {
		n += len(b.samples)
	}
	return fmt.Sprintf("warm-up: the first %s took %.1f times as long as the rest. To leave them out, set warmup = %d",
		verdict.Count(n, "requests"), math.Exp(first-rest), e.warmup(n))
}

// warmup returns the value of the plan's setting warmup that leaves out n more requests before each
// round. It counts the requests of all slots together.
func (e evidence) warmup(n int) int {
	before := 0
	for _, x := range e.level.Rounds[0].All() {
		if x.Phase == metric.Warmup {
			before++
		}
	}
	return before + n
}

// slope fits a straight line to y over x. It returns the change of the line from the first x to the
// last, and the p-value p of the slope (Student's two-sided t test).
func slope(x, y []float64) (change, p float64, ok bool) {
	n := len(x)
	if n < leastRounds {
		return 0, 1, false
	}
	mx, vx := stat.Moments(x)
	_, vy := stat.Moments(y)
	cov := 0.0
	for i := range x {
		cov += (x[i] - mx) * y[i] / float64(n-1)
	}
	if !(vx > 0) {
		return 0, 1, false
	}
	b := cov / vx
	rest := math.Max(vy-b*cov, 0) * float64(n-1) / float64(n-2)
	return b * (x[n-1] - x[0]), tails(b/math.Sqrt(rest/(vx*float64(n-1))), n-2), true
}

// tails returns the two-sided p-value P(|T| ≥ |t|) of Student's t with df degrees of freedom. If t
// is NaN, there was neither spread nor change, and the p-value is 1.
func tails(t float64, df int) float64 {
	if math.IsNaN(t) {
		return 1
	}
	return 2 * (1 - stat.StudentCDF(math.Abs(t), float64(df)))
}
