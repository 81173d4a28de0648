package decode

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// capacity reads the capacity block; nil when there is none.
func (b *body) capacity(w *plan.Workload, p *preset) *plan.Capacity {
	c := b.child("capacity")
	if c == nil {
		return nil
	}
	out := &plan.Capacity{Over: metric.ClosedLoop, Resolution: 1, Range: c.rng}
	if c.later = c.isText("over", "rate"); c.later {
		c.d.later(c.rangeOf("over"), `over = "rate"`)
	} else if c.oneOf("over", "concurrency", "burst") == "burst" {
		out.Over = metric.Burst
	}
	upTo, _ := c.integer("up_to", 1, maxLevel)
	from, _ := c.integer("from", 1, maxLevel)
	out.UpTo, out.From = int(upTo), max(int(from), 1)
	c.resolution(out)
	if n, ok := c.integer("require", 1, maxLevel); ok {
		out.Require = int(n)
	} else if !c.given("require") {
		c.note("require", "none", "the capacity is measured only")
	}
	out.Budget, _ = c.duration("budget", time.Second, maxDuration)
	if n, ok := c.integer("requests", 1, maxCount); ok {
		out.Requests = int(n)
	} else if !c.given("requests") {
		out.Least = p.requests()
		c.note("requests", "as the requests of a level", "")
	}
	if n, ok := c.integer("max_requests", 1, maxCount); ok {
		out.MaxRequests = int(n)
		if out.Requests > out.MaxRequests {
			c.d.errorf(c.rangeOf("max_requests"), sumConflict, "The first look at a level takes requests = %d, more than max_requests = %d allows.", out.Requests, out.MaxRequests)
		}
	} else if !c.given("max_requests") {
		if cap := w.Policy.MaxRequests; cap > 0 {
			c.note("max_requests", strconv.Itoa(cap), "the gate's max_requests")
		} else {
			c.note("max_requests", "16 times the first look", "")
		}
	}
	out.Confirm = c.boolean("confirm")
	out.Load = b.probeLoad(w, out.Over)

	if out.UpTo > 0 && out.From > out.UpTo {
		c.d.errorf(c.rangeOf("from"), sumOutOfRange, "from = %d is above up_to = %d: there is nothing to search.", out.From, out.UpTo)
	}
	if out.UpTo > 0 && out.Require > out.UpTo {
		c.d.errorf(c.rangeOf("require"), sumOutOfRange, "require = %d is above up_to = %d: the search could never reach it. Raise up_to.", out.Require, out.UpTo)
	}
	if out.Require > 0 && out.Require < out.From {
		c.d.errorf(c.rangeOf("require"), sumOutOfRange, "require = %d is below from = %d: the search never looks there. Lower from.", out.Require, out.From)
	}
	if total := c.d.plan.Gate.Budget; total > 0 && out.Budget > total {
		c.d.errorf(c.rangeOf("budget"), sumConflict, "The search may take %s and the whole run %s (the gate's budget).", plan.PlainDuration(out.Budget), plan.PlainDuration(total))
	}
	return out
}

// resolution reads 2 or "5%".
func (b *body) resolution(out *plan.Capacity) {
	v, ok := b.value("resolution")
	if !ok {
		return
	}
	rng := b.rangeOf("resolution")
	if v.Type() != cty.String {
		if n, ok := b.asInteger(rng, "resolution", v, 1, maxLevel); ok {
			out.Resolution = int(n)
		}
		return
	}
	share, ok := b.asFraction(rng, "resolution", v)
	if !ok {
		return
	}
	if !(share > 0 && share < 1) || math.IsNaN(share) {
		b.d.errorf(rng, sumOutOfRange, `resolution must be a number of at least 1, or a share above "0%%" and below "100%%".`)
		return
	}
	out.Relative = share
}

// probeLoad is how a search sends: as the workload's first load block of that
// shape, else by the defaults.
func (b *body) probeLoad(w *plan.Workload, kind metric.LoadKind) *plan.Load {
	for _, l := range w.Loads {
		if l.Kind == kind {
			probe := *l
			probe.Levels, probe.Seeds = nil, slices.Clone(l.Seeds)
			return &probe
		}
	}
	d := b.absent("load")
	d.quiet = true
	l := &plan.Load{Kind: kind, Range: b.rng}
	l.Seeds, l.Warmup, l.Stagger = d.seeds(), d.warmup(), d.stagger(kind)
	l.Timeout, _ = d.duration("timeout", time.Millisecond, 24*time.Hour)
	return l
}

// checkCapacity checks what needs the thresholds.
func (d *decoder) checkCapacity(w *plan.Workload) {
	if w.Capacity == nil || w.Capacity.Bounded(w) || d.diags.HasErrors() {
		return
	}
	d.errorf(w.Capacity.Range, sumCapacityUnbounded, `Nothing says when workload.%s has reached its capacity: it needs an sla block of severity "error" whose at holds "capacity", or that has no at.`, w.Address())
}
