package assert

import (
	"math"
	"time"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// The generator's own lateness is part of every latency it measures. A level
// is invalid for it
//
//   - when a round used most of the machine's CPU (mostCPU of the cores it may use): what
//     the load did to the generator can no longer be told apart;
//   - when what any read may have waited for (the 99th percentile of the
//     scheduler's delay, or the longest stop-the-world pause) exceeds mostDelay
//     and delayShare of the median TTFT: the numbers themselves are off;
//   - when a smaller delay, but above leastDelay, could have changed a verdict
//     on a time: the threshold comes out otherwise once its limit is moved by
//     the delay;
//   - when the process as a whole was held up once for longer than sample.LeastStall
//     and stallShare of the median TTFT, and that could be what decided a
//     verdict: see stalled.
//
// In virtual time nothing is late: the health of a simulated run is unknown, and
// nothing here objects to it. The reports say that it was simulated.
const (
	mostCPU    = 0.90
	mostDelay  = 20 * time.Millisecond
	delayShare = 0.10
	leastDelay = time.Millisecond
	stallShare = 0.10
)

// objection takes why a measurement is not valid, and who has to act on it.
type objection func(of verdict.Cause, format string, args ...any)

func (s *subject) generator(v *Verdict, samples []*metric.Sample, thresholds []judgedThreshold, invalid objection) {
	var cpu float64
	var delay, pause, stall time.Duration
	for _, r := range s.level.Rounds {
		stall = max(stall, r.Health.Stall)
		cpu = math.Max(cpu, r.Health.CPU) // NaN stays
		delay, pause = max(delay, r.Health.Delay), max(pause, r.Health.GCPause)
	}
	if !(cpu < mostCPU) {
		invalid(verdict.CauseGenerator, "generator: it used %s of the cores it may use; load from a larger machine", metric.Format(metric.Ratio, cpu))
	}
	worst := max(delay, pause)
	switch most := max(mostDelay.Seconds(), delayShare*sample.MedianTTFT(samples)); {
	case worst.Seconds() > most:
		invalid(verdict.CauseGenerator, "generator: its reads and sends may have waited %s, more than %s; load from a faster machine",
			metric.Format(metric.Seconds, worst.Seconds()), metric.Format(metric.Seconds, most))
	case delay > leastDelay:
		for _, t := range thresholds {
			if s.flips(t, delay) {
				invalid(verdict.CauseGenerator, "generator: its reads may have waited %s, which could change the verdict on %s (%s)",
					metric.Format(metric.Seconds, delay.Seconds()), label(t.threshold), t.Message)
				break
			}
		}
	}
	if stall.Seconds() <= max(sample.LeastStall.Seconds(), stallShare*sample.MedianTTFT(samples)) {
		return
	}
	for _, t := range thresholds {
		if s.stalled(t, stall) {
			invalid(verdict.CauseGenerator, "generator: it was held up for %s, which could be what decided %s (%s)",
				metric.Format(metric.Seconds, stall.Seconds()), label(t.threshold), t.Message)
			return
		}
	}
}

// stalled says whether a decided threshold would come out otherwise had the
// generator not been held up for that long. What arrives during a stall is read
// at its end: a time is then too long by the stall at most, and never too short,
// so that a bound on times from above cannot have been met by it. What a stream
// takes from its first token to its last, though, is too short if the first
// token waited, down to nothing where the whole answer did, and too long if the
// last did; of rates over a window the stall is a share.
func (s *subject) stalled(v judgedThreshold, stall time.Duration) bool {
	if v.Outcome != Pass && v.Outcome != Fail || v.threshold.Op == "" && v.threshold.Metric.Name != "goodput" {
		return false
	}
	// A pass without the stall: as slow as it may have been. A failure: as fast.
	passed, other := v.Outcome == Pass, *s
	window := 0.0
	for _, r := range s.level.Rounds {
		if length := (r.WindowEnd - r.WindowStart).Seconds(); length > 0 {
			window = max(window, r.Health.Stall.Seconds()/length)
		}
	}
	streams := false
	undone := func(t *plan.Threshold) *plan.Threshold {
		moved := *t
		switch name := t.Metric.Name; {
		case name == "tpot", name == "speed", name == "e2e_speed" && !passed:
			streams = true
		case name == "e2e_speed": // it can only be too low
		case t.Metric.Unit == metric.Seconds:
			if passed == sample.Upward(t.Op) { // it can only be too long
				moved.Limit += stall.Seconds()
			}
		case name == "throughput", name == "input_throughput", name == "request_rate", name == "goodput" && t.Stat.Kind == metric.NoStat:
			if passed == sample.Upward(t.Op) {
				moved.Limit *= 1 + window
			} else {
				moved.Limit *= max(1-window, 0)
			}
		}
		return &moved
	}
	moved := undone(v.threshold)
	if v.threshold.Metric.Name == "goodput" {
		w := *s.workload
		w.Good = nil
		for _, t := range s.workload.Good {
			w.Good = append(w.Good, undone(t))
		}
		other.workload = &w
	}
	if streams {
		other.evidence = gather(restreamed(s.level, stall, passed))
	}
	return other.judge(moved).Outcome != s.judge(v.threshold).Outcome
}

// restreamed is the level with every stream longer by the stall, or shorter.
func restreamed(l *metric.Level, stall time.Duration, longer bool) *metric.Level {
	out := *l
	out.Rounds = nil
	for _, r := range l.Rounds {
		c := *r
		c.Samples = nil
		for _, x := range r.Samples {
			if y := *x; x.Completed() && x.Last > x.First && x.First > 0 {
				if longer {
					y.First = max(x.First-stall, min(x.Sent, x.First-1), 1)
				} else {
					y.Last = max(x.Last-stall, x.First+1)
				}
				x = &y
			}
			c.Samples = append(c.Samples, x)
		}
		out.Rounds = append(out.Rounds, &c)
	}
	return &out
}

// flips says whether a decided threshold on a time would come out otherwise
// with its limit moved by delay. Measured times are never too short by it, so
// that only a failure can be its work; but a pass is moved too, since what is
// late once may be early next to it (a gap after a late chunk).
func (s *subject) flips(v judgedThreshold, delay time.Duration) bool {
	t := v.threshold
	if t.Metric.Unit != metric.Seconds || t.Op == "" || v.Outcome != Pass && v.Outcome != Fail {
		return false
	}
	shift := delay.Seconds()
	if (v.Outcome == Pass) == !sample.Upward(t.Op) {
		shift = -shift // a pass under a tighter limit, a failure under a wider one
	}
	moved := plan.Threshold{Metric: t.Metric, Stat: t.Stat, Op: t.Op, Limit: t.Limit + shift}
	// Judged anew: a mean may have been held back by success.
	return s.judge(&moved).Outcome != s.judge(t).Outcome
}
