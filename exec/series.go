package exec

import (
	"slices"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// series is a level under way: rounds are added to it, look by look.
type series struct {
	*runner
	Case
	target *Target
	level  *metric.Level
	asks   []*asking // of a mix one for each part, else one
	// before are rounds that were measured under another name: a fixed level
	// to which a search adds.
	before []*metric.Round
	leg    *metric.Leg   // of a comparison; nil
	held   *metric.Round // a leg that is over and waits for its pair; nil
	now    *round        // the one under way, nil between two
	last   *round        // the one that ended last
	// durations are the runner's of the server: another may be under way at the
	// same time.
	durations map[*plan.Workload]time.Duration
	sheds     bool      // rounds may be left out
	warmed    bool      // see warm
	stages    []*series // of an open loop: those of all its stages, this one being the first
}

// series prepares to run l; nil when it cannot be run, and l says why.
func (r *runner) series(t *Target, c Case, l *metric.Level) (s *series, lost error) {
	asks, lost := r.askings(t, c, l)
	if asks == nil {
		return nil, lost
	}
	return &series{runner: r, Case: c, target: t, level: l, asks: asks, durations: r.durations}, nil
}

// play adds rounds of so many measured requests each. It says whether all of
// them came to their end; lost is why the server is gone.
func (s *series) play(due []int) (ended bool, lost error) {
	l := s.level
	due = slices.DeleteFunc(slices.Clone(due), func(n int) bool { return n == 0 })
	if s.Level.Speedup > 0 {
		return s.replays(due)
	}
	if s.Load.Kind.Windowed() {
		return s.window(due)
	}
	rounds := len(l.Rounds) + len(due)
	for _, n := range due {
		if s.sheds && s.tight(l) {
			l.Shed++
			continue
		}
		if !s.check() {
			if len(l.Rounds) == 0 {
				l.Skipped = s.why()
			}
			return false, nil
		}
		for s.round(n, rounds) {
		}
		if rd := s.last; rd.lost != nil || rd.out.Stopped != "" {
			return false, rd.lost
		}
	}
	return true, nil
}

// round adds a round of n measured requests to the level, of so many in all.
// It says whether it was disturbed and is to be measured again: that is
// decided by what the generator knows of itself, before anything is judged.
func (s *series) round(n, of int) (again bool) {
	s.warm()
	l := s.level
	rd := s.newRound([]int{n})
	s.now, s.last = rd, rd
	rd.play()
	s.now = nil
	if l.Probe == nil {
		s.rounds++
	}
	if d, ok := load.Duration(rd.out.Samples, metric.Measured); ok {
		s.durations[s.Workload] = d
	}
	if s.leg != nil {
		s.held = rd.out // until its pair is over: see turns.settle
		return false
	}
	if s.voids(rd, of) {
		rd.out.Void = l.Disturbed(rd.out).String()
	}
	s.keep(rd.out)
	return rd.out.Void != ""
}

// window plays one window of so many measured requests in each of its parts, and
// adds them to the level as rounds. It says whether it came to its end.
func (s *series) window(due []int) (ended bool, lost error) {
	l := s.level
	if !s.check() {
		if len(l.Rounds) == 0 {
			l.Skipped = s.why()
		}
		return false, nil
	}
	s.warm()
	rd := s.newRound(due)
	if s.Level.Speedup > 0 {
		rd.replay = s.replayed(rd.out.Index, rd.out.Due)
	}
	if s.Load.Kind == metric.Users {
		rd.window = newCrowd(rd, len(due))
	} else {
		rd.window = &window{round: rd, parts: due, stages: s.stages, stop: func() bool { return false }}
	}
	s.now, s.last = rd, rd
	rd.play()
	s.now = nil
	why := rd.out.Stopped
	for i, r := range rd.window.rounds() {
		if l.Probe == nil {
			s.runner.rounds++
		}
		switch {
		case s.leg != nil:
			s.held = r // until its pair is over: a leg is one round
		case len(s.stages) > 0:
			s.stages[i].keep(r)
		default:
			s.keep(r)
		}
	}
	if rd.replay != nil && rd.out.Index == 0 {
		l.Notes = append(l.Notes, rd.replay.notes()...)
	}
	if l.Cut != "" {
		l.Notes = append(l.Notes, "given up: "+why)
	}
	if d, ok := load.Duration(rd.out.Samples, metric.Measured); ok {
		s.durations[s.Workload] = d
	}
	return why == "", rd.lost
}

// keep adds a round that is over to its level.
func (s *series) keep(r *metric.Round) {
	if l := s.level; r.Void != "" {
		l.Voided = append(l.Voided, r)
	} else {
		l.Rounds = append(l.Rounds, r)
	}
	s.observe(s.Observer.RoundDone(s.level, r))
}

// newRound is the next round of the level, of so many measured requests in each of its
// parts.
func (s *series) newRound(due []int) *round {
	l, n := s.level, 0
	for _, part := range due {
		n += part
	}
	i := len(s.before) + len(l.Rounds) + len(l.Voided)
	rd := &round{
		runner: s.runner, target: s.target, Case: s.Case, level: l, durations: s.durations,
		out: &metric.Round{Index: i, Seed: seed(s.Load, i), Due: n, Time: s.Level.RoundTime(), Leg: s.leg},
	}
	s.lots(rd, due)
	return rd
}

// voids says whether a round that was disturbed is measured again, where there
// is time.
func (s *series) voids(rd *round, of int) bool {
	if !rd.out.Complete || rd.lost != nil || !s.check() || s.sheds && s.tight(s.level) {
		return false
	}
	return measuredAgain(s.level.Disturbed(rd.out), len(s.level.Voided), of)
}

// measuredAgain says whether a disturbed round of so many is measured again, after
// so many others were.
func measuredAgain(d metric.Disturbance, voided, of int) bool {
	return d != metric.Disturbance{} && voided < metric.MostVoided(of)
}

// measured is how many requests were judged or are to be: those of the rounds
// that are complete.
func (s *series) measured() int {
	n := 0
	for _, rounds := range [][]*metric.Round{s.before, s.level.Rounds} {
		for _, r := range rounds {
			if r.Complete {
				n += r.Due
			}
		}
	}
	return n
}

// seed of a round: rounds beyond the seeds begin again with the first.
func seed(l *plan.Load, round int) int64 {
	if len(l.Seeds) == 0 {
		return int64(round)
	}
	return l.Seeds[round%len(l.Seeds)]
}

// requestOf is what every request of a case has in common.
func requestOf(t *Target, c Case) (client.Request, error) {
	w := c.Workload
	request := client.Request{
		API:         string(w.API),
		Model:       w.Request.Model,
		Input:       w.Input,
		Natural:     w.Output.Natural,
		Temperature: w.Request.Temperature,
		Stop:        w.Request.Stop,
		Timeout:     c.Load.Timeout,
	}
	if request.Model == "" {
		request.Model = t.Model
	}
	var err error
	request.Extra, err = w.Fields()
	return request, err
}
