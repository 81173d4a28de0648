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

// readLoads reads the load blocks of a workload. The preset sets their defaults.
func readLoads(b *body, w *plan.Workload, p *preset) {
	names := map[string]hcl.Range{}
	b.each("load", func(l *body) {
		load := readLoad(l, p)
		for _, level := range load.Levels {
			if first, ok := names[level.Name]; ok {
				b.d.errorf(level.Range, sumDuplicateLevel, "The level %s is already declared at %s. Names of levels are unique within a workload: remove one, or use a second workload.", level.Name, first)
				continue
			}
			names[level.Name] = level.Range
		}
		w.Loads = append(w.Loads, load)
	})
	if !b.loaded() {
		b.d.loadless[w] = b.rng // no error yet: a mix may have the load of this workload
	}
}

// loaded reports whether a workload has a load or a capacity search.
func (b *body) loaded() bool { return len(b.blocks["load"])+len(b.blocks["capacity"]) > 0 }

func readLoad(b *body, p *preset) *plan.Load {
	l := &plan.Load{Kind: metric.ClosedLoop, Range: b.rng}
	attr := readShape(b, l)
	if l.Kind != metric.Users && b.given("ramp_up") {
		b.d.errorf(b.attrs["ramp_up"].NameRange, sumConflict, "ramp_up applies only to a load of users. Remove it, or write users = [50].")
	}
	l.Seeded = b.given("seeds")
	l.Seeds = readSeeds(b)
	if attr == "trace" {
		readTrace(b, l)
		return l
	}
	refuseTrace(b)
	readThink(b, l)
	switch l.Kind {
	case metric.OpenLoop:
		readOpen(b, l, p)
		b.bind(l)
		return l
	case metric.Users:
		readUsers(b, l)
		return l
	}
	refuseOpen(b)
	if b.given(attr) {
		l.Levels = readLevels(b, attr, l.Kind)
	}
	switch {
	case l.Kind == metric.Burst:
		readBursts(b, l, p)
	case b.given("duration"):
		readDuration(b, l)
	default:
		readRequests(b, l, p)
	}
	l.Warmup = readWarmup(b)
	l.Stagger = readStagger(b, l.Kind)
	b.bind(l)
	return l
}

// readShape reads the shape of a load: concurrency, burst, users, rate, stages or trace. It returns
// the name of the attribute with the levels.
func readShape(b *body, l *plan.Load) (attr string) {
	shapes := []struct {
		attr string
		kind metric.LoadKind
	}{{"concurrency", metric.ClosedLoop}, {"burst", metric.Burst}, {"users", metric.Users}, {"rate", metric.OpenLoop}, {"trace", metric.OpenLoop}}
	if len(b.blocks["stage"]) > 0 {
		attr, l.Kind = "stage", metric.OpenLoop
	}
	for _, s := range shapes {
		switch {
		case !b.given(s.attr):
		case attr != "":
			b.d.errorf(b.attrs[s.attr].NameRange, sumConflict, "A load block has only one of concurrency, burst, users, rate and trace. Write one load block for each.")
		default:
			attr, l.Kind = s.attr, s.kind
		}
	}
	if attr == "" && !b.later && !b.stray {
		b.d.errorf(b.rng, sumLoadShape, `A load block needs concurrency = [1, 8], burst = [8], users = [50], rate = ["4 req/s"] or trace = "requests.jsonl".`)
	}
	return cmp.Or(attr, "concurrency")
}

func readSeeds(b *body) []int64 {
	var seeds []int64
	wrong := false
	seen := map[int64]bool{}
	for _, e := range b.list("seeds") {
		n, ok := b.asInteger(e.rng, "seeds", e.value, -maxInteger, maxInteger)
		switch {
		case !ok:
			wrong = true
		case seen[n]:
			b.d.errorf(e.rng, sumDuplicateSeed, "The seed %d is used twice: both rounds would send the same prompts.", n)
		default:
			seen[n] = true
			seeds = append(seeds, n)
		}
	}
	if len(seeds) == 0 {
		if !wrong && b.isSet("seeds") {
			b.d.errorf(b.rangeOf("seeds"), sumMissing, "seeds is an empty list. Write at least one whole number, or remove seeds.")
		}
		seeds = []int64{1}
	}
	return seeds
}

func readLevels(b *body, attr string, kind metric.LoadKind) []plan.Level {
	var levels []plan.Level
	elements := b.list(attr)
	if len(elements) == 0 {
		b.d.errorf(b.rangeOf(attr), sumLoadShape, "%[1]s is an empty list. Write at least one level, such as %[1]s = [8].", attr)
	}
	for _, e := range elements {
		n, ok := b.asInteger(e.rng, attr, e.value, 1, maxLevel)
		if !ok {
			continue
		}
		if b.d.levels++; b.d.levels > maxLevels {
			b.d.errorf(b.rng, sumTooManyInstances, "A plan has at most %d levels.", maxLevels)
			return levels
		}
		levels = append(levels, plan.Level{Name: plan.LevelName(kind, int(n)), N: int(n), Rounds: 1, Range: e.rng})
	}
	return levels
}

// readDuration reads a duration, which says how long each level of a closed loop lasts. Such a
// level has one round for each seed.
func readDuration(b *body, l *plan.Load) {
	for _, other := range []string{"requests", "bursts"} {
		if b.given(other) {
			b.d.errorf(b.attrs[other].NameRange, sumConflict, "A closed loop has either a duration or a number of requests. Remove duration or %s.", other)
		}
	}
	d, ok := b.duration("duration", time.Second, time.Duration(maxDuration))
	if !ok {
		d = time.Second
	}
	for i := range l.Levels {
		level := &l.Levels[i]
		level.Duration, level.Rounds, level.Requests = d, len(l.Seeds), len(l.Seeds)*level.N
	}
}

// readBursts sets the number of rounds of a load of bursts. Each burst is a round.
func readBursts(b *body, l *plan.Load, p *preset) {
	if b.given("duration") {
		b.d.errorf(b.attrs["duration"].NameRange, sumConflict, "A burst ends when its requests end. Remove `duration`. To send a burst more often, set `bursts`.")
	}
	if b.given("requests") {
		b.d.errorf(b.attrs["requests"].NameRange, sumConflict, "The level of a burst is its number of requests. Remove `requests`. To send a burst more often, set `bursts`.")
	}
	given := b.given("bursts")
	before := len(b.d.out.Defaults)
	rounds, ok := b.integer("bursts", 1, 100_000)
	if !ok {
		rounds = 1
	}
	var more []string
	for i := range l.Levels {
		level := &l.Levels[i]
		level.Rounds = int(rounds)
		if least := (p.requests() + level.N - 1) / level.N; !given && least > level.Rounds {
			level.Rounds = least
			more = append(more, strconv.Itoa(level.N)+" = "+strconv.Itoa(least))
		}
		level.Requests = level.N * level.Rounds
	}
	if len(more) > 0 {
		// This note on the preset's default replaces earlier notes on the language's own default.
		b.d.out.Defaults = b.d.out.Defaults[:before]
		b.note("bursts", "{ default = "+strconv.Itoa(int(rounds))+", "+strings.Join(more[:min(len(more), 20)], ", ")+" }", p.why())
	}
}

// readRequests sets the number of measured requests of closed-loop levels. It divides them among
// the seeds, one round for each. Each slot sends at least one request in a round, so a level with
// few requests has fewer rounds.
func readRequests(b *body, l *plan.Load, p *preset) {
	if b.given("bursts") {
		b.d.errorf(b.attrs["bursts"].NameRange, sumConflict, "`bursts` applies only to a load with `burst`. Remove it. For a closed loop, set `requests` instead.")
	}
	byLevel, fallback, ok := readRequestCounts(b, l)
	if !ok {
		return
	}
	rng := b.rangeOf("requests")
	var noted []string
	for i := range l.Levels {
		level := &l.Levels[i]
		given := true
		switch n, ok := byLevel[level.Name]; {
		case ok:
			level.Requests = n
		case fallback > 0:
			level.Requests = fallback
		default:
			level.Requests, given = max(plan.DefaultRequests(level.N), p.requests()), false
			if l.Seeded {
				level.Requests = max(level.Requests, level.N*len(l.Seeds))
			}
			b.d.unaskedFor(l, level)
			if len(noted) < 20 {
				noted = append(noted, level.Name+" = "+strconv.Itoa(level.Requests))
			}
		}
		if level.Requests < level.N {
			b.d.errorf(rng, sumFewRequests, "The level %s keeps %[2]d requests in flight, but it has only %[3]d requests. Set `requests` to at least %[2]d.", level.Name, level.N, level.Requests)
			level.Requests, given = level.N, false
		}
		level.Rounds = min(len(l.Seeds), level.Requests/level.N)
		if !l.Seeded {
			level.Rounds = min(level.Rounds, level.DefaultRounds(1))
		}
		if given && l.Seeded && level.Rounds < len(l.Seeds) {
			b.d.warnf(rng, sumFewRounds, "The level %s uses only %d of the %d seeds. Each seed is a round of at least %d requests, and the level has %d requests. To use all seeds, set %d requests.",
				level.Name, level.Rounds, len(l.Seeds), level.N, level.Requests, level.N*len(l.Seeds))
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

// unaskedFor records that the plan does not set the level's number of requests. It keeps the default
// number, which a comparison multiplies by its rounds.
func (d *decoder) unaskedFor(l *plan.Load, level *plan.Level) {
	if d.unasked[l] == nil {
		d.unasked[l] = map[string]int{}
	}
	d.unasked[l][level.Name] = level.Requests
}

// readRequestCounts reads the number of requests. It is one number for all levels, or an object
// that maps names of levels and "default" to numbers.
func readRequestCounts(b *body, l *plan.Load) (byLevel map[string]int, fallback int, ok bool) {
	v, ok := b.value("requests")
	if !ok {
		return nil, 0, b.unset("requests")
	}
	rng := b.rangeOf("requests")
	if !v.Type().IsObjectType() && !v.Type().IsMapType() {
		n, ok := b.asInteger(rng, "requests", v, 1, maxCount)
		return nil, int(n), ok
	}
	if b.isUnknown(rng, "requests", v) {
		return nil, 0, false
	}
	names, isLevel := []string{}, map[string]bool{}
	for _, level := range l.Levels {
		names = append(names, level.Name)
		isLevel[level.Name] = true
	}
	byLevel = map[string]int{}
	for it := v.ElementIterator(); it.Next(); {
		k, e := it.Element()
		key := k.AsString()
		if key != "default" && !isLevel[key] && len(names) > 0 {
			b.d.errorf(rng, sumUnknownLevel, "requests names %q, which is not a level of this block. It has %s.", key, choices(names))
			continue
		}
		if e.IsNull() {
			continue
		}
		n, ok := b.asInteger(rng, "requests."+key, e, 1, maxCount)
		if !ok {
			return nil, 0, false
		}
		if key == "default" {
			fallback = int(n)
		} else {
			byLevel[key] = int(n)
		}
	}
	return byLevel, fallback, true
}

func readWarmup(b *body) int {
	v, ok := b.value("warmup")
	if !ok || isAuto(v) {
		return plan.WarmupAuto
	}
	if v.Type() == cty.String {
		b.wrongType(b.rangeOf("warmup"), "warmup", `a number of requests or "auto"`, v)
		return plan.WarmupAuto
	}
	n, ok := b.asInteger(b.rangeOf("warmup"), "warmup", v, 0, maxCount)
	if !ok {
		return plan.WarmupAuto
	}
	return int(n)
}

func readStagger(b *body, kind metric.LoadKind) time.Duration {
	if kind == metric.Burst {
		if b.given("stagger") {
			b.d.errorf(b.attrs["stagger"].NameRange, sumConflict, "A burst starts all its requests at once. Remove stagger.")
		}
		return 0
	}
	v, ok := b.value("stagger")
	if !ok || isAuto(v) {
		return plan.StaggerAuto
	}
	dur, ok := b.asDuration(b.rangeOf("stagger"), "stagger", v, 0, time.Hour)
	if !ok {
		return plan.StaggerAuto
	}
	return dur
}
