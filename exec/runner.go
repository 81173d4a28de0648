package exec

import (
	"context"
	"fmt"
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record"
)

// Values of metric.Run.Stopped: the reasons why a run stopped early.
const (
	StoppedInterrupted = "interrupted"
	StoppedBudget      = "budget"
)

// runner is the state of a run. Only one goroutine uses it, the loop.
type runner struct {
	Config
	ctx context.Context // the caller's context, which a user's second interrupt cancels
	run *metric.Run
	// secrets removes the plan's secrets from all text of a server, so that nothing
	// later can print or write one.
	secrets record.Redactor

	// The run has two contexts. When starting ends, no more requests start. When flying ends,
	// requests in flight must end too.
	starting, flying       context.Context
	endStarting, endFlying context.CancelFunc

	yield func() // lets other strands (goroutines of the run) go on; nil if there are none
	stuck bool   // the run is at a dead end: no event can happen any more, so all strands must end

	stopped  string // reason why the run starts no more requests; "" while it may start them
	err      error  // error of the whole run, not of a server
	cleanups []func()

	durations map[*plan.Workload]time.Duration // duration of one request on the server under test
	repeated  map[[2]string]bool               // a prompt was sent again; by server and workload
	sent      map[[2]string]int                // number of measured requests, by server and workload
	aside     int                              // number of requests whose samples are not recorded
	// storedBytes is the total size of the answers that were recorded so far.
	storedBytes int

	spending
}

func newRunner(ctx context.Context, c Config) *runner {
	r := &runner{
		Config: c, ctx: ctx, secrets: record.NewRedactor(c.Plan.Secrets), repeated: map[[2]string]bool{}, sent: map[[2]string]int{},
		spending: spending{took: map[*metric.Level]time.Duration{}},
	}
	run := c.Run
	run.Servers, run.Levels, run.Capacities, run.Comparisons = nil, nil, nil, nil
	run.SaltedLengths = c.Plan.SaltsLengths() && run.Salt != 0
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
	// The run's loop decides when these two contexts end, so neither ends with ctx. The loop waits
	// for requests in flight even after they were told to end.
	r.starting, r.endStarting = context.WithCancel(context.WithoutCancel(ctx))
	r.flying, r.endFlying = context.WithCancel(context.WithoutCancel(ctx))
	r.cleanups = append(r.cleanups, r.endStarting, r.endFlying)

	// An interrupt wakes the loop, which then calls check. Goroutines that work for the loop see
	// the interrupt in their context.
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
		r.deadline = r.Clock.Now() + r.Budget - min(r.Teardown, r.Budget/10)
		stop := r.Clock.Timer(r.deadline, func() { r.halt(StoppedBudget, 0) })
		r.cleanups = append(r.cleanups, func() { stop() })
	}
	return r
}

func (r *runner) close() {
	for _, f := range r.cleanups {
		f()
	}
}

// halt makes the run start nothing more. After the time grace, it also cancels the requests in
// flight. A second call does not change the reason.
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

// check stops the run if it was interrupted. It reports whether the run may start something more.
func (r *runner) check() bool {
	if r.Workers != nil && r.err == nil {
		if err := r.Workers.Gone(); err != nil {
			r.fail(err)
		}
	}
	if r.ctx.Err() != nil {
		r.halt(StoppedInterrupted, 0)
	} else if r.Drain.Err() != nil {
		r.halt(StoppedInterrupted, r.DrainTimeout)
	}
	return r.stopped == "" && r.err == nil
}

// observe stops the run if an observer failed with err. A run without its observations would be
// incomplete.
func (r *runner) observe(e metric.Event) {
	if err := r.Observer(e); err != nil && r.err == nil {
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

// runUntil runs the clock as long as done returns false. It goes on after a failure or an
// interrupt, because requests in flight must end. If no event can happen any more, it returns
// early, and the run ends.
func (r *runner) runUntil(done func() bool) {
	for r.check(); !done(); r.check() {
		if !r.wait() {
			return
		}
	}
}

// wait waits for the next event. It returns false if no event can happen any more.
func (r *runner) wait() bool {
	if r.yield != nil {
		r.yield()
		return !r.stuck
	}
	if err := r.Clock.Wait(context.Background()); err != nil {
		r.fail(err)
		return false
	}
	return true
}

// why returns the reason why the run starts no more requests. The report shows it for each missing
// level.
func (r *runner) why() string {
	switch {
	case r.err != nil:
		return r.err.Error()
	case r.stopped == StoppedBudget:
		return fmt.Sprintf("the budget of %v was spent", r.Budget)
	}
	return r.stopped
}

func (r *runner) selected(c Case) bool { return r.Only == nil || r.Only(c) }

// skip adds a level for each case that does not run, with the reason why. The reason is
// metric.SkippedOnly if the user did not select the case.
func (r *runner) skip(cases []Case, why string) {
	for _, c := range cases {
		l := r.newLevel(c)
		l.Skipped = why
		if !r.selected(c) {
			l.Skipped = metric.SkippedOnly
		} else {
			r.remaining--
		}
		r.done(l)
	}
}

// newLevel adds the level of a case to the run.
func (r *runner) newLevel(c Case) *metric.Level {
	l := levelOf(c)
	r.run.Levels = append(r.run.Levels, l)
	return l
}

// done tells the observer that a level has ended.
func (r *runner) done(l *metric.Level) { r.observe(metric.LevelDone{Level: l}) }

func levelOf(c Case) *metric.Level {
	l := &metric.Level{
		Server:   c.Server.Address(),
		Workload: c.Workload.Address(),
		Name:     c.Level.Name,
		Kind:     c.Load.Kind,
		N:        c.Level.N,
		Rate:     c.Level.Rate,
		Stage:    c.Level.Stage,
		Speedup:  c.Level.Speedup,
		Batches:  c.Level.Batches,
		Natural:  c.Workload.Output.Natural,
		Asked:    c.Workload.Asked(c.Server, c.Load),
	}
	for _, part := range c.Workload.Whole()[1:] {
		of := c
		of.Workload = part
		l.AddPart(levelOf(of), part.Portion(c.Level).Fraction())
	}
	return l
}
