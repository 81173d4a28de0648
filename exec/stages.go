package exec

import (
	"time"

	"github.com/tokgate/tokgate/metric"
)

// stages runs the stages of a load. Each pass over the stages is one window with a part for each
// stage. The error lost means that the server is lost.
func (r *runner) stages(t *Target, cases []Case) (lost error) {
	begin := r.Clock.Now()
	var all []*levelRun
	var levels []*metric.Level
	defer func() {
		for _, l := range levels {
			r.done(l)
		}
	}()
	for _, c := range cases {
		r.remaining--
		l := r.newLevel(c)
		levels = append(levels, l)
		s, err := r.runOf(t, c, l)
		if s == nil {
			lost = err
			continue
		}
		all = append(all, s)
	}
	if len(all) < len(cases) {
		for _, s := range all {
			s.level.Skipped = "another of its stages could not be run"
		}
		return lost
	}
	r.levelBegan = begin
	first, passes := all[0], cases[0].Level.Rounds
	first.stages = all
	var length time.Duration
	for _, s := range all {
		length += s.Level.Lasts()
		defer s.examine()
	}
	for _, s := range all {
		r.observe(metric.LevelStarted{Level: s.level, Due: s.Level.Requests, Expected: length})
	}
	for pass := range passes {
		var due []int
		for _, s := range all {
			due = append(due, s.Level.RoundRequests(pass))
		}
		var ended bool
		if ended, lost = first.play(due); !ended {
			break
		}
	}
	for _, s := range all {
		if first.level.Skipped != "" {
			s.level.Skipped = first.level.Skipped
		}
		r.ran(s.level, (r.Clock.Now()-begin)/time.Duration(len(all)))
	}
	return lost
}

// staged returns the first cases of the list, as far as they are stages of one load. It returns
// none if the first case is no stage.
func staged(cases []Case) []Case {
	n := 0
	for n < len(cases) && cases[n].Level.Stage != nil && cases[n].Load == cases[0].Load && cases[n].Server == cases[0].Server {
		n++
	}
	return cases[:n]
}
