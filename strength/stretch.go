package strength

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Stretchable lists the regressions that can be applied to a recorded run. For these the recording
// shows how its requests would have changed. Only the fixed overhead of a request must be
// estimated, from prompts of two lengths.
func Stretchable() []Regression {
	var out []Regression
	for _, r := range All() {
		switch r.Kind {
		case Overhead, Prefill, Decode, Stalls, Failures, Cut:
			out = append(out, r)
		}
	}
	return out
}

// Told lists the regressions that every report tries on the recording of its run.
func Told() []Regression {
	var out []Regression
	for _, r := range Stretchable() {
		if r.Kind != Overhead && r.Size != 1.1 && r.Size != 0.01 {
			out = append(out, r)
		}
	}
	return out
}

// Unstretchable explains why a regression cannot be applied to a recorded run; "" if it can. Only a
// closed loop shows how a slower answer delays the next request. A run with a rate has a closed
// loop too, the saturation, but no threshold is judged on it.
func Unstretchable(run *metric.Run) string {
	why := "the run has no closed loop, and other loads cannot be stretched"
	for _, l := range run.Levels {
		switch {
		case l == nil || l.Skipped != "":
		case l.Kind == metric.OpenLoop:
			return "levels of a rate cannot be stretched"
		case l.Kind == metric.ClosedLoop:
			why = ""
		}
	}
	return why
}

// Recording is a recorded run to which regressions can be applied. Several goroutines may call
// Stretch at the same time.
type Recording struct {
	of       *plan.Plan
	run      *metric.Run
	overhead time.Duration
	steps    map[*metric.Level]time.Duration
}

// Record prepares a recorded run for Stretch.
func Record(p *plan.Plan, run *metric.Run) *Recording {
	out := &Recording{of: p, run: run, overhead: fixedOverhead(run), steps: map[*metric.Level]time.Duration{}}
	for _, l := range run.Levels {
		if stretches(l) {
			out.steps[l] = typicalGap(l)
		}
	}
	return out
}

func stretches(l *metric.Level) bool {
	return l != nil && l.Skipped == "" && l.Kind == metric.ClosedLoop
}

// Stretch returns the run as it would have been under the regression r; nil means no regression.
// Only closed loops change: a slower request delays the next request of its slot. Seed 0 keeps the
// recorded rounds. Any other seed draws as many rounds at random, with replacement. A window that
// ended early gets the planned number of batches. planted is false if the regression changed
// nothing.
func (rec *Recording) Stretch(r *Regression, seed int) (out *metric.Run, planted bool) {
	copied := *rec.run
	copied.Levels = nil
	planted = r == nil
	for _, l := range rec.run.Levels {
		if !stretches(l) {
			copied.Levels = append(copied.Levels, l)
			continue
		}
		level := *l
		level.Rounds = nil
		w := warp{regression: r, step: rec.steps[l], overhead: rec.overhead, slots: l.N, random: random(l, seed)}
		if r != nil && !Changes(rec.of, l.Server) {
			w.regression = nil
		}
		w.level(&level, l, rec.planned(l), seed)
		planted = planted || w.changed
		copied.Levels = append(copied.Levels, &level)
	}
	if r != nil && (r.Kind == Cut || r.Kind == Failures) {
		copied.Comparisons = slices.Clone(rec.run.Comparisons)
		for i, c := range rec.run.Comparisons {
			if c != nil && c.Answers != nil && Changes(rec.of, c.Candidate) {
				copied.Comparisons[i], planted = r.answered(c, random(&metric.Level{Workload: c.Name}, seed)), true
			}
		}
	}
	return &copied, planted
}

func (w *warp) level(out, l *metric.Level, planned, seed int) {
	rounds := len(l.Judged().Rounds)
	picks := make([]int, rounds)
	if l.Batches && rounds > 0 {
		picks = make([]int, max(rounds, planned))
	}
	for i := range picks {
		picks[i] = i
		if seed > 0 || i >= rounds {
			picks[i] = w.random.IntN(rounds)
		}
	}
	if !l.Batches {
		for i, pick := range picks {
			out.Rounds = append(out.Rounds, w.round(l.Rounds[pick], l.Rounds[i]))
		}
		return
	}
	out.Rounds, out.Voided = w.batches(l)
	if seed > 0 || len(picks) > rounds {
		out.Rounds, out.Voided, out.Looks = drawn(out.Rounds, picks), nil, nil
	}
}

// answered returns a copy of a comparison in which the candidate's scored answers are worse. The
// regression r says how much worse.
func (r *Regression) answered(c *metric.Comparison, draw *rand.Rand) *metric.Comparison {
	out, answers := *c, *c.Answers
	out.Answers, answers.Pairs = &answers, slices.Clone(answers.Pairs)
	for i := range answers.Pairs {
		p := &answers.Pairs[i]
		if p.Candidate == nil || p.Candidate.Failure != "" || r.Kind == Failures && draw.Float64() >= r.Size {
			continue
		}
		a := *p.Candidate
		if p.Candidate = &a; r.Kind == Failures {
			a = metric.PairedAnswer{Leg: a.Leg, Asked: a.Asked, Failure: "planted"}
			continue
		}
		// Keep only the first half of the answer. It still counts as equal to the control's answer
		// if the first halves agree.
		a.Tokens, a.Scored, a.Loss, a.Finish = a.Tokens/2, a.Scored/2, a.Loss/2, "stop"
		a.Stops, a.Gap, a.Weighed = a.Agrees >= 0.5, a.Gap/2, a.Weighed/2
	}
	return &out
}

// random returns a source of random numbers that is the same for both sides of a comparison.
func random(l *metric.Level, seed int) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(l.Workload + "\x00" + l.Name)) // never fails
	return rand.New(rand.NewPCG(h.Sum64(), uint64(seed)))
}

// typicalGap returns the median gap between chunks. Most steps of an engine contain no prompt, so
// this is the time of a step that only decodes.
func typicalGap(l *metric.Level) time.Duration {
	var gaps []uint32
	for _, r := range l.Rounds {
		for _, s := range r.All() {
			gaps = append(gaps, s.Gaps...)
		}
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return time.Duration(gaps[len(gaps)/2]) * time.Microsecond
}

// fixedOverhead estimates the part of the TTFT that does not depend on the length of the prompt. It
// draws a line through the shortest TTFT of the shortest prompts and that of the longest prompts,
// and takes its value at no tokens. It is 0 if no prompt is twice as long as the shortest.
func fixedOverhead(run *metric.Run) time.Duration {
	type point struct {
		tokens int
		ttft   time.Duration
	}
	var low, high point
	for _, l := range run.Levels {
		if l == nil || l.Kind != metric.ClosedLoop {
			continue
		}
		for _, r := range l.Rounds {
			for _, s := range r.All() {
				if !s.Completed() || s.First == 0 {
					continue
				}
				at := point{s.InputAsked, s.First - s.Sent}
				for _, end := range []struct {
					p      *point
					beyond bool
				}{{&low, at.tokens < low.tokens}, {&high, at.tokens > high.tokens}} {
					if end.p.tokens == 0 || end.beyond || at.tokens == end.p.tokens && at.ttft < end.p.ttft {
						*end.p = at
					}
				}
			}
		}
	}
	if high.tokens < 2*low.tokens || low.tokens == 0 {
		return 0
	}
	slope := float64(high.ttft-low.ttft) / float64(high.tokens-low.tokens)
	return min(max(low.ttft-time.Duration(slope*float64(low.tokens)), 0), low.ttft)
}

// warp makes the requests of a level slower, as a regression would.
type warp struct {
	regression *Regression
	step       time.Duration // duration of a step that only decodes
	overhead   time.Duration
	slots      int
	random     *rand.Rand
	changed    bool
}

// round returns a copy of the round r with slower requests. A slower answer also delays the later
// requests of its slot. The copy stands in for a round of the run, the parameter place, so it gets
// the index and the leg of that round.
func (w *warp) round(r, place *metric.Round) *metric.Round {
	all := r.All()
	out := r.With(make([]*metric.Sample, 0, len(all)))
	out.Index, out.Leg = place.Index, place.Leg
	bySlot := map[int][]*metric.Sample{}
	for _, s := range all {
		bySlot[s.Slot] = append(bySlot[s.Slot], s)
	}
	out.WindowStart, out.WindowEnd, out.End = 0, math.MaxInt64, r.Start
	for slot := range w.slots {
		list := bySlot[slot]
		slices.SortStableFunc(list, func(a, b *metric.Sample) int { return int(a.Sent - b.Sent) })
		var late time.Duration
		tokens := w.random.IntN(100) // number of tokens since the last stall
		start, end := r.WindowStart, r.WindowEnd
		for _, s := range list {
			n := *s
			n.Round = place.Index
			before := late
			late += w.sample(&n, &tokens)
			shift(&n, before)
			start, end = moved(r.WindowStart, s, before, late, start), moved(r.WindowEnd, s, before, late, end)
			out.Samples = append(out.Samples, &n)
			if n.Phase == metric.Measured {
				out.End = max(out.End, n.End)
			}
		}
		out.WindowStart, out.WindowEnd = max(out.WindowStart, start), min(out.WindowEnd, end)
	}
	if r.WindowEnd <= r.WindowStart || out.WindowEnd < out.WindowStart {
		out.WindowEnd = out.WindowStart
	}
	slices.SortStableFunc(out.Samples, func(a, b *metric.Sample) int { return int(a.End - b.End) })
	return out
}

// moved converts an instant t of the recording to the slower run. In that run the request s starts
// later by startDelay, and ends later by endDelay. Between its start and its end, the delay changes
// evenly. If t is before the start of s, moved returns fallback.
func moved(t time.Duration, s *metric.Sample, startDelay, endDelay, fallback time.Duration) time.Duration {
	switch {
	case t < s.Sent:
		return fallback
	case t >= s.End:
		return t + endDelay
	}
	share := float64(t-s.Sent) / float64(max(s.End-s.Sent, 1))
	return t + startDelay + time.Duration(share*float64(endDelay-startDelay))
}

func shift(s *metric.Sample, by time.Duration) {
	for _, t := range []*time.Duration{&s.Headers, &s.First, &s.FirstAnswer, &s.Last} {
		if *t != 0 {
			*t += by
		}
	}
	s.Scheduled, s.Sent, s.End = s.Scheduled+by, s.Sent+by, s.End+by
}

func (w *warp) sample(s *metric.Sample, tokens *int) time.Duration {
	if w.regression == nil || s.First == 0 {
		return 0
	}
	more := w.regression.Size - 1
	wait := w.step // time of the step that reads the prompt; below, half of a running step is added
	if w.slots > 1 {
		wait += w.step / 2
	}
	ttft := s.First - s.Sent
	switch w.regression.Kind {
	case Failures:
		w.changed = true // the regression counts as planted, even if by chance no request fails
		if w.random.Float64() >= w.regression.Size {
			return 0
		}
		end := s.End
		*s = metric.Sample{
			Server: s.Server, Workload: s.Workload, Level: s.Level, Round: s.Round, Slot: s.Slot, Order: s.Order, Phase: s.Phase,
			Scheduled: s.Scheduled, Sent: s.Sent, Headers: s.Headers, End: s.Headers, InputAsked: s.InputAsked, OutputAsked: s.OutputAsked,
			Status: 500, Failure: &metric.Failure{Kind: metric.FailStatus, Message: "planted"},
		}
		return s.End - end
	case Overhead:
		return w.delay(s, scaled(min(w.overhead, ttft), more), func(gap time.Duration) time.Duration { return gap })
	case Prefill:
		return w.delay(s, scaled(max(ttft-w.overhead-wait, 0), more), func(gap time.Duration) time.Duration {
			return gap + scaled(max(gap-w.step*3/2, 0), more)
		})
	case Decode:
		return w.delay(s, scaled(min(wait, ttft), more), func(gap time.Duration) time.Duration {
			return gap + scaled(min(gap, w.step), more)
		})
	case Stalls:
		per := 1
		if s.Usage != nil && s.Chunks > 0 {
			per = max(1, s.Usage.Output/s.Chunks)
		}
		return w.delay(s, 0, func(gap time.Duration) time.Duration {
			if *tokens += per; *tokens >= 100 {
				*tokens -= 100
				return gap + time.Second
			}
			return gap
		})
	case Cut:
		return w.cut(s)
	}
	return 0
}

func scaled(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }

// delay moves the first token of a request to a later time, and changes each gap after it.
func (w *warp) delay(s *metric.Sample, first time.Duration, change func(time.Duration) time.Duration) time.Duration {
	rest := first
	gaps := make(metric.Gaps, 0, len(s.Gaps))
	for _, g := range s.Gaps {
		gap := time.Duration(g) * time.Microsecond
		longer := change(gap)
		rest += longer - gap
		gaps.Add(longer)
	}
	s.Gaps = gaps
	s.First += first
	if s.FirstAnswer != 0 {
		s.FirstAnswer += first
	}
	s.Last, s.End = s.Last+rest, s.End+rest
	w.changed = w.changed || rest != 0
	return rest
}

func (w *warp) cut(s *metric.Sample) time.Duration {
	if s.Usage == nil || s.Chunks < 2 || len(s.Gaps) < 2 {
		return 0
	}
	w.changed = true
	end, last := s.End, s.Last
	keep := len(s.Gaps) / 2
	s.Last = s.First
	for _, g := range s.Gaps[:keep] {
		s.Last += time.Duration(g) * time.Microsecond
	}
	usage := *s.Usage
	usage.Output /= 2
	s.Usage, s.Gaps, s.Chunks, s.Finish = &usage, slices.Clone(s.Gaps[:keep]), keep+1, "stop"
	s.End -= last - s.Last
	return s.End - end
}
