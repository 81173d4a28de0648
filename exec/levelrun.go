package exec

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/exec/shape"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// levelRun is a level that runs; rounds are added to it until it is decided.
type levelRun struct {
	*runner
	Case
	target *Target
	level  *metric.Level
	asks   []*asking     // requests of the level: one element, or one for each part of a mix
	leg    *metric.Leg   // current leg of a comparison; nil otherwise
	held   *metric.Round // finished leg that waits for its pair's other leg; nil if none
	most   time.Duration // limit of time of the leg; 0 if it has none
	picked *picked       // the answers of this leg that a control scores; nil: none
	now    *round        // the round that is running; nil between rounds
	last   *round        // the round that ended last
	// durations holds the duration of a request on this server, for each workload. The runner's
	// own map changes when it turns to another server.
	durations map[*plan.Workload]time.Duration
	// ahead holds the numbers of measured requests of the batches that are planned after the next
	// look, so that the window goes on meanwhile. win is the window; nil if none is open.
	ahead []int
	win   *window
	// midway holds the looks at a rate while its next window is measured.
	midway []plan.Look
	sheds  bool // the runner may leave out rounds if the budget runs short
	// fails reports whether an exact threshold of a probe fails for good, so that its rest is not
	// measured; nil if the probe has none, and for other levels.
	fails     func() bool
	warmed    bool        // whether warm was called
	aloneSent int         // requests sent alone so far
	stages    []*levelRun // the stages of a load; set only in the first stage
}

// runOf prepares the run of a level. If the level cannot run, it returns nil and writes the reason
// into l.
func (r *runner) runOf(t *Target, c Case, l *metric.Level) (s *levelRun, lost error) {
	asks, lost := r.askings(t, c, l)
	if asks == nil {
		return nil, lost
	}
	return &levelRun{runner: r, Case: c, target: t, level: l, asks: asks, durations: r.durations}, nil
}

// askings prepares the requests of a level, for each part of a mix. If the level cannot run, it
// returns nil and writes the reason into l.
func (r *runner) askings(t *Target, c Case, l *metric.Level) (out []*asking, lost error) {
	exact := true
	for i, w := range c.Workload.Sent() {
		of := c
		of.Workload, of.Level = w, w.Portion(c.Level)
		own := l
		if l.Mixed() {
			own = l.Parts[i]
		}
		a, lost := r.asking(t, of, own, l)
		if a == nil {
			return nil, lost
		}
		exact = exact && a.level.Exact
		out = append(out, a)
	}
	l.Exact = exact
	return out, nil
}

// asking prepares the requests of a workload. l is the workload's own level. If the workload is a
// part of a mix, whole is the level of the mix; otherwise whole is l too.
func (r *runner) asking(t *Target, c Case, l, whole *metric.Level) (a *asking, lost error) {
	prompts, err := t.Prompts(r.starting, c.Workload, r.run.Salt)
	if n := c.Workload.Prompt.Inputs; n > 1 && err == nil {
		prompts = batched{prompts, n, c.Workload.Input}
	}
	if err != nil {
		whole.Skipped = r.secrets.Text(fmt.Sprintf("no prompts could be made: %v", err))
		if !r.check() {
			whole.Skipped = r.why()
		} else if t.Err != nil {
			lost = t.Err()
		}
		return nil, lost
	}
	request, err := requestOf(t, c)
	if err != nil {
		whole.Skipped = err.Error()
		return nil, nil
	}
	l.Exact = prompts.Exact()
	ask, err := c.Workload.Ask(0)
	if err != nil && c.Workload.Output.Natural {
		l.Notes = append(l.Notes, r.secrets.Text(unheld(err)))
	}
	return &asking{
		workload: c.Workload, level: l, planned: c.Level.Requests, prompts: prompts, request: request, asked: ask, kept: keptOf(l),
	}, nil
}

// play measures more rounds of the level. due holds the number of measured requests for each of
// them. The result ended is true if all rounds ended. lost is not nil if the server is lost.
func (s *levelRun) play(due []int) (ended bool, lost error) {
	l := s.level
	due = slices.DeleteFunc(slices.Clone(due), func(n int) bool { return n == 0 })
	rounds := len(l.Rounds) + len(due)
	if l.Batches {
		return s.batches(due)
	}
	for _, due := range shape.Windows(s.Case, due) {
		if s.failed() {
			break
		}
		if s.sheds && !shape.Of(s.Case).Windowed && s.tight(l) {
			l.Shed++
			continue
		}
		for again := true; again; {
			if !s.check() {
				if len(l.Rounds) == 0 {
					l.Skipped = s.why()
				}
				return false, nil
			}
			var stopped string
			if again, stopped = s.window(due, rounds); stopped != "" || s.last.lost != nil {
				return false, s.last.lost
			}
		}
	}
	return true, nil
}

// window measures rounds without a pause between them, and adds them to the level. The parameter of
// is the planned number of rounds. again is true if the load generator was disturbed, so that they
// must be measured again. stopped is the reason why the window ended early; "" if it did not.
func (s *levelRun) window(due []int, of int) (again bool, stopped string) {
	s.warm()
	l := s.level
	rd := s.newRound(due)
	s.now, s.last = rd, rd
	rd.limit(s.most)
	s.looksMidway(rd)
	rounds := rd.play()
	s.now = nil
	l.Replicas = rd.byReplica(l.Replicas)
	if l.Probe == nil {
		s.rounds += len(rounds)
	}
	if d, ok := load.Duration(rd.out.Samples, metric.Measured); ok {
		s.durations[s.Workload] = d
	}
	if rd.out.Limit == 0 {
		stopped = cmp.Or(rd.out.Stopped, rounds[len(rounds)-1].Stopped)
	}
	for i, r := range rounds {
		switch {
		case s.leg != nil:
			s.held = r // keep it until the other leg ends: settle judges both together
		case s.stages != nil:
			s.stages[i].keep(r)
		default:
			if s.voids(rd, r, of) {
				r.Void, again = l.Disturbed(r).String(), true
			}
			s.keep(r)
		}
	}
	if rd.replay != nil && rd.out.Index == 0 {
		l.Notes = append(l.Notes, rd.replay.notes()...)
	}
	if l.Cut != "" {
		l.Notes = append(l.Notes, "given up: "+stopped)
	}
	return again, stopped
}

// draws prepares the requests of the units of a round that are drawn together: of its whole window,
// or of its next batch. due holds the number of measured requests of each unit.
func (s *levelRun) draws(rd *round, due []int) {
	m := &mixed{index: rd.out.Index + len(rd.mix)}
	m.seed = s.Load.Seed(m.index)
	rd.mix = append(rd.mix, m)
	counts := s.deal(rd, m, due)
	for i, a := range s.asks {
		l := &lot{asking: a, due: counts[i]}
		of := [2]string{a.level.Server, a.level.Workload}
		l.first = s.sent[of]
		s.sent[of] += l.due
		l.lengths = load.Lengths{
			Mean: a.workload.Output.Mean, Jitter: a.workload.Output.Jitter,
			Seed: m.seed, Workload: a.level.Workload, Level: rd.level.Name, Round: m.index,
		}
		if s.leg != nil && a.workload.Alike() {
			l.lengths.Seed, l.lengths.Round = s.Load.Seed(0), 0
		}
		if s.run.SaltedLengths {
			l.lengths.Seed = load.Salted(l.lengths.Seed, s.run.Salt)
		}
		if a.workload.Output.Natural {
			l.lengths.Jitter = 0 // the model chooses the length, at most Mean
		}
		if rd.out.Time == 0 {
			l.measured = l.lengths.Measured(l.due)
		}
		m.lots = append(m.lots, l)
	}
}

func sum(counts []int) (n int) {
	for _, x := range counts {
		n += x
	}
	return n
}

// deal draws a part of the mix for each measured request. It returns how many requests each part
// gets. Both sides of a comparison get the same parts.
func (s *levelRun) deal(rd *round, m *mixed, due []int) []int {
	switch {
	case s.Workload.ByType():
		return rd.typed(m)
	case len(s.asks) == 1:
		return []int{sum(due)}
	}
	shares := s.Workload.Shares()
	counts := make([]int, len(shares))
	if rd.dealt == nil {
		rd.dealt = map[string][]int{}
	}
	for i, n := range due {
		of := s
		if len(s.stages) > 0 {
			of = s.stages[i]
		}
		if rd.dealt[of.level.Name] == nil {
			rd.dealt[of.level.Name] = of.countMeasured()
		}
		part := shares.Counts(rd.dealt[of.level.Name], n)
		for k, n := range part {
			counts[k], rd.dealt[of.level.Name][k] = counts[k]+n, rd.dealt[of.level.Name][k]+n
		}
		rd.pick(m, metric.Measured, part, i)
	}
	return counts
}

func (s *levelRun) countMeasured() []int {
	out := make([]int, len(s.asks))
	for _, r := range s.level.Rounds {
		for _, x := range r.Samples {
			for k, a := range s.asks {
				if x.Phase == metric.Measured && s.Workload.Owner(x) == a.workload {
					out[k]++
				}
			}
		}
	}
	return out
}

// keep adds a finished round to its level. A disturbed round goes to the level's Voided rounds.
func (s *levelRun) keep(r *metric.Round) {
	if l := s.level; r.Void != "" {
		l.Voided = append(l.Voided, r)
	} else {
		l.Rounds = append(l.Rounds, r)
	}
	s.observe(metric.RoundDone{Level: s.level, Round: r})
}

// newRound returns the next round of the level. due holds the number of measured requests of each
// unit.
func (s *levelRun) newRound(due []int) *round {
	rd := s.shapeless(due)
	env := shape.Env{
		Case: s.Case, Level: s.level.Name, Index: rd.out.Index, Seed: rd.out.Seed, Arrivals: rd.out.Seed,
		Parts: due, Each: s.durations[s.Workload], Proven: rd.signs.proven, Leg: s.leg != nil, Probe: s.level.Probe != nil,
		Overloaded: s.level.Overloaded(),
	}
	if s.run.Simulated {
		// Real runs of one plan have the same arrivals, so that they can be compared. Each salt of a
		// simulation draws others.
		env.Arrivals = load.Salted(rd.out.Seed, s.run.Salt)
	}
	for _, x := range s.stages {
		rd.stages, env.Stages = append(rd.stages, x.level), append(env.Stages, *x.Level.Stage)
	}
	if of, ok := s.asks[0].prompts.(recorded); ok {
		env.Turns = func(phase metric.Phase, number int) int {
			return of.Turns(PromptID{Level: s.level.Name, Phase: phase, Order: number, First: rd.mix[0].lots[0].first})
		}
	}
	rd.shapes = shape.Of(s.Case).New(env)
	if t := shape.TraceOf(rd.shapes); t != nil {
		rd.replay = newReplay(t, s.target.Context)
	}
	if b, ok := rd.shapes.(*shape.Batches); ok {
		rd.batches = b
		for _, n := range due {
			s.draws(rd, []int{n})
		}
	} else {
		s.draws(rd, due)
	}
	return rd
}

func (s *levelRun) shapeless(due []int) *round {
	l := s.level
	i := len(l.Rounds) + len(l.Voided)
	var secret [8]byte
	_, _ = rand.Read(secret[:]) // never fails
	return &round{
		stock: stock{
			ready:  ready{requests: make(map[turnID]*client.Request, min(sum(due), 1<<14))},
			secret: secret, chats: map[*shape.Chat]*client.Request{},
		},
		runner: s.runner, target: s.target, Case: s.Case, level: l, picked: s.picked, signs: signsOf(l),
		out:    &metric.Round{Index: i, Seed: s.Load.Seed(i), Due: sum(due), Time: s.Level.RoundTime(), Leg: s.leg},
		health: healths{map[int]func() metric.Health{}, map[int]metric.Health{}},
		air:    air{flights: map[*flight]struct{}{}}, walking: walking{timers: map[time.Duration]func() bool{}},
	}
}

// voids reports whether a round was disturbed and must be measured again. It returns false if too
// little time is left. A part of a window cannot be measured again.
func (s *levelRun) voids(rd *round, r *metric.Round, of int) bool {
	if shape.Of(s.Case).Windowed || !r.Complete || rd.lost != nil || !s.check() || s.sheds && s.tight(s.level) {
		return false
	}
	return measuredAgain(s.level.Disturbed(r), len(s.level.Voided), of)
}

// measuredAgain reports whether a disturbed round is measured again. The parameter of is the
// level's number of rounds. voided is the number of rounds that were measured again so far.
func measuredAgain(d metric.Disturbance, voided, of int) bool {
	return d != metric.Disturbance{} && voided < metric.MostVoided(of)
}

func (s *levelRun) measured() int {
	n := 0
	for _, r := range s.level.Rounds {
		if r.Complete {
			n += r.Due
		}
	}
	return n
}

func requestOf(t *Target, c Case) (client.Request, error) {
	w := c.Workload
	request := client.Request{
		API:         w.API,
		Model:       w.Request.Model,
		Input:       w.Input,
		Natural:     w.Output.Natural,
		Context:     t.Context,
		Headers:     w.Request.Headers,
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
