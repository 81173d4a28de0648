package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record"
)

// Why a run stopped before the plan did: metric.Run.Stopped.
const (
	StoppedInterrupted = "interrupted"
	StoppedBudget      = "budget"
)

// Run runs the plan: one server after another, on each its cases in order;
// those that are compared take turns (see turns).
//
// The result is never nil and holds every case of the plan: run, cut short, or
// skipped with the reason. What goes wrong with a server or a level is in the
// result; the error is about the run as a whole: what was observed could not
// be handed on, or the clock stood still.
func Run(ctx context.Context, c Config) (*metric.Run, error) {
	r := newRunner(ctx, c)
	defer r.close()
	// In a Sample an offset of zero means "never": nothing happens at zero.
	r.until(func() bool { return c.Clock.Now() > 0 })
	r.observe(c.Observer.RunStarted(r.run))
	r.calibrate()
	cases := Cases(c.Plan)
	for _, c := range cases {
		if r.selected(c) {
			r.remaining++
		}
	}
	r.searches = searchesOf(c.Plan)
	on := func(s *plan.Server) []Case {
		return slices.DeleteFunc(slices.Clone(cases), func(c Case) bool { return c.Server != s })
	}
	groups := plan.Groups(c.Plan)
	r.launches = len(c.Plan.Servers)
	grouped := make([]bool, len(groups))
	for _, s := range c.Plan.Servers {
		r.launches--
		i := slices.IndexFunc(groups, func(g plan.Group) bool { return slices.Contains(g.Servers, s) })
		switch {
		case i < 0:
			r.server(s, on(s))
		case !grouped[i]:
			grouped[i] = true
			r.takeTurns(groups[i], on)
		}
	}
	r.run.End = c.Clock.Now()
	r.run.Stopped = r.stopped
	r.observe(c.Observer.RunDone(r.run))
	return r.run, r.err
}

// runner is a run under way. It belongs to one goroutine, the loop.
type runner struct {
	Config
	ctx context.Context // of the caller; its end is the second interrupt
	run *metric.Run
	// secrets takes the plan's secrets out of all text that comes from a
	// server, so that nobody further on can print or write one.
	secrets record.Redactor

	// starting ends when nothing more is to be started, flying when what is
	// in flight is to end too.
	starting, flying       context.Context
	endStarting, endFlying context.CancelFunc

	yield func() // of the strand under way; nil: there is but the loop
	stuck bool   // the clock stood still under strands

	stopped  string // why nothing more is started; ""
	err      error  // of the run as a whole
	cleanups []func()

	durations map[*plan.Workload]time.Duration // of one request, on the server under test

	deadline    time.Duration // of the run; 0: none
	searches    []wanted      // still to come
	remaining   int           // fixed levels still to come
	launches    int           // servers still to come
	launchTook  time.Duration // the longest start so far
	fixed       time.Duration // what those that were run took
	fixedLevels int
	rounds      int                             // of these, all together
	levelBegan  time.Duration                   // the fixed level under way; 0: none
	took        map[*metric.Level]time.Duration // each of them
}

func newRunner(ctx context.Context, c Config) *runner {
	r := &runner{Config: c, ctx: ctx, secrets: record.NewRedactor(c.Plan.Secrets), took: map[*metric.Level]time.Duration{}}
	run := c.Run
	run.Servers, run.Levels, run.Capacities, run.Comparisons = nil, nil, nil, nil
	r.run = &run
	if r.Drain == nil {
		r.Drain = context.Background()
	}
	if r.DrainTimeout == 0 {
		r.DrainTimeout = defaultDrain
	}
	if r.Budget == 0 {
		r.Budget = c.Plan.Gate.Budget
	}
	// Neither follows ctx by itself: all decisions are the loop's, and what is
	// in flight is waited for even when it was told to end.
	r.starting, r.endStarting = context.WithCancel(context.WithoutCancel(ctx))
	r.flying, r.endFlying = context.WithCancel(context.WithoutCancel(ctx))
	r.cleanups = append(r.cleanups, r.endStarting, r.endFlying)

	// An interrupt wakes the loop, which then sees it by itself (check). What
	// works for the loop in another goroutine is told directly.
	for _, c := range []context.Context{ctx, r.Drain} {
		stop := context.AfterFunc(c, func() {
			r.endStarting()
			r.Clock.Post(func() {})
		})
		r.cleanups = append(r.cleanups, func() { stop() })
	}
	if c.Clock.Now() == 0 {
		r.Clock.Timer(1, func() {})
	}
	if r.Budget > 0 {
		r.deadline = r.Clock.Now() + r.Budget - r.teardown()
		stop := r.Clock.Timer(r.deadline, func() { r.halt(StoppedBudget, 0) })
		r.cleanups = append(r.cleanups, func() { stop() })
	}
	return r
}

// teardown is what is held back from the budget; never more than a tenth, since
// a short budget is there for requests.
func (r *runner) teardown() time.Duration {
	if !slices.ContainsFunc(r.Plan.Servers, (*plan.Server).Local) {
		return 0
	}
	return min(r.Teardown, r.Budget/10)
}

func (r *runner) close() {
	for _, f := range r.cleanups {
		f()
	}
}

// halt has nothing more be started, and what is in flight be cancelled after
// grace. The first reason stays.
func (r *runner) halt(why string, grace time.Duration) {
	first := r.stopped == ""
	if first {
		r.stopped = why
		r.endStarting()
	}
	if grace == 0 {
		r.endFlying()
	} else if first {
		stop := r.Clock.Timer(r.Clock.Now()+grace, r.endFlying)
		r.cleanups = append(r.cleanups, func() { stop() })
	}
}

// check sees interrupts, and says whether something may still be started.
func (r *runner) check() bool {
	if r.ctx.Err() != nil {
		r.halt(StoppedInterrupted, 0)
	} else if r.Drain.Err() != nil {
		r.halt(StoppedInterrupted, r.DrainTimeout)
	}
	return r.stopped == "" && r.err == nil
}

// observe keeps an observer's error: what cannot be recorded is not measured.
func (r *runner) observe(err error) {
	if err != nil && r.err == nil {
		r.fail(fmt.Errorf("could not hand on what was observed: %w", err))
	}
}

func (r *runner) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.endStarting()
	r.endFlying()
}

// until runs the clock until done. It does so whatever happens: what was begun
// must end. Only a clock that stands still ends it early, and the run with it.
func (r *runner) until(done func() bool) {
	for r.check(); !done(); r.check() {
		if !r.wait() {
			return
		}
	}
}

// wait lets something happen, and says whether anything can.
func (r *runner) wait() bool {
	if r.yield != nil {
		r.yield()
		return !r.stuck
	}
	if err := r.Clock.Wait(context.WithoutCancel(r.ctx)); err != nil {
		r.fail(err)
		return false
	}
	return true
}

// why nothing more is started, for the people who look for a level.
func (r *runner) why() string {
	switch {
	case r.err != nil:
		return r.err.Error()
	case r.stopped == StoppedBudget:
		return fmt.Sprintf("the budget of %v was spent", r.Budget)
	}
	return r.stopped
}

func (r *runner) calibrate() {
	if r.Calibrate == nil || !r.check() {
		return
	}
	// No calibration is an answer too: it is printed as missing.
	if c, err := r.Calibrate(r.starting); err == nil {
		r.run.Calibration = c
	}
}

// unready is why a server that was being started will not be: that its start
// was then ended too is no news.
func unready(why string, err error) error {
	if err == context.Canceled {
		return errors.New(why + " before it was ready")
	}
	return fmt.Errorf("%s before it was ready: %w", why, err)
}

// server runs the cases of one server, and after those of a workload the search
// for its capacity.
func (r *runner) server(s *plan.Server, cases []Case) {
	if len(cases) == 0 && !slices.ContainsFunc(r.searches, func(x wanted) bool { return x.server == s }) {
		return
	}
	selected := slices.ContainsFunc(cases, r.selected) || slices.ContainsFunc(r.searches, func(x wanted) bool {
		return x.server == s && r.selected(x.named())
	})
	if !selected || !r.check() {
		r.leave(s, cases, r.why())
		return
	}
	found := r.foundBefore(s)
	if found == nil {
		found = &metric.ServerRun{Address: s.Address(), Declared: r.declared(s)}
		r.run.Servers = append(r.run.Servers, found)
	}
	begin := r.Clock.Now()
	t, err := r.Launch(r.starting, s, func(state string) { r.Observer.ServerStarting(found.Address, r.secrets.Text(state)) })
	if err != nil {
		if !r.check() {
			err = unready(r.why(), err)
		}
		r.lost(found, nil, err)
		r.observe(r.Observer.ServerDone(found))
		r.leave(s, cases, "the server could not be measured: "+found.Error)
		return
	}
	r.launchTook = max(r.launchTook, r.Clock.Now()-begin)
	before := found.Fingerprint
	found.Fingerprint = metric.Fingerprint{}
	for key, value := range t.Fingerprint {
		found.Fingerprint[key] = r.secrets.Text(value)
	}
	if key := another(before, found.Fingerprint); key != "" {
		r.lost(found, t, fmt.Errorf("start %d was of another server: %s was %q and is %q", len(found.Starts)+1, key, before[key], found.Fingerprint[key]))
	}
	found.Starts = append(found.Starts, metric.Start{At: begin, Ready: r.Clock.Now(), Cold: t.Cold, ColdEnd: t.ColdEnd})
	r.observe(r.Observer.ServerReady(found))
	if rest := r.cases(t, s, cases, found); found.Error != "" {
		r.leave(s, rest, "the server could not be measured: "+found.Error)
	}
	r.takeDown(t, found)
}

// takeDown looks at a server a last time and ends it.
func (r *runner) takeDown(t *Target, found *metric.ServerRun) {
	if t.Check != nil && found.Error == "" && r.err == nil && r.ctx.Err() == nil {
		// Not under flying: that the budget is spent says nothing of the server.
		if err := t.Check(r.ctx); errors.Is(err, ErrIdentityUnknown) {
			found.EndUnknown = err.Error()
		} else if err != nil && r.ctx.Err() == nil {
			r.lost(found, t, err)
		}
	}
	if t.Close != nil {
		if err := t.Close(); err != nil && found.Error == "" {
			r.lost(found, t, err)
		}
	}
	r.observe(r.Observer.ServerDone(found))
}

// cases runs the cases and searches of a server that is ready, workload by
// workload, and returns what is left once it was lost.
func (r *runner) cases(t *Target, s *plan.Server, cases []Case, found *metric.ServerRun) (rest []Case) {
	r.durations = map[*plan.Workload]time.Duration{}
	for _, w := range r.Plan.Workloads {
		for len(cases) > 0 && cases[0].Workload == w && found.Error == "" {
			c := cases[0]
			cases = cases[1:]
			switch {
			case !r.selected(c):
				r.skip([]Case{c}, "")
			case !r.check():
				r.skip([]Case{c}, r.why())
			default:
				if err := r.level(t, c); err != nil {
					r.lost(found, t, err)
				}
			}
		}
		if slices.Contains(r.searches, wanted{s, w}) && found.Error == "" {
			if err := r.searchCapacity(t, s, w); err != nil {
				r.lost(found, t, err)
			}
		}
	}
	return cases
}

// foundBefore is the server as a comparison found it; nil.
func (r *runner) foundBefore(s *plan.Server) *metric.ServerRun {
	i := slices.IndexFunc(r.run.Servers, func(x *metric.ServerRun) bool { return x.Address == s.Address() })
	if i < 0 {
		return nil
	}
	return r.run.Servers[i]
}

// lost notes why a server could not be measured.
func (r *runner) lost(found *metric.ServerRun, t *Target, err error) {
	if t != nil && t.Err != nil {
		// That its process ended explains what was seen of it, and may have
		// become known only by now.
		if e := t.Err(); e != nil {
			err = e
		}
	}
	found.Error = err.Error()
	if e, ok := errors.AsType[*ServerError](err); ok {
		found.Log = e.Log
	}
	if found.Log == "" && t != nil && t.Log != nil {
		found.Log = t.Log()
	}
	found.Error, found.Log = r.secrets.Text(found.Error), r.secrets.Text(found.Log)
}

func (r *runner) selected(c Case) bool { return r.Only == nil || r.Only(c) }

// leave lists the cases and searches of a server that are not run.
func (r *runner) leave(s *plan.Server, cases []Case, why string) {
	r.skip(cases, why)
	r.unsearched(s, why)
}

// skip lists cases that are not run; those that the user left out say so.
func (r *runner) skip(cases []Case, why string) {
	for _, c := range cases {
		l := newLevel(c)
		l.Skipped = why
		if !r.selected(c) {
			l.Skipped = metric.SkippedOnly
		} else {
			r.remaining--
		}
		r.run.Levels = append(r.run.Levels, l)
		r.observe(r.Observer.LevelDone(l))
	}
}

func newLevel(c Case) *metric.Level {
	return &metric.Level{
		Server:   c.Server.Address(),
		Workload: c.Workload.Address(),
		Name:     c.Level.Name,
		Kind:     c.Load.Kind,
		N:        c.Level.N,
		Natural:  c.Workload.Output.Natural,
		Asked:    c.Workload.Asked(c.Server, c.Load),
	}
}
