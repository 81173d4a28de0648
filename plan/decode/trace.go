package decode

import (
	"math"
	"path/filepath"

	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

func readTrace(b *body, l *plan.Load, _ *preset) {
	l.Open = &plan.Open{Warmup: readOpenWarmup(b)}
	l.Open.MaxInFlight, _ = b.integer("max_in_flight")
	stretch := traffic.Stretch{Seed: l.Seeds[0], Truncate: b.boolean("truncate")}
	stretch.From, _ = b.duration("from")
	stretch.Spread, _ = b.duration("spread")
	to, ok := b.duration("to")
	if ok && to <= stretch.From {
		b.d.errorf(b.rangeOf("to"), sumOutOfRange, "to = %s is not after from = %s, so no request would be replayed. Raise to, or lower from.", plan.PlainDuration(to), plan.PlainDuration(stretch.From))
		return
	}
	stretch.To = to
	speedups := readSpeedups(b)
	var r *traffic.Replay
	b.d.opts.Bounded(func() {
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
	for _, level := range speedups {
		level.Name, level.Rate, level.Requests = plan.TraceName(level.Speedup), r.Rate()*level.Speedup, r.Due
		level.Part()
		l.Levels = append(l.Levels, level)
	}
}

func readSpeedups(b *body) []plan.Level {
	if !b.given("speedup") {
		b.note("speedup", "[1]", "")
		return []plan.Level{{Speedup: 1, Range: b.rangeOf("trace")}}
	}
	var l plan.Load
	addLevels(b, &l, "speedup", func(e item) (plan.Level, bool) {
		x, ok := e.speedup()
		return plan.Level{Speedup: x}, ok
	})
	return l.Levels
}

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
	case columns == nil && b.given("format"):
		format = b.oneOf("format")
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

func readColumns(b *body) (*traffic.Columns, bool) {
	if !b.given("columns") {
		return nil, true
	}
	before := len(b.d.diags)
	o := b.object("columns")
	if o == nil {
		return nil, false
	}
	c := &traffic.Columns{}
	o.bind(c)
	c.Pauses = c.Unit
	return c, len(b.d.diags) == before
}

func (b *body) replays() bool {
	all := b.loaded()
	for _, l := range b.children("load") {
		all = all && l.given("trace")
	}
	if c := b.child("capacity"); c != nil {
		all = all && c.given("over") && c.text("over") == "speedup"
	}
	return all
}

// missesTrace reports a search over speedup if no load block names a trace. Another check reports a
// trace that cannot be replayed.
func (b *body) missesTrace(search *body) {
	named := false
	for _, l := range b.children("load") {
		named = named || l.isSet("trace")
	}
	if !named {
		b.d.errorf(search.rng, sumMissing, `A search over speedup needs a trace to replay. Add load { trace = "requests.jsonl" }.`)
	}
}

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
	if !w.API.Chats() && r.HasMessages() {
		d.errorf(b.rangeOf("api"), sumTrace, `The trace %s contains chat messages, which api = %q cannot send. Write api = "chat".`, r.Path, w.API)
	}
	for _, s := range w.Servers {
		if limit, flag := contextLimit(s); limit > 0 {
			if long := w.TooLong(limit); long != "" {
				d.errorf(w.Range, sumContextLength, "server.%s (%s at %s): %s.", s.Address(), flag.Name, flag.Range, long)
			}
		}
	}
}
