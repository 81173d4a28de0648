package exec

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Run runs the plan: one server after another, and on each server its cases in order. A case is one
// level of one workload. Compared servers take turns (see turns).
//
// The result is never nil and contains every case of the plan, even if it was cut short or skipped,
// with the reason. Problems with a server or a level are in the result. An error concerns the whole
// run: an observation could not be passed on, or the clock stopped.
func Run(ctx context.Context, c Config) (*metric.Run, error) {
	r := newRunner(ctx, c)
	defer r.close()
	// In a Sample an offset of zero means "never". So wait until the clock is past zero.
	r.runUntil(func() bool { return c.Clock.Now() > 0 })
	r.observe(metric.RunStarted{Run: r.run})
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
			order, rest := r.takeTurns(groups[i], on)
			for _, s := range order {
				r.server(s, rest[s])
			}
		}
	}
	r.run.End = c.Clock.Now()
	r.run.Stopped = r.stopped
	if r.Workers != nil {
		r.run.Workers = r.Workers.Sent()
	}
	r.calibrate() // measure the load generator, if that was not done yet
	r.observe(metric.RunDone{Run: r.run})
	return r.run, r.err
}

// server runs the cases of one server. The search for a workload's capacity follows
// the workload's cases.
func (r *runner) server(s *plan.Server, cases []Case) {
	if len(cases) == 0 && !slices.ContainsFunc(r.searches, func(x wanted) bool { return x.server == s }) {
		return
	}
	found := r.foundBefore(s)
	if found != nil && found.Error != "" {
		r.leave(s, cases, "the server could not be measured: "+found.Error)
		return
	}
	selected := slices.ContainsFunc(cases, r.selected) || slices.ContainsFunc(r.searches, func(x wanted) bool {
		return x.server == s && r.selected(x.named())
	})
	if !selected || !r.check() {
		r.leave(s, cases, r.why())
		return
	}
	if found == nil {
		found = &metric.ServerRun{Address: s.Address(), Declared: r.redacted(s.Declared()), Series: s.Telemetry.Prometheus.Defs()}
		r.run.Servers = append(r.run.Servers, found)
	}
	begin := r.Clock.Now()
	t, ready := r.launch(s, found)
	if t == nil {
		r.leave(s, cases, "the server could not be measured: "+found.Error)
		return
	}
	r.launchTook = max(r.launchTook, ready-begin)
	before := found.Fingerprint
	found.Fingerprint = t.Fingerprint
	if key := compareStarts(before, found.Fingerprint); key != "" {
		r.lost(found, t, fmt.Errorf("start %d found another server: %s was %q and is now %q", len(found.Starts)+1, key, before[key], found.Fingerprint[key]))
	}
	found.Starts = append(found.Starts, t.started(begin, ready))
	r.observe(metric.ServerReady{Server: found})
	if rest := r.cases(t, s, cases, found); found.Error != "" {
		r.leave(s, rest, "the server could not be measured: "+found.Error)
	}
	r.takeDown(t, found)
}

// cases runs the cases and capacity searches of a server that is ready, workload by workload. If
// the server is lost, it returns the cases that did not run.
func (r *runner) cases(t *Target, s *plan.Server, cases []Case, found *metric.ServerRun) (rest []Case) {
	r.durations = map[*plan.Workload]time.Duration{}
	for _, w := range r.Plan.Workloads {
		for len(cases) > 0 && cases[0].Workload == w && found.Error == "" {
			c := cases[0]
			if stages := staged(cases); len(stages) > 0 && r.check() && slices.ContainsFunc(stages, r.selected) {
				// All stages of a load run together, even if the user selected only some.
				cases = cases[len(stages):]
				if err := r.stages(t, stages); err != nil {
					r.lost(found, t, err)
				}
				continue
			}
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

func (r *runner) foundBefore(s *plan.Server) *metric.ServerRun {
	i := slices.IndexFunc(r.run.Servers, func(x *metric.ServerRun) bool { return x.Address == s.Address() })
	if i < 0 {
		return nil
	}
	return r.run.Servers[i]
}

func (r *runner) leave(s *plan.Server, cases []Case, why string) {
	r.skip(cases, why)
	r.unsearched(s, why)
}
