package decode

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

func readLoads(b *body, w *plan.Workload, p *preset) {
	names := map[string]hcl.Range{}
	for _, l := range b.children("load") {
		load := readLoad(l, p)
		for _, level := range load.Levels {
			if first, ok := names[level.Name]; ok {
				b.d.errorf(level.Range, sumDuplicateLevel, "The level %s is already declared at %s. Names of levels are unique within a workload: remove one, or use a second workload.", level.Name, first)
				continue
			}
			names[level.Name] = level.Range
		}
		w.Loads = append(w.Loads, load)
	}
	if !b.loaded() {
		b.d.loadless[w] = b.rng // no error yet: a mix may have the load of this workload
	}
}

// shapes lists the shapes of a load by the attribute or block that the plan sets for one.
var shapes = []struct {
	name string
	kind metric.LoadKind
	read func(*body, *plan.Load, *preset)
}{
	{"concurrency", metric.ClosedLoop, readClosed},
	{"burst", metric.Burst, readBursts},
	{"users", metric.Users, readUsers},
	{"stage", metric.OpenLoop, readStages},
	{"rate", metric.OpenLoop, readRates},
	{"trace", metric.OpenLoop, readTrace},
}

func readLoad(b *body, p *preset) *plan.Load {
	shape := shapes[0]
	for _, s := range shapes[1:] {
		if b.holds(s.name) && !b.holds(shape.name) {
			shape = s
		}
	}
	l := &plan.Load{Kind: shape.kind, Seeded: b.given("seeds"), Seeds: readSeeds(b), Range: b.rng}
	shape.read(b, l, p)
	b.bind(l)
	return l
}

// Each level of a closed loop is one window.
func readClosed(b *body, l *plan.Load, p *preset) {
	addCounts(b, l, "concurrency")
	switch {
	case b.given("waves"):
		waves, _ := b.integer("waves")
		for i := range l.Levels {
			l.Levels[i].Requests = plan.Waves(max(waves, 1), l.Levels[i].N)
		}
	case b.given("duration"):
		d, _ := b.duration("duration")
		for i := range l.Levels {
			l.Levels[i].Duration = max(d, time.Second)
		}
	default:
		readRequests(b, l, p)
	}
	for i := range l.Levels {
		l.Levels[i].Cut()
	}
	l.Warmup, l.Stagger = readWarmup(b), readStagger(b)
}

func readBursts(b *body, l *plan.Load, p *preset) {
	addCounts(b, l, "burst")
	given := b.given("bursts")
	before := len(b.d.out.Defaults)
	rounds, ok := b.integer("bursts")
	if !ok {
		rounds = 1
	}
	var more []string
	for i := range l.Levels {
		level := &l.Levels[i]
		level.Rounds = rounds
		if least := (p.requests() + level.N - 1) / level.N; !given && least > level.Rounds {
			level.Rounds = least
			more = append(more, strconv.Itoa(level.N)+" = "+strconv.Itoa(least))
		}
		level.Requests = level.N * level.Rounds
	}
	if len(more) > 0 {
		// This note on the preset's default replaces earlier notes on the language's own default.
		b.d.out.Defaults = b.d.out.Defaults[:before]
		b.note("bursts", "{ default = "+strconv.Itoa(rounds)+", "+strings.Join(more[:min(len(more), 20)], ", ")+" }", p.why())
	}
	l.Warmup = readWarmup(b)
}

func readRequests(b *body, l *plan.Load, p *preset) {
	byLevel, ok := readRequestCounts(b, l)
	if !ok {
		return
	}
	rng := b.rangeOf("requests")
	var noted []string
	for i := range l.Levels {
		level := &l.Levels[i]
		level.Requests = cmp.Or(byLevel[level.Name], byLevel["default"])
		if level.Requests == 0 {
			level.Requests = max(plan.DefaultRequests(level.N), p.requests())
			b.d.unaskedFor(l, level, max(plan.LegRequests(level.N), p.requests()))
			if len(noted) < 20 {
				noted = append(noted, level.Name+" = "+strconv.Itoa(level.Requests))
			}
		}
		if level.Requests < level.N {
			b.d.errorf(rng, sumFewRequests, "The level %s keeps %[2]d requests in flight, but it has only %[3]d requests. Set `requests` to at least %[2]d.", level.Name, level.N, level.Requests)
			level.Requests = level.N
		}
	}
	if len(noted) > 0 {
		why := b.spec.attr("requests").Computed
		if p.requests() > 0 {
			why += fmt.Sprintf(", and at least %d because preset %s has a threshold on a p99", p.requests(), p.name)
		}
		b.note("requests", "{ "+strings.Join(noted, ", ")+" }", why)
	}
}

// unaskedFor keeps the number of requests of a leg, which a comparison multiplies by its rounds.
func (d *decoder) unaskedFor(l *plan.Load, level *plan.Level, leg int) {
	if d.unasked[l] == nil {
		d.unasked[l] = map[string]int{}
	}
	d.unasked[l][level.Name] = leg
}

// The key "default" has the number of all other levels.
func readRequestCounts(b *body, l *plan.Load) (byLevel map[string]int, ok bool) {
	x, ok := b.item("requests")
	switch {
	case !ok:
		return nil, b.unset("requests")
	case !x.isObject():
		n, ok := x.integer()
		return map[string]int{"default": n}, ok
	case x.unknown():
		return nil, false
	}
	names, isLevel := []string{}, map[string]bool{"default": true}
	for _, level := range l.Levels {
		names = append(names, level.Name)
		isLevel[level.Name] = true
	}
	byLevel = map[string]int{}
	for it := x.value.ElementIterator(); it.Next(); {
		k, v := it.Element()
		key := k.AsString()
		if !isLevel[key] && len(names) > 0 {
			x.errorf(sumUnknownLevel, "requests names %q, which is not a level of this block. It has %s.", key, choices(names))
			continue
		}
		if v.IsNull() {
			continue
		}
		e := b.itemOf("requests", v, x.rng)
		e.name += "." + key
		if byLevel[key], ok = e.integer(); !ok {
			return nil, false
		}
	}
	return byLevel, true
}

func readWarmup(b *body) int {
	x, ok := b.item("warmup")
	if !ok || x.auto() {
		return plan.WarmupAuto
	}
	if x.value.Type() == cty.String {
		x.wrongType(`a number of requests or "auto"`)
		return plan.WarmupAuto
	}
	if n, ok := x.integer(); ok {
		return n
	}
	return plan.WarmupAuto
}

func readStagger(b *body) time.Duration {
	if x, ok := b.item("stagger"); ok && !x.auto() {
		if d, ok := x.duration(); ok {
			return d
		}
	}
	return plan.StaggerAuto
}
