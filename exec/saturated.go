package exec

import (
	"slices"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// saturated returns the level that measures the largest rate of the server. If the run does not
// have this level yet, saturated runs it.
func (r *runner) saturated(t *Target, c Case) (l *metric.Level, lost error) {
	i := slices.IndexFunc(r.run.Levels, func(x *metric.Level) bool {
		return x.Server == c.Server.Address() && x.Workload == c.Workload.Address() && x.Name == metric.SaturationName
	})
	if i >= 0 {
		return r.run.Levels[i], nil
	}
	return r.saturation(t, c)
}

// saturation measures it.
func (r *runner) saturation(t *Target, c Case) (l *metric.Level, lost error) {
	of, most := *c.Load, c.Load.Open.MaxInFlight
	of.Kind, of.Open = metric.ClosedLoop, nil
	c.Load, c.Level = &of, plan.Level{Name: metric.SaturationName, N: min(plan.SaturationSlots, most), Rounds: 1}
	l = levelOf(c)
	l.Probe = &metric.Probe{Purpose: metric.SaturationName}
	r.run.Levels = append(r.run.Levels, l)
	defer func() { r.observe(r.Observer.LevelDone(l)) }()
	s, lost := r.series(t, c, l)
	if s == nil {
		return l, lost
	}
	r.observe(r.Observer.LevelStarted(l, 0, plan.Saturation))
	s.warm()
	rd := s.newRound(nil)
	rd.saturates = most
	s.now = rd
	rd.play()
	s.now = nil
	l.Rounds = append(l.Rounds, rd.out)
	r.observe(r.Observer.RoundDone(l, rd.out))
	if rd.out.Complete {
		l.Saturation, l.SaturationAt = l.RequestsPerBlock(answerLength(c.Workload, l)), l.AnsweredAtOnce()
	}
	return l, rd.lost
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
