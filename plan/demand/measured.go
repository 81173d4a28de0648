package demand

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// The demands in this file are about what the thresholds are measured on. Most have no direction:
// a threshold means something else if other requests are sent, so any change counts as weaker.
// This list is independent of the digests that recordings and histories hold.

func on(of, what, text string, rng hcl.Range) demand {
	if text == "" {
		text = "not set"
	}
	return demand{key: of + ": " + what, measured: true, exact: text, text: text, rng: rng}
}

func measuredOn(w *plan.Workload, add func(demand)) {
	name := w.Address()
	add(on(name, "api", string(w.API), w.Range))
	ends := "forced length"
	if w.Output.Natural {
		ends = "natural"
	}
	add(on(name, "how answers end", ends, w.Range))
	add(on(name, "jitter", number(w.Output.Jitter), w.Range))
	r := w.Request
	add(on(name, "request model", r.Model, w.Range))
	temperature := ""
	if r.Temperature != nil {
		temperature = number(*r.Temperature)
	}
	add(on(name, "request temperature", temperature, w.Range))
	add(on(name, "request stop", list(r.Stop), w.Range))
	add(on(name, "request fields", fields(r), w.Range))
	if set := w.Prompt.Dataset; set != nil {
		add(on(name, "content of the data set", fmt.Sprintf("%.16s", set.Hash), w.Prompt.Range))
	}
	p := w.Prompt
	add(on(name, "shared prefix and turns", fmt.Sprintf("%+v, warm %v, turns %+v", p.Shared, p.Warm, p.Turns), w.Range))
	add(on(name, "replies of conversations", string(p.Replies), w.Range))
	add(on(name, "system prompt", fmt.Sprintf("%+v", p.System), w.Range))
	add(on(name, "clients that leave", w.Cancel.String(), w.Range))
	add(on(name, "score", score(w), w.Range))
	var good []string
	for _, t := range w.Good {
		good = append(good, t.Metric.Name)
	}
	slices.Sort(good)
	add(on(name, "what makes a request good", strings.Join(good, ", "), w.Range))
}

func fields(r plan.Request) string {
	out := map[string]json.RawMessage{}
	for name, v := range r.Extra {
		v, _ = v.UnmarkDeep()
		raw, err := ctyjson.Marshal(v, v.Type())
		if err != nil {
			raw = json.RawMessage(`"not JSON"`)
		}
		out[name] = raw
	}
	if len(out) == 0 {
		return ""
	}
	raw, _ := json.Marshal(out) // cannot fail: every value is JSON
	return string(raw)
}

func score(w *plan.Workload) string {
	switch {
	case w.Score == nil:
		return ""
	case w.Score.Pattern != nil:
		return fmt.Sprintf("group %d of %s", w.Score.Group, w.Score.Pattern)
	}
	return w.Score.Match
}

func sent(at string, l *plan.Load, add func(demand)) {
	add(on(at, "pause", l.Pause.String(), l.Range))
	add(on(at, "stagger", auto(l.Stagger, plan.StaggerAuto), l.Range))
	add(on(at, "warmup", auto(time.Duration(l.Warmup), plan.WarmupAuto), l.Range))
	if l.Seeded {
		add(on(at, "seeds", fmt.Sprint(l.Seeds), l.Range))
	} else {
		add(on(at, "seeds", "", l.Range))
	}
	add(on(at, "think_time", l.Think.String(), l.Range))
	if p := l.People; p != nil {
		add(on(at, "ramp_up", p.RampUp.String(), l.Range))
		add(on(at, "warmup of users", auto(p.Warmup, plan.OpenWarmupAuto), l.Range))
	}
	if o := l.Open; o != nil {
		add(on(at, "arrivals", o.String(), l.Range))
		add(on(at, "warmup of arrivals", auto(o.Warmup, plan.OpenWarmupAuto), l.Range))
		add(on(at, "max_in_flight", fmt.Sprint(o.MaxInFlight), l.Range))
	}
}

func watched(s *plan.Server, add func(demand)) {
	t, name := s.Telemetry, s.Address()+": telemetry"
	add(demand{key: name, strength: certain(!t.Off), text: fmt.Sprintf("enabled %v", !t.Off), rng: s.Range})
	limit := func(what string, value *float64, usual float64) {
		most := usual
		if value != nil {
			most = *value
		}
		add(demand{key: name + ": require " + what, strength: -most, text: number(most), rng: t.Range})
	}
	limit("throttled", t.Require.Throttled, plan.MostThrottled)
	limit("clock_spread", t.Require.ClockSpread, math.Inf(1))
	var processes *float64
	if n := t.Require.ForeignProcesses; n != nil {
		f := float64(*n)
		processes = &f
	}
	limit("foreign_processes", processes, math.Inf(1))
}

// budget adds a time limit. A shorter one ends the measurement earlier; 0 means that there is none.
func budget(of string, d time.Duration, rng hcl.Range, add func(demand)) {
	strength, text := math.Inf(1), "none"
	if d > 0 {
		strength, text = d.Seconds(), plan.PlainDuration(d)
	}
	add(demand{key: of + ": budget", strength: strength, text: text, rng: rng})
}

func searched(at string, c *plan.Capacity, add func(demand)) {
	add(on(at, "capacity over", overs[c.Over], c.Range))
	if c.Load != nil {
		sent(at+" in the search", c.Load, add)
	}
	budget(at+": capacity", c.Budget, c.Range, add)
}

var overs = map[metric.LoadKind]string{
	metric.ClosedLoop: "concurrency", metric.Burst: "burst", metric.OpenLoop: "rate", metric.Users: "users", metric.Speedup: "speedup",
}

func auto(d, auto time.Duration) string {
	if d == auto {
		return "auto"
	}
	return fmt.Sprint(int64(d))
}

func list(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return fmt.Sprintf("%q", words)
}
