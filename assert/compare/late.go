package compare

import (
	"fmt"
	"slices"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// A round in which the generator was late, or a slot was idle, is measured again, and so is its
// pair on the other server. Not all such rounds can be measured again. For the others, the method
// question checks whether the disturbance could have decided a change.

// lateRounds lists the rounds in which the generator was late or a slot was idle, on either side.
// It returns "" if there are none.
func (m matched) lateRounds() string {
	var said []string
	for i := range m.candidate.Rounds {
		for _, l := range []*metric.Level{m.control, m.candidate} {
			if i < len(l.Rounds) && (lateIn(l, l.Rounds[i]) || sample.Light(l, l.Rounds[i])) {
				said = append(said, fmt.Sprintf("%s in round %d on server %s", l.Disturbed(l.Rounds[i]), l.Rounds[i].Index+1, l.Server))
			}
		}
	}
	return verdict.Like(said, "rounds")
}

func lateIn(l *metric.Level, r *metric.Round) bool { return sample.Held(l, r) > 0 }

// light reports whether a round of the control or of the candidate had less than the declared load.
func (m matched) light() bool {
	return slices.ContainsFunc([]*metric.Level{m.control, m.candidate}, func(l *metric.Level) bool {
		return slices.ContainsFunc(l.Rounds, func(r *metric.Round) bool { return sample.Light(l, r) })
	})
}

// question withdraws a verdict that a late generator or too little load could have decided. To find
// out, it calls the function judged with the rounds that cannot have caused the verdict.
//
// Lateness only makes times longer. So lateness on the control can cause only a pass, and lateness
// on the candidate only a failure. Metrics of streams are an exception. They become shorter after a
// late first token, so lateness on either side can cause both.
//
// A failure of answers or of success is sure if the undisturbed rounds of both sides show it alone.
func (m matched) question(c *Change, late string, judged func(matched) verdict.Outcome) {
	if c.Outcome == verdict.Fail && (c.Metric.Untimed() || c.Metric.Name == "success") {
		c.sure = late == "" || judged(m.withoutDisturbed(true, true)) == verdict.Fail
	}
	if late == "" || c.Metric.Source != metric.Client && !m.light() || c.Metric.Name == "tokens_per_chunk" || c.Metric.Name == "cache_hit_rate" {
		return
	}
	if c.Metric.Untimed() || c.Metric.Source == metric.Starts {
		return
	}
	switch c.Outcome {
	case verdict.Inconclusive:
		c.Notes = append(c.Notes, late+": the generator, and not the servers, may be why the verdict is undecided")
		return
	case verdict.Pass, verdict.Fail:
	default:
		return
	}
	streams := c.Metric.Name == "tpot" || c.Metric.Name == "speed" || c.Metric.Name == "e2e_speed" || c.Metric.Scope == metric.PerGap
	if judged(m.withoutDisturbed(c.Outcome == verdict.Pass || streams, c.Outcome == verdict.Fail || streams)) != c.Outcome {
		c.Outcome, c.cause = verdict.Error, verdict.CauseGenerator
		c.Message = fmt.Sprintf("generator: %s. The generator, and not the servers, may have decided the verdict. The verdict was: %s", late, c.Message)
		c.Why, c.pFail, c.delta = "the generator was late, or did not keep up the load", 1, delta{}
	}
}

// withoutDisturbed leaves out all rounds that had less load than declared. It also leaves out
// rounds in which the generator was late, on the control if onControl is set, and on the candidate
// if onCandidate is set.
//
// For a paired round it leaves out the whole pair. If several rounds form one independent unit, it
// leaves out the whole unit.
func (m matched) withoutDisturbed(onControl, onCandidate bool) matched {
	keep := func(l *metric.Level, drop func(i int) bool) *metric.Level {
		out := *l
		out.Rounds = nil
		for i, r := range l.Rounds {
			if !drop(i) {
				out.Rounds = append(out.Rounds, r)
			}
		}
		return &out
	}
	control := func(i int) bool {
		return sample.Light(m.control, m.control.Rounds[i]) || onControl && lateIn(m.control, m.control.Rounds[i])
	}
	candidate := func(i int) bool {
		return sample.Light(m.candidate, m.candidate.Rounds[i]) || onCandidate && lateIn(m.candidate, m.candidate.Rounds[i])
	}
	out := m
	if m.unpaired {
		out.control, out.candidate = keep(m.control, control), keep(m.candidate, candidate)
		return out
	}
	unit := func(i int) bool {
		for k := i - i%m.block; k < min(i-i%m.block+m.block, len(m.control.Rounds)); k++ {
			if control(k) || candidate(k) {
				return true
			}
		}
		return false
	}
	out.control, out.candidate = keep(m.control, unit), keep(m.candidate, unit)
	return out
}
