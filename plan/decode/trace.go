package decode

import (
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// ofTraces lists the attributes of a load block that are allowed only for a trace.
var ofTraces = []string{"format", "columns", "from", "to", "speedup", "spread", "truncate"}

// notOfTraces lists the attributes of a load block that do not apply to a trace.
var notOfTraces = map[string]string{
	"duration":   "The recording sets how long a trace lasts. Remove duration. To replay only a part of the trace, set from and to.",
	"requests":   "The recording sets the requests of a trace. Remove requests. To replay only a part of the trace, set from and to.",
	"bursts":     "`bursts` applies only to a load with `burst`. Remove it: a trace is replayed once.",
	"stagger":    "The recording sets when each request of a trace is sent. Remove stagger.",
	"pause":      "The recording sets when each request of a trace is sent. Remove pause.",
	"arrivals":   "The recording sets when each request of a trace is sent. Remove arrivals.",
	"burstiness": "The recording sets when each request of a trace is sent. Remove burstiness.",
	"think_time": "The recording sets how long people think between the requests of a trace. Remove think_time.",
}

const (
	mostSpeedup  = 1000
	leastSpeedup = 0.01
)

// refuseTrace refuses attributes that only a trace may have, in a load block without a trace.
func refuseTrace(b *body) {
	for _, name := range ofTraces {
		if b.given(name) {
			b.d.errorf(b.attrs[name].NameRange, sumConflict, `%s applies only to recorded traffic. Remove it, or write trace = "requests.jsonl".`, name)
		}
	}
}

// readTrace reads a load that replays a trace.
func readTrace(b *body, l *plan.Load) {
	for _, name := range sortedNames(notOfTraces) {
		if b.given(name) {
			b.d.errorf(b.attrs[name].NameRange, sumConflict, "%s", notOfTraces[name])
		}
	}
	l.Open = &plan.Open{Warmup: readOpenWarmup(b)}
	if n, ok := b.integer("max_in_flight", 1, maxLevel); ok {
		l.Open.MaxInFlight = int(n)
	}
	b.bind(l)
	stretch := traffic.Stretch{Seed: l.Seeds[0], Truncate: b.boolean("truncate")}
	stretch.From, _ = b.duration("from", 0, time.Duration(maxTrace))
	stretch.Spread, _ = b.duration("spread", 0, time.Hour)
	to, ok := b.duration("to", 0, time.Duration(maxTrace))
	if ok && to <= stretch.From {
		b.d.errorf(b.rangeOf("to"), sumOutOfRange, "to = %s is not after from = %s, so no request would be replayed. Raise to, or lower from.", plan.PlainDuration(to), plan.PlainDuration(stretch.From))
		return
	}
	stretch.To = to
	speedups := readSpeedups(b)
	var r *traffic.Replay
	b.d.opts.Reading(func() {
		t := b.d.trace(b)
		if t == nil {
			return
		}
		var err error
		if r, err = t.Replay(stretch); err != nil {
			b.d.errorf(b.rangeOf("trace"), sumTrace, "%s cannot be replayed: %v.", b.text("trace"), err)
		}
	})
	if r == nil {
		return
	}
	if r.Due > maxCount {
		b.d.errorf(b.rangeOf("trace"), sumOutOfRange, "The replay has %d requests, but at most %d are allowed. Replay only a part of the trace: set from and to.", r.Due, maxCount)
		return
	}
	l.Open.Trace = r
	for _, s := range speedups {
		level := plan.Level{Name: plan.TraceName(s.value), Rate: r.Rate() * s.value, Requests: r.Due, Speedup: s.value, Range: s.rng}
		level.Part()
		l.Levels = append(l.Levels, level)
	}
}

// speedup is one level of a replay of a trace: how many times faster than recorded the requests are
// sent.
type speedup struct {
	value float64
	rng   hcl.Range
}

func readSpeedups(b *body) []speedup {
	if !b.given("speedup") {
		b.note("speedup", "[1]", "")
		return []speedup{{1, b.rangeOf("trace")}}
	}
	var out []speedup
	elements := b.list("speedup")
	if len(elements) == 0 {
		b.d.errorf(b.rangeOf("speedup"), sumLoadShape, "speedup is an empty list. Write at least one level, such as speedup = [1, 2].")
	}
	for _, e := range elements {
		if x, ok := b.asSpeedup(e.rng, "speedup", e.value); ok {
			if b.d.levels++; b.d.levels > maxLevels {
				b.d.errorf(b.rng, sumTooManyInstances, "A plan has at most %d levels.", maxLevels)
				return out
			}
			out = append(out, speedup{x, e.rng})
		}
	}
	return out
}

func (b *body) asSpeedup(rng hcl.Range, name string, v cty.Value) (float64, bool) {
	if b.isUnknown(rng, name, v) {
		return 0, false
	}
	if v.IsNull() || v.Type() != cty.Number {
		b.wrongType(rng, name, "a number", v)
		return 0, false
	}
	x, _ := v.AsBigFloat().Float64()
	if !(x >= leastSpeedup && x <= mostSpeedup) {
		b.d.errorf(rng, sumOutOfRange, "%s must be from %v to %d.", name, leastSpeedup, mostSpeedup)
		return 0, false
	}
	return math.Round(x/plan.SpeedupStep) * plan.SpeedupStep, true
}

// trace reads a trace, or returns it from the cache.
func (d *decoder) trace(b *body) *traffic.Trace {
	path := b.pathOf("trace")
	if path == "" || path == unknownText {
		return nil
	}
	format := ""
	columns, ok := readColumns(b)
	switch {
	case !ok:
		return nil
	case columns != nil && b.given("format"):
		d.errorf(b.attrs["format"].NameRange, sumConflict, "columns already describes the format of the trace. Remove format.")
		return nil
	case columns == nil && b.given("format"):
		format = b.oneOf("format", formatNames()...)
	}
	key := traceKey{path, format, traffic.Columns{}}
	if columns != nil {
		key.columns = *columns
	}
	if t, ok := d.traces[key]; ok {
		return t
	}
	var t *traffic.Trace
	f, err := b.file("trace")
	if err == nil {
		t, err = traffic.ReadTraceFile(f, path, format, columns)
		f.Close()
	}
	if err != nil {
		d.errorf(b.rangeOf("trace"), sumTrace, "The trace cannot be replayed: %v.", err)
	} else {
		d.hash.add("trace", filepath.Base(path), []byte(t.Hash))
	}
	d.traces[key] = t
	return t
}

// readColumns reads the names of a trace's columns. It returns nil if the trace's format defines
// the names.
func readColumns(b *body) (*traffic.Columns, bool) {
	const attr = "columns"
	if !b.given(attr) {
		return nil, true
	}
	v, ok := b.value(attr)
	rng := b.rangeOf(attr)
	switch {
	case !ok || b.isUnknown(rng, attr, v):
		return nil, false
	case !v.Type().IsObjectType() && !v.Type().IsMapType():
		b.wrongType(rng, attr, `an object: { time = "ts", input = "prompt_tokens", output = "completion_tokens" }`, v)
		return nil, false
	}
	c := &traffic.Columns{}
	names := c.Named()
	set := settings(b, attr, v, append(sortedNames(names), "block", "unit"))
	for _, name := range sortedNames(names) {
		if e, given := set[name]; given {
			if *names[name], ok = b.asText(rng, attr+"."+name, e); !ok {
				return nil, false
			}
		}
	}
	for _, name := range []string{"time", "input", "output"} {
		if *names[name] == "" {
			b.d.errorf(rng, sumMissing, "columns has no %[1]s. Add the name of the column that contains it, such as %[1]s = \"NAME\".", name)
			return nil, false
		}
	}
	if e, given := set["unit"]; given {
		if c.Unit, ok = b.asDuration(rng, attr+".unit", e, time.Nanosecond, time.Hour); !ok {
			return nil, false
		}
		c.Pauses = c.Unit
	}
	if e, given := set["block"]; given {
		n, ok := b.asInteger(rng, attr+".block", e, 1, maxTokens)
		if !ok {
			return nil, false
		}
		c.Block = int(n)
	}
	if (c.Hashes != "") != (c.Block > 0) {
		b.d.errorf(rng, sumMissing, "hash_ids and block need each other. Set block to the number of tokens that one id stands for.")
		return nil, false
	}
	return c, true
}

func sortedNames[T any](m map[string]T) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// replays reports whether all loads of the workload replay a trace.
func (b *body) replays() bool {
	all := b.loaded()
	b.each("load", func(l *body) { all = all && l.given("trace") })
	if c := b.child("capacity"); c != nil {
		all = all && c.given("over") && c.text("over") == "speedup"
	}
	return all
}

// missesTrace reports a search over speedup if no load block names a trace. Another check reports a
// trace that cannot be replayed.
func (b *body) missesTrace(search *body) {
	named := false
	b.each("load", func(l *body) { named = named || l.isSet("trace") })
	if !named {
		b.d.errorf(search.rng, sumMissing, `A search over speedup needs a trace to replay. Add load { trace = "requests.jsonl" }.`)
	}
}

// checkTrace checks a workload that replays a trace, and takes the lengths of prompts and answers
// from the trace.
func (d *decoder) checkTrace(b *body, w *plan.Workload) {
	r := w.Replays()
	if r == nil {
		return
	}
	if b.replays() {
		for _, name := range []string{"input_tokens", "output_tokens"} {
			if b.given(name) {
				d.errorf(b.attrs[name].NameRange, sumConflict, "The trace sets the lengths of prompts and answers. Remove %s.", name)
			}
		}
		_, output := r.Means()
		w.Output.Mean = max(int(math.Round(output)), 1)
	}
	if w.Output.Natural {
		d.errorf(b.rangeOf("output_tokens"), sumConflict, "The trace sets the lengths of answers. For natural answers use a workload without a trace.")
	}
	if p := w.Prompt; p.Range != (hcl.Range{}) {
		d.errorf(p.Range, sumConflict, "The trace sets the prompts. Remove the prompt block, or move it to another workload.")
	}
	if w.API == plan.Completions && r.HasMessages() {
		d.errorf(b.rangeOf("api"), sumTrace, `The trace %s contains chat messages, which api = "completions" cannot send. Write api = "chat".`, r.Path)
	}
	for _, s := range w.Servers {
		if limit, flag := contextLimit(s); limit > 0 {
			if long := w.TooLong(limit); long != "" {
				d.errorf(w.Range, sumContextLength, "server.%s (%s at %s): %s.", s.Address(), flag.Name, flag.Range, long)
			}
		}
	}
}
