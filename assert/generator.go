package assert

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// A slow load generator makes every latency longer. metric.Level.Disturbed finds the rounds in
// which it was too slow, and most of them are measured again. If some are not, the method
// generatorDecided decides for each threshold whether its verdict stands.
//
// Late reads only add to a time, so a limit on a time that was met stands. But a generator that
// stands still or sends late also lets the server rest. So this holds only if the recording shows
// that all of this is short: see the method steady.
//
// A level is invalid if the generator used the share mostCPU or more of its processor cores in a
// round, or if this share is unknown. Its own delays then cannot be told from the server's. A delay
// up to leastDelay never counts.
//
// In a simulated run nothing is late, because its time is virtual.
const (
	mostCPU    = 0.90
	leastDelay = time.Millisecond
	mostHeld   = 0.05 // share of a level for which a steady generator may not have run
	mostLate   = 0.05 // share of its requests that it may have sent late
)

// objection is a function that records why a measurement is invalid, and what caused this: the
// server, the generator and so on.
type objection func(of verdict.Cause, format string, args ...any)

func (s *subject) generator(v *verdict.Verdict, thresholds []judgedThreshold, invalid objection) {
	cpu := 0.0
	var said []string
	round, rounds := s.level.RoundNames()
	for _, r := range s.level.Rounds {
		cpu = math.Max(cpu, r.Health.CPU) // NaN stays
		if s.held(r) > 0 || s.light(r) {
			said = append(said, fmt.Sprintf("%s in %s %d", s.level.Disturbed(r), round, r.Index+1))
		}
	}
	if !(cpu < mostCPU) {
		invalid(verdict.CauseGenerator, "generator: the load generator used %s of its cores; run it on a larger machine", metric.Format(metric.Ratio, cpu))
	}
	words := verdict.Like(said, rounds)
	if words != "" {
		v.Note(words)
	}
	for _, t := range thresholds {
		if t.Sure = t.Outcome == verdict.Fail && s.sure(t.threshold); t.Sure {
			continue
		}
		if words != "" && t.Outcome == verdict.Inconclusive && !s.askedAgain(t, thresholds, words) {
			t.Note(words + ": the generator, and not the server, may be why the verdict is undecided")
			continue
		}
		why, delay := "", s.delay()
		switch {
		case words != "" && s.generatorDecided(t):
			why = words
		case delay > leastDelay && !(lateOnlyAdds(t) && s.steady()) && s.flips(t, delay):
			why = "the load generator may have read answers late, by up to " + metric.Format(metric.Seconds, delay.Seconds())
		}
		if why != "" {
			t.Outcome, t.Cause = verdict.Error, verdict.CauseGenerator
			t.Message = fmt.Sprintf("generator: %s. The generator, and not the server, may have decided the verdict on %s. The verdict was: %s", why, label(t.threshold), t.Message)
		}
	}
}

// delay returns the longest time for which a read or a send of the level may have waited.
func (s *subject) delay() time.Duration {
	longest := time.Duration(0)
	for _, r := range s.level.Rounds {
		longest = max(longest, r.Health.Delay)
	}
	return longest
}

// lateOnlyAdds reports whether a threshold passes because a time is short, and late reads can only
// have made it longer. Times within a stream do not count, since a late first token shortens them.
func lateOnlyAdds(t judgedThreshold) bool {
	m := t.threshold.Metric
	return t.Outcome == verdict.Pass && m.Unit == metric.Seconds && !m.Streams && t.threshold.Op != "" && !sample.Upward(t.threshold.Op)
}

// steady reports whether the generator hardly let the server rest. Its standstills and shorter
// delays together last at most the share mostHeld of the level, and it sent at most the share
// mostLate of the requests late. It is false if the recording lacks the standstills.
func (s *subject) steady() bool {
	held := 0.0
	watched := s.seconds()
	if s.batched() { // each batch is watched until its last request ends
		watched = 0
	}
	for _, r := range s.level.Rounds {
		seconds, ok := r.Health.Held()
		if !ok {
			return false
		}
		held += seconds
		if s.batched() {
			watched += (r.End - r.Start).Seconds()
		}
	}
	late, limit, samples := 0, s.level.LagLimit(), s.level.MeasuredSamples()
	for _, x := range samples {
		if lag, ok := x.Value("lag"); ok && lag > limit {
			late++
		}
	}
	return held <= mostHeld*watched && float64(late) <= mostLate*float64(len(samples))
}

// askedAgain judges an undecided threshold again on the rounds that the generator did not disturb,
// at half the allowed error. If they decide it, that is its verdict. At least five such rounds must
// remain, and the threshold on success must pass. A value of the whole window of an open loop
// cannot be judged on some of its rounds.
func (s *subject) askedAgain(t judgedThreshold, thresholds []judgedThreshold, words string) bool {
	m, alone := t.threshold.Metric, *s
	if m.Untimed() || m.Name == "cache_hit_rate" || m.Source != metric.Client || m.Scope == metric.PerLevel && s.level.Windowed() {
		return false
	}
	l := s.undisturbed()
	if len(l.Rounds) < leastRounds ||
		slices.ContainsFunc(thresholds, func(x judgedThreshold) bool {
			return x.threshold.Metric.Name == "success" && x.Outcome != verdict.Pass
		}) {
		return false
	}
	alone.evidence, alone.alpha = gather(l), s.alpha/2
	if !s.unfinished() {
		alone.due = 0
	}
	v := alone.judge(t.threshold)
	if v.Outcome != verdict.Pass && v.Outcome != verdict.Fail {
		return false
	}
	v.Severity, v.Threshold.Implied = t.Severity, t.Threshold.Implied
	_, rounds := l.RoundNames()
	v.Note(fmt.Sprintf("judged on the %s that the generator did not disturb, with half the allowed error, because all %d left it undecided (%s)",
		verdict.Count(len(l.Rounds), rounds), len(s.level.Rounds), words))
	*t.Verdict = v
	return true
}

func (s *subject) held(r *metric.Round) time.Duration { return sample.Held(s.level, r) }

func (s *subject) light(r *metric.Round) bool { return sample.Light(s.level, r) }

// generatorDecided reports whether a slow load generator may have decided a pass or a fail. A
// generator is slow if it sends requests late, reads answers late, or sends too little load.
//
// The outcome is safe if the other rounds alone give it too, or if it outlasts a correction for the
// delay. A fail is also safe if less load could only have helped to pass.
func (s *subject) generatorDecided(v judgedThreshold) bool {
	m := v.threshold.Metric
	if v.Outcome != verdict.Pass && v.Outcome != verdict.Fail || m.Untimed() || m.Name == "cache_hit_rate" {
		return false
	}
	light := slices.ContainsFunc(s.level.Rounds, s.light)
	if m.Source != metric.Client && !light {
		return false
	}
	if alone := *s; s.judgedOn(&alone, s.undisturbed(), v.threshold) == v.Outcome {
		return false
	}
	if light && (v.Outcome == verdict.Pass || m.Scope == metric.PerLevel && m.Name != "success") {
		return true
	}
	return s.heldUp(v)
}

// heldUp reports whether the outcome would change without the stalls that delayed the reading of
// answers.
func (s *subject) heldUp(v judgedThreshold) bool {
	m, passed, other := v.threshold.Metric, v.Outcome == verdict.Pass, *s
	held, window := time.Duration(0), 0.0
	for _, r := range s.level.Rounds {
		held = max(held, s.held(r))
		if length := (r.WindowEnd - r.WindowStart).Seconds(); length > 0 {
			window = max(window, s.held(r).Seconds()/length)
		}
	}
	// known is true if the effect of late reads on the metric is known. streams is true if the
	// metric measures times within streams.
	known, streams := true, false
	undone := func(t *plan.Threshold) *plan.Threshold {
		moved := *t
		switch name := t.Metric.Name; {
		case t.Metric.Streams && t.Metric.Scope == metric.PerRequest, name == "e2e_speed" && !passed:
			streams = true
		case name == "e2e_speed", name == "success", t.Stat.IsShare(): // only lowered by late reads
		case t.Metric.Unit == metric.Seconds:
			if passed == sample.Upward(t.Op) { // late reads can only make a time too long
				moved.Limit += held.Seconds()
			}
		case name == "throughput", name == "input_throughput", name == "request_rate", name == "goodput":
			if passed == sample.Upward(t.Op) {
				moved.Limit *= 1 + window
			} else {
				moved.Limit *= max(1-window, 0)
			}
		default:
			known = false
		}
		return &moved
	}
	moved := undone(v.threshold)
	if m.Name == "goodput" {
		w := *s.workload
		w.Good = nil
		for _, t := range s.workload.Good {
			w.Good = append(w.Good, undone(t))
		}
		other.workload = &w
	}
	return !known || s.judgedOn(&other, s.restreamed(streams, passed), moved) != v.Outcome
}

// judgedOn returns the outcome of a threshold on l, a corrected copy of the level. It overwrites
// the argument other, which must be a copy of s.
func (s *subject) judgedOn(other *subject, l *metric.Level, t *plan.Threshold) verdict.Outcome {
	if other.evidence = gather(l); !s.unfinished() {
		other.due = 0
	}
	return other.judge(t).Outcome
}

func (s *subject) undisturbed() *metric.Level {
	out := *s.level
	out.Rounds = slices.DeleteFunc(slices.Clone(out.Rounds), func(r *metric.Round) bool { return s.held(r) > 0 || s.light(r) })
	return &out
}

// restreamed returns a copy of the level in which the rounds with a slow generator are corrected.
//
// If streams is true, each stream in these rounds changes by the time for which reads may have
// waited. It gets longer if longer is true, and shorter otherwise. If longer is false, requests
// that timed out in these rounds are removed.
func (s *subject) restreamed(streams, longer bool) *metric.Level {
	out := *s.level
	out.Rounds = nil
	for _, r := range s.level.Rounds {
		c, held := r.With(nil), s.held(r)
		for _, x := range r.All() {
			switch y := *x; {
			case held == 0:
			case !longer && x.Failure != nil && x.Failure.Kind == metric.FailTimeout:
				if x.Phase == metric.Measured {
					c.Due--
				}
				continue
			case streams && x.Completed() && x.Last > x.First && x.First > 0:
				if longer {
					y.First = max(x.First-held, min(x.Sent, x.First-1), 1)
				} else {
					y.Last = max(x.Last-held, x.First+1)
				}
				x = &y
			}
			c.Samples = append(c.Samples, x)
		}
		out.Rounds = append(out.Rounds, c)
	}
	return &out
}

// flips reports whether the outcome would change if the limit of the threshold moved by delay. It
// moves the limit in the direction that is worse for the outcome. It applies only to thresholds on
// times.
func (s *subject) flips(v judgedThreshold, delay time.Duration) bool {
	t := v.threshold
	if t.Metric.Unit != metric.Seconds || t.Op == "" || v.Outcome != verdict.Pass && v.Outcome != verdict.Fail {
		return false
	}
	shift := delay.Seconds()
	if (v.Outcome == verdict.Pass) == !sample.Upward(t.Op) {
		shift = -shift // test a pass against a stricter limit, and a fail against a wider one
	}
	moved := plan.Threshold{Metric: t.Metric, Stat: t.Stat, Op: t.Op, Limit: t.Limit + shift}
	// Judge with the old limit again too. The recorded verdict on a mean may include the effect of
	// the threshold on success.
	return s.judge(&moved).Outcome != s.judge(t).Outcome
}
