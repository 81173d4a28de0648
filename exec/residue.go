package exec

import (
	"context"
	"slices"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec/telemetry"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// First and Last are the phases of whole requests around a level whose residue is asked. What a server
// takes once for a load is no residue, so the first ones come before. Their samples are not recorded.
const (
	First metric.Phase = "first"
	Last  metric.Phase = "last"
)

// MostFirst is the largest number of requests before a level whose residue is asked without a burst.
const MostFirst = 64

const (
	residueEach = 500 * time.Millisecond // between two looks at a server that settles
	idleFor     = 5 * time.Second        // an endpoint must be idle for so long, or others use it
)

// residual observes what the server keeps of a level.
type residual struct {
	*levelRun
	of     *plan.Residue
	out    *metric.Residue
	began  time.Duration
	asides int // requests until then whose samples are not recorded
	before counted
}

// counted is what the server has counted so far.
type counted struct{ tokens, answers metric.Value }

// residue begins to observe what the server keeps of the level; nil if that is not asked.
func (s *levelRun) residue() *residual {
	of := s.Plan.Residual(s.Server, s.Workload, s.Level)
	if of == nil {
		return nil
	}
	r := &residual{levelRun: s, of: of, out: &metric.Residue{}}
	s.level.Residue = r.out
	s.warm()
	n := min(max(s.Level.N, 4), MostFirst)
	if of.Burst {
		n, r.out.Burst = plan.ResidueBurst, plan.ResidueBurst
	}
	r.out.Before.AtOnce = r.wave(First, n)
	r.out.Before.Alone = s.aloneBefore()
	end := s.Clock.Now() + of.Settle
	for r.before = r.read(&r.out.Before); r.out.Before.Busy() && s.Clock.Now() < end && s.check(); r.before = r.read(&r.out.Before) {
		r.pause(min(s.Clock.Now()+residueEach, end))
	}
	if s.Server.Endpoint != nil && !r.idle() {
		r.out.Why = "others use the server"
	}
	r.began, r.asides = s.Clock.Now(), s.aside
	return r
}

// wave sends whole requests at once, of which no client leaves. It returns how many of them the server
// answered at once.
func (r *residual) wave(phase metric.Phase, n int) (atOnce int) {
	ctx, cancel := context.WithCancel(r.flying)
	defer cancel()
	var ended []*metric.Sample
	sent := 0
	for ; sent < n && r.check(); sent++ {
		a := r.asks[sent%len(r.asks)]
		id := PromptID{Level: r.level.Name, Round: len(r.level.Rounds), Phase: phase, Order: sent}
		if r.unrecorded(ctx, a, id, a.workload.Output.Mean, func(x *metric.Sample) { ended = append(ended, x) }) != nil {
			break // the round will meet the same problem and report it
		}
	}
	r.runUntil(func() bool { return len(ended) == sent || !r.check() })
	for _, x := range ended {
		at := 0
		for _, y := range ended {
			if x.First > 0 && y.First > 0 && y.First <= x.First && x.First < y.End {
				at++
			}
		}
		atOnce = max(atOnce, at)
	}
	return atOnce
}

// idle reports whether the endpoint does nothing for a while.
func (r *residual) idle() bool {
	for until := r.Clock.Now() + idleFor; r.Clock.Now() < until && r.check(); r.pause(r.Clock.Now() + residueEach) {
		if r.read(&r.out.Before); r.out.Before.Busy() {
			return false
		}
	}
	return true
}

// ends observes what is left after the level. Every look sends a request alone first: some servers
// report only while they work.
func (r *residual) ends() {
	if r == nil || r.out.Why != "" {
		return
	}
	var is counted
	from := r.Clock.Now()
	for end := from + r.of.Settle; ; r.pause(min(r.Clock.Now()+residueEach, end)) {
		if !r.check() {
			r.out.Why = r.why()
			return
		}
		r.out.After.Alone = r.alone(max(end-r.Clock.Now(), edge))
		is = r.read(&r.out.After)
		r.out.Settled = r.Clock.Now() - from
		if r.Clock.Now() >= end || r.lost() || r.out.After.Within(r.out.Before) {
			break
		}
	}
	sent := r.count()
	if r.out.Made = is.tokens; r.out.Made.OK {
		r.out.Made.V -= r.before.tokens.V
	}
	switch {
	case r.Server.Endpoint == nil:
	case !is.answers.OK:
		r.out.Why = "others may use the server: " + is.answers.Why
	case is.answers.V-r.before.answers.V > float64(sent):
		r.out.Why = "others use the server: it began more answers than tokgate asked for"
	}
	if r.out.Burst > 0 {
		r.out.After.AtOnce = r.wave(Last, r.out.Burst)
	}
}

// lost reports whether the server's program has ended.
func (r *residual) lost() bool { return r.target.Err != nil && r.target.Err() != nil }

// count counts the tokens of the requests since the level began, also of a saturation that followed it.
// It returns the number of these requests.
func (r *residual) count() int {
	var sent []*metric.Sample
	for _, l := range r.run.Levels {
		for _, round := range slices.Concat(l.Rounds, l.Voided) {
			for _, s := range round.All() {
				if l.Server == r.level.Server && s.Sent >= r.began {
					sent = append(sent, s)
				}
			}
		}
	}
	r.out.Take(sent, r.aside-r.asides)
	return len(sent) + r.aside - r.asides
}

// read reads the server's metrics. A value that cannot be read is missing. A page that comes late, or not at
// all, is asked for again, because one reading decides.
func (r *residual) read(o *metric.Occupied) (c counted) {
	var page *telemetry.Reading
	why := "the server's own metrics are not read"
	if in := r.target.Inside; in != nil && in.Server != nil {
		why = "the server's metrics page could not be read"
		for range 3 {
			if page = r.page(in); page != nil || !r.check() {
				break
			}
		}
	}
	if page != nil {
		why = "the server does not report it"
	} else {
		page = &telemetry.Reading{}
	}
	of := func(m map[string]float64, name string) metric.Value {
		if v, ok := m[name]; ok {
			return metric.Some(v)
		}
		return metric.None(why)
	}
	o.Running, o.Waiting, o.KV = of(page.Gauges, "running"), of(page.Gauges, "waiting"), of(page.Gauges, "kv_usage")
	if engine.Of(r.Server.Engine).KVCached {
		o.KV = metric.None("the engine counts cached blocks too")
	}
	c = counted{of(page.Counters, metric.GeneratedTokens), metric.None("its page does not count answers")}
	if h, ok := page.Histograms["server_ttft"]; ok {
		c.answers = metric.Some(h.N())
	}
	return c
}

// page asks for the server's metrics page; nil if it does not come.
func (r *residual) page(in *telemetry.Watch) (page *telemetry.Reading) {
	ctx, cancel := context.WithCancel(r.flying)
	defer cancel()
	over := false
	stop := r.Clock.Timer(r.Clock.Now()+edge, func() { over = true })
	defer stop()
	in.Server(ctx, func(p *telemetry.Reading, err error) {
		if over = true; err == nil {
			page = p
		}
	})
	r.runUntil(func() bool { return over || !r.check() })
	return page
}
