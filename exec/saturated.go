package exec

import (
	"slices"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/exec/shape"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// saturated returns the level that measures the largest rate of the server. If the run does not
// have this level yet, saturated runs it.
func (r *runner) saturated(t *Target, c Case) (l *metric.Level, lost error) {
	if l = r.levelOf(c, metric.SaturationName); l != nil {
		return l, nil
	}
	return r.saturation(t, c, saturating{
		name: metric.SaturationName, slots: plan.SaturationSlots, Saturation: shape.Saturation{Most: c.Load.Open.MaxInFlight},
	})
}

func (r *runner) levelOf(c Case, name string) *metric.Level {
	i := slices.IndexFunc(r.run.Levels, func(x *metric.Level) bool {
		return x.Server == c.Server.Address() && x.Workload == c.Workload.Address() && x.Name == name
	})
	if i < 0 {
		return nil
	}
	return r.run.Levels[i]
}

// saturating describes a saturation.
type saturating struct {
	shape.Saturation
	name    string       // of its level
	slots   int          // requests in flight at first
	running func(*round) // called with its round, and with nil at the end; may be nil
}

// saturation runs a saturation. Afterwards it waits until the server has recovered from it.
func (r *runner) saturation(t *Target, c Case, x saturating) (l *metric.Level, lost error) {
	of := *c.Load
	of.Kind, of.Open = metric.ClosedLoop, nil
	c.Load, c.Level = &of, plan.Level{Name: x.name, N: min(x.slots, x.Most), Rounds: 1}
	if l = r.levelOf(c, x.name); l == nil {
		l = levelOf(c)
		l.Probe = &metric.Probe{Purpose: metric.SaturationName}
		r.run.Levels = append(r.run.Levels, l)
	}
	l.Saturation = nil
	defer func() { r.observe(metric.LevelDone{Level: l}) }()
	s, lost := r.runOf(t, c, l)
	if s == nil {
		return l, lost
	}
	r.observe(metric.LevelStarted{Level: l, Expected: plan.Saturation})
	s.warm()
	before := s.aloneBefore()
	rd := s.shapeless(nil)
	s.draws(rd, nil)
	x.Enough, x.Length = shape.Enough(c.Workload), rd.fillerLength
	rd.shapes = x.New(l.N)
	s.now = rd
	if x.running != nil {
		x.running(rd)
		defer x.running(nil)
	}
	rounds := rd.play()
	s.now = nil
	l.Rounds = append(l.Rounds, rounds...)
	r.observe(metric.RoundDone{Level: l, Round: rounds[0]})
	if rounds[0].Complete {
		latest := *l
		latest.Rounds = rounds
		l.Saturation, l.SaturationAt = latest.RequestsPerBlock(answerLength(c.Workload, l)), latest.AnsweredAtOnce()
	}
	l.Unrecovered = rd.lost == nil && s.check() && !s.recovers(before)
	return l, rd.lost
}

func (rd *round) fillerLength(order int) int {
	l, nth := rd.lotOf(shape.Due{Ticket: load.Ticket{Phase: metric.Filler, Order: order}})
	if l.workload.Output.Natural {
		return 0
	}
	return l.lengths.At(metric.Filler, nth)
}

func takes(l, saturation *metric.Level) {
	l.Saturation, l.SaturationAt, l.Unrecovered = saturation.Saturation, saturation.SaturationAt, saturation.Unrecovered
}

// follow saturates the server again, right after a level at a rate. It ends once the server is
// certainly faster or slower than the rate.
func (s *levelRun) follow() (lost error) {
	l := s.level
	before, lost := s.saturated(s.target, s.Case)
	if lost != nil {
		return lost
	}
	after, lost := s.saturation(s.target, s.Case, saturating{
		name: metric.SaturationName + " after " + l.Name, slots: before.N,
		Saturation: shape.Saturation{Most: before.N, Excludes: l.Rate * answerLength(s.Workload, before)},
		running:    func(rd *round) { s.now = rd },
	})
	l.After = after.Saturation
	// A server that has not recovered certifies nothing of later levels either.
	before.Unrecovered = before.Unrecovered || after.Unrecovered
	return lost
}

// judged judges the level at a look. If only a saturation after the level can show that the server
// still carries the rate, it first makes this saturation.
func (s *levelRun) judged(look metric.Look) (j Judgement, lost error) {
	j = s.judge(s.Workload, s.level, look)
	if !j.Follows || !s.check() {
		return j, nil
	}
	if lost = s.follow(); lost != nil {
		return j, lost
	}
	return s.judge(s.Workload, s.level, look), nil
}

// answerLength returns the mean number of output tokens of an answer. If the workload does not set
// a mean, it is measured from the completed answers.
func answerLength(w *plan.Workload, l *metric.Level) float64 {
	if mean, ok := w.AnswerLength(); ok {
		return mean
	}
	tokens, n := 0, 0
	for _, r := range l.Rounds {
		for _, s := range r.Samples {
			if s.Completed() && s.Usage != nil {
				tokens, n = tokens+s.Usage.Output, n+1
			}
		}
	}
	if n == 0 {
		return 0
	}
	return float64(tokens) / float64(n)
}
