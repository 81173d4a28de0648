package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/tokgate/tokgate/metric"
)

// schema1 is the schema of documents that earlier versions wrote. This file is the one place that
// knows it: fromSchema1 rewrites such a document, and everything else sees only Schema.
//
// In that schema the document repeats, in types of its own, what a run and its verdicts say. Times
// are in seconds, and a missing number is null with a reason beside it.
const schema1 = "tokgate.results/1"

// object is an object in JSON. Its methods return the zero value for a missing field.
type object map[string]any

func (o object) text(key string) string { s, _ := o[key].(string); return s }

func (o object) object(key string) object { x, _ := o[key].(map[string]any); return x }

func (o object) list(key string) (out []object) {
	list, _ := o[key].([]any)
	for _, x := range list {
		if x, ok := x.(map[string]any); ok {
			out = append(out, x)
		}
	}
	return out
}

// number returns a number; ok is false for null and for what is no finite number.
func (o object) number(key string) (v float64, ok bool) {
	n, ok := o[key].(json.Number)
	if !ok {
		return 0, false
	}
	v, err := n.Float64()
	return v, err == nil
}

// ns returns a time in nanoseconds that the field has in seconds.
func (o object) ns(key string) int64 {
	v, _ := o.number(key)
	if math.Abs(v) > 1e9 { // decades; the document is damaged
		return 0
	}
	return int64(math.Round(v * 1e9))
}

// share returns a share, and -1 for null, which means unknown.
func (o object) share(key string) float64 {
	if v, ok := o.number(key); ok {
		return v
	}
	return -1
}

// with returns the fields of o that keys names.
func (o object) with(keys ...string) object {
	out := object{}
	for _, k := range keys {
		if v, ok := o[k]; ok && v != nil {
			out[k] = v
		}
	}
	return out
}

// fromSchema1 rewrites a document of schema1 in the present schema.
func fromSchema1(src []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	var d object
	if err := dec.Decode(&d); err != nil {
		return nil, err
	}
	if d == nil || d.object("plan") == nil {
		return nil, errors.New("it has no plan")
	}
	out := d.with("host", "folder", "recording", "partial", "outcome", "why", "exit_code", "cases", "strength", "timelines", "passages")
	out["schema"], out["run"] = Schema, d.run1()
	plan, servers := d.object("plan"), []object{}
	for _, s := range d.list("servers") {
		servers = append(servers, s.with("address", "title", "description", "electricity_only"))
	}
	plan["servers"] = servers
	out["plan"] = plan
	for _, c := range d.list("cases") {
		c["digest"] = c.text("asked")
	}
	for _, w := range d.list("workloads") {
		for _, b := range w.list("bounds") {
			b.object("threshold").metric1()
		}
	}
	out["workloads"] = d["workloads"]
	for _, v := range d.list("verdicts") {
		v.verdict1()
	}
	out["verdicts"] = d["verdicts"]
	answers, _ := d["answers"].([]any)
	for _, c := range d.list("comparisons") {
		for _, x := range c.list("changes") {
			x["of_capacity"] = x.text("metric") == "capacity"
			x.metric1()
		}
		for _, a := range c.list("answers") {
			a["comparison"] = c.text("name")
			answers = append(answers, a)
		}
	}
	out["comparisons"], out["answers"] = d["comparisons"], answers
	return json.Marshal(out)
}

// metric1 replaces the name of a metric, with the unit beside it, by its definition.
func (o object) metric1() {
	name := o.text("metric")
	def, known := metric.Lookup(name)
	stat, _ := metric.ParseStat(o.text("stat"))
	if unit := metric.Unit(o.text("unit")); !known || !stat.IsShare() {
		def.Name, def.Unit = name, unit
	}
	o["metric"] = def
}

func (v object) verdict1() {
	if v["value"] == nil && v.text("why") != "" {
		v["value"] = v.with("why")
	}
	if t := v.object("threshold"); t != nil {
		t.metric1()
		t["at_capacity"] = strings.HasSuffix(v.text("name"), " at capacity")
	}
	cautions, _ := v["cautions"].([]any)
	notes, _ := v["notes"].([]any)
	list := []object{}
	for i, text := range notes {
		note := object{"text": text}
		for _, c := range cautions {
			if c == text {
				note["kind"] = "caution"
			}
		}
		if quoted, _ := v["quoted"].(bool); quoted && i == 0 {
			note["kind"] = "quote"
		}
		list = append(list, note)
	}
	v["notes"] = list
}

func (d object) run1() object {
	run := d.with("tool", "started", "simulated", "stopped")
	run["id"], run["end_ns"] = d.text("run"), d.ns("duration_s")
	run["plan"], run["plan_hash"] = d.object("plan").text("path"), d.object("plan").text("hash")
	run["salt"] = json.Number(cmp.Or(d.text("salt"), "0"))
	if c := d.object("calibration"); c != nil {
		rate, _ := c.number("chunks_per_s")
		run["calibration"] = object{"streams": c["streams"], "rate": rate, "delay50_ns": c.ns("delay_p50_s"), "delay99_ns": c.ns("delay_p99_s"),
			"cpu": c.share("cpu"), "took_ns": c.ns("duration_s")}
	}
	servers, levels, capacities := []object{}, []object{}, []object{}
	for _, s := range d.list("servers") {
		servers = append(servers, s.server1())
	}
	for _, c := range d.list("cases") {
		levels = append(levels, c.level1())
	}
	for _, c := range d.list("capacities") {
		capacities = append(capacities, c.capacity1())
	}
	run["servers"], run["levels"], run["capacities"] = servers, levels, capacities
	return run
}

func (s object) server1() object {
	out, facts, starts := s.with("address", "path", "error", "log"), object{}, []object{}
	for _, p := range s.list("fingerprint") {
		facts[p.text("key")] = p["value"]
	}
	list, _ := s["starts_s"].([]any)
	for _, took := range list {
		starts = append(starts, object{"at_ns": 0, "ready_ns": object{"s": took}.ns("s")})
	}
	out["fingerprint"], out["starts"] = facts, starts
	out["declared"] = object{"command": s.text("program"), "model": s.text("model")}
	return out
}

func (c object) level1() object {
	out := c.with("server", "workload", "of", "share", "kind", "n", "rate", "speedup", "cut", "natural", "exact", "probe", "skipped", "shed", "looks", "notes")
	out["name"] = c.text("level")
	if top, ok := c.number("largest_rate"); ok {
		out["saturation_req_s"] = []float64{top}
	}
	var from, to float64
	if n, _ := fmt.Sscanf(c.text("stage"), "%g req/s to %g req/s", &from, &to); n == 1 {
		out["stage"] = metric.Stage{From: from, To: from}
	} else if n == 2 {
		out["stage"] = metric.Stage{From: from, To: to}
	}
	begin, end := int64(math.MaxInt64), int64(0)
	for _, key := range []string{"rounds", "voided"} {
		rounds := []object{}
		for _, r := range c.list(key) {
			x := r.round1()
			rounds = append(rounds, x)
			begin, end = min(begin, x["start_ns"].(int64)), max(end, x["end_ns"].(int64))
		}
		out[key] = rounds
	}
	// A case that took turns with another server is as long as its own rounds.
	if rounds := out["rounds"].([]object); len(rounds) > 1 && end-begin > c.ns("duration_s")+1e6 {
		rounds[0]["leg"] = object{}
	}
	return out
}

func (r object) round1() object {
	out, start := r.with("index", "seed", "due", "complete", "stopped", "void"), r.ns("at_s")
	out["start_ns"], out["end_ns"] = start, start+r.ns("duration_s")
	out["window_start_ns"], out["window_end_ns"] = start, start+r.ns("window_s")
	out["busy"] = r.share("busy")
	out["health"] = object{"cpu": r.share("cpu"), "gc_pause_ns": r.ns("gc_pause_s"), "delay_ns": r.ns("delay_s"), "stall_ns": r.ns("stall_s")}
	return out
}

func (c object) capacity1() object {
	out := c.with("server", "workload", "over", "step", "from", "up_to", "require", "kind", "pass", "fail", "crossing", "crossing_low",
		"crossing_high", "binding", "at_pass", "at_fail", "confirmed", "reason", "notes", "line")
	if _, finite := c.number("crossing_high"); !finite {
		delete(out, "crossing_high")
	}
	pairs, probes := [][2]any{}, []object{}
	for _, x := range c.list("non_monotone") {
		pairs = append(pairs, [2]any{x["fails"], x["passes"]})
	}
	for _, p := range c.list("probes") {
		x, values := p.with("n", "purpose", "set", "level", "requests", "outcome", "binding", "shown", "note"), []object{}
		for _, r := range p.list("readings") {
			v := r.with("outcome", "value", "low", "high")
			v["threshold"] = strings.TrimSpace(r.text("metric") + " " + r.text("stat"))
			values = append(values, v)
		}
		x["spent_ns"], x["values"] = p.ns("spent_s"), values
		probes = append(probes, x)
	}
	out["non_monotone"], out["probes"], out["spent_ns"] = pairs, probes, c.ns("spent_s")
	return out
}
