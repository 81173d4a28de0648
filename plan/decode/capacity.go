package decode

import (
	"math"
	"slices"
	"strconv"

	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

func readCapacity(b *body, w *plan.Workload, p *preset) *plan.Capacity {
	c := b.child("capacity")
	if c == nil {
		return nil
	}
	out := &plan.Capacity{Over: metric.ClosedLoop, From: 1, Resolution: 1, Range: c.rng}
	switch c.oneOf("over") {
	case "users":
		out.Over = metric.Users
	case "speedup":
		out.Over, out.Relative, out.From = metric.Speedup, rateResolution, leastSearched
	case "burst":
		out.Over = metric.Burst
	case "rate":
		out.Over, out.Relative = metric.OpenLoop, rateResolution
	}
	c.bind(out)
	for _, x := range []struct {
		name string
		into *int
	}{{"from", &out.From}, {"up_to", &out.UpTo}, {"require", &out.Require}} {
		if n, ok := readAmount(c, x.name, out.Over); ok {
			*x.into = n
		}
	}
	if out.Over == metric.OpenLoop {
		out.Largest, _ = readAmount(c, "largest_rate", out.Over)
	}
	readResolution(c, out)
	if !c.given("require") {
		c.note("require", "none", "the capacity is measured only")
	}
	readProbeSize(c, w, out, p)
	if out.Over != metric.OpenLoop {
		out.Confirm = c.boolean("confirm")
	}
	if out.Load = readProbeLoad(b, w, out.Over); out.Load == nil {
		if out.Over == metric.Users {
			c.d.errorf(c.rng, sumMissing, "A search over users needs a load block that sets their think_time and duration. Add load { users = [10] }.")
		} else {
			b.missesTrace(c)
		}
		return nil
	}
	checkSearch(c, out)
	return out
}

func readProbeSize(c *body, w *plan.Workload, out *plan.Capacity, p *preset) {
	if counts := out.Over != metric.Users && out.Over != metric.Speedup; counts && !c.given("requests") {
		out.Least = p.requests()
		if out.Over == metric.OpenLoop {
			out.Requests = max(plan.DefaultEstimating, out.Least)
			c.note("requests", strconv.Itoa(out.Requests), "for an estimating probe")
		} else {
			c.note("requests", "the default of requests in a load block", "")
		}
	}
	switch most := w.Policy.MaxRequests; {
	case c.given("max_requests"), out.Over == metric.Users:
	case most > 0:
		c.note("max_requests", strconv.Itoa(most), "the gate's max_requests")
	default:
		c.note("max_requests", map[bool]string{true: "16", false: "4"}[out.Over == metric.OpenLoop]+" times the requests of the first look", "")
	}
}

func checkSearch(b *body, out *plan.Capacity) {
	if out.MaxRequests > 0 && out.Requests > out.MaxRequests {
		b.d.errorf(b.rangeOf("max_requests"), sumConflict, "requests = %d is more than max_requests = %d. Raise max_requests, or lower requests.", out.Requests, out.MaxRequests)
	}
	if out.UpTo > 0 && out.From > out.UpTo {
		b.d.errorf(b.rangeOf("from"), sumOutOfRange, "from = %s is above up_to = %s, so the search has no load to try. Lower from, or raise up_to.", out.Amount(out.From), out.Amount(out.UpTo))
	}
	if out.UpTo > 0 && out.Require > out.UpTo {
		b.d.errorf(b.rangeOf("require"), sumOutOfRange, "require = %s is above up_to = %s, so the search never tries that load. Raise up_to.", out.Amount(out.Require), out.Amount(out.UpTo))
	}
	if out.Require > 0 && out.Require < out.From {
		b.d.errorf(b.rangeOf("require"), sumOutOfRange, "require = %s is below from = %s, so the search never tries that load. Lower from.", out.Amount(out.Require), out.Amount(out.From))
	}
	if out.Largest > 0 && out.Require > out.Largest {
		b.d.errorf(b.rangeOf("require"), sumConflict, "require = %s is above largest_rate = %s, so no probe could certify it. Lower require, or raise largest_rate.", out.Amount(out.Require), out.Amount(out.Largest))
	}
	if out.Over == metric.OpenLoop && out.Load.Open.Unsaturated && out.Largest == 0 {
		b.d.errorf(b.rng, sumMissing, "The search plans its probes by the largest rate that the server can sustain. saturate = false forbids to measure that rate, so set it here: largest_rate = \"12 req/s\". Or remove saturate from the load block.")
	}
	if total := b.d.out.Gate.Budget; total > 0 && out.Budget > total {
		b.d.errorf(b.rangeOf("budget"), sumConflict, "The budget of the search is %s, but the budget of the whole run is only %s. Lower the budget of the search, or raise the budget in the gate block.", plan.PlainDuration(out.Budget), plan.PlainDuration(total))
	}
}

// A certified rate may be up to 5 % below the estimated largest rate.
const rateResolution = 0.05

// A rate is returned as a number of steps of plan.RateStep.
func readAmount(b *body, name string, over metric.LoadKind) (int, bool) {
	fraction := over == metric.Speedup || over == metric.OpenLoop
	if fraction && !b.given(name) && !b.spec.attr(name).Required {
		return 0, false // the default is one of whole numbers
	}
	x, ok := b.item(name)
	switch {
	case !ok:
		return 0, false
	case over == metric.Speedup:
		f, ok := x.like(loadBlock.attr("speedup")).speedup()
		return int(math.Round(f / plan.SpeedupStep)), ok
	case over == metric.OpenLoop:
		rate, ok := x.like(loadBlock.attr("rate")).rate()
		return int(math.Round(rate / plan.RateStep)), ok
	}
	return x.integer()
}

func readResolution(b *body, out *plan.Capacity) {
	if out.Relative > 0 && !b.given("resolution") {
		b.note("resolution", `"5%"`, "for a rate or a speedup")
		return
	}
	x, ok := b.item("resolution")
	switch {
	case !ok:
	case x.value.Type() == cty.String:
		if share, ok := x.like(promptBlock.attr("hit_rate")).share(); ok {
			out.Relative = share
		}
	case out.Relative > 0:
		x.errorf(sumWrongType, `For a rate or a speedup, resolution is a share, such as "5%%".`)
	default:
		put(&out.Resolution, x.integer)
	}
}

// leastSearched is the smallest speedup that a search tries by default, in steps of
// plan.SpeedupStep.
const leastSearched = 10

// readProbeLoad returns the load that the probes of a search send. It is the workload's first load
// block of the given kind, or else the default load. If a search over users or speedups has no such
// block, it is nil.
func readProbeLoad(b *body, w *plan.Workload, kind metric.LoadKind) *plan.Load {
	for _, l := range w.Loads {
		replays := l.Open != nil && l.Open.Trace != nil
		if l.Kind == kind && !replays || kind == metric.Speedup && replays {
			probe := *l
			probe.Levels, probe.Seeds = nil, slices.Clone(l.Seeds)
			return &probe
		}
	}
	if kind == metric.Speedup || kind == metric.Users {
		return nil
	}
	d := b.absent("load")
	d.quiet = true
	l := &plan.Load{Kind: kind, Range: b.rng}
	l.Seeds = readSeeds(d)
	if kind == metric.OpenLoop {
		l.Open = &plan.Open{Warmup: plan.OpenWarmupAuto}
		d.bind(l.Open)
		l.Open.Unsaturated = !d.boolean("saturate")
	} else {
		l.Warmup = readWarmup(d)
		if kind == metric.ClosedLoop {
			l.Stagger = readStagger(d)
		}
	}
	d.bind(l)
	return l
}

// checkCapacity reports an error for a capacity search that has no threshold to check. It is called
// after the thresholds are read.
func (d *decoder) checkCapacity(w *plan.Workload) {
	if w.Capacity == nil || w.Capacity.Bounded(w) || d.diags.HasErrors() {
		return
	}
	d.errorf(w.Capacity.Range, sumCapacityUnbounded, "The capacity search of workload.%s has no threshold to check. Add an sla block with severity \"error\", without `at` or with at = [\"capacity\"].", w.Address())
}
