// Package demand lists what a plan requires, and where another version of the plan requires less. A
// reviewer can then see that a change weakens a gate.
package demand

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// demand is one requirement of a plan. Two plans have the same requirement if their demands have
// the same key. The limits may differ.
type demand struct {
	key      string
	warns    bool     // whether a failure of this demand only warns
	strength float64  // larger is stricter
	exact    string   // text that must not change
	measured bool     // it is about what is measured, not about a limit
	stated   bool     // another demand says it too, so a change of this one is no news
	allows   []string // differences that the demand allows
	text     string   // the demand as the author wrote it
	rng      hcl.Range
}

// weaker reports whether a requirement is weaker now ("is") than it was before ("was").
func weaker(is, was demand) bool {
	return is.warns && !was.warns || is.strength < was.strength || is.exact != was.exact ||
		slices.ContainsFunc(is.allows, func(a string) bool { return !slices.Contains(was.allows, a) })
}

// Weakening is a requirement of the base plan that the head plan weakens or drops.
type Weakening struct {
	Key   string    // such as "chat on vllm at 8: ttft p95"
	What  string    // the change, such as "chat on vllm at 8: ttft p95 < 2s is now p95 < 4s"
	Range hcl.Range // place in the head plan; if dropped there, place in the base plan
}

// Weakened lists the requirements of the base plan that the head plan drops or weakens. They are in
// the order of the base plan. For a requirement that cannot be compared, such as the condition of
// an assert, any change counts as weaker. If head is nil, the plan is gone, and all its demands are.
func Weakened(base, head *plan.Plan) []Weakening {
	now := map[string][]demand{}
	for _, d := range demandsOf(head) {
		now[d.key] = append(now[d.key], d)
	}
	var out []Weakening
	for _, was := range demandsOf(base) {
		if was.stated {
			continue
		}
		there := now[was.key]
		if slices.ContainsFunc(there, func(is demand) bool { return !weaker(is, was) }) {
			continue
		}
		w := Weakening{was.key, fmt.Sprintf("%s: %s is gone", was.key, was.text), was.rng}
		if len(there) > 0 {
			is := there[0]
			w = Weakening{was.key, fmt.Sprintf("%s: %s is now %s", was.key, was.text, is.text), is.rng}
			if is.measured {
				w.What = fmt.Sprintf("%s: measured on something else: %s is now %s", was.key, was.text, is.text)
			}
			if is.warns && !was.warns {
				w.What += ", which only warns"
			}
		}
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	if head != nil {
		out = append(out, longer(base, head)...)
	}
	return out
}

func demandsOf(p *plan.Plan) []demand {
	if p == nil {
		return nil
	}
	var out []demand
	add := func(d demand) { out = append(out, d) }
	required(p, add)
	policy("gate", p.Gate.Policy, p.Gate.Range, add)
	for _, m := range p.Gate.MustDetect { // a smaller factor is a stricter demand
		add(demand{key: "gate: must_detect " + m.Kind, strength: -m.Factor, text: number(m.Factor), rng: m.Range})
	}
	budget("gate", p.Gate.Budget, p.Gate.Range, add)
	for _, s := range p.Servers {
		watched(s, add)
		for _, key := range slices.Sorted(maps.Keys(s.Expect)) {
			add(demand{key: s.Address() + ": expect " + key, exact: s.Expect[key], text: s.Expect[key], rng: s.Range})
		}
	}
	for _, w := range p.Workloads {
		workload(p, w, add)
	}
	for _, a := range p.Asserts {
		rng := a.Condition.Range()
		text := source(p, rng)
		add(demand{key: "assert." + a.Name, exact: text, text: strconv.Quote(text), rng: rng})
	}
	for _, c := range p.Compares {
		comparison(p, c, add)
	}
	if h := p.History; h != nil {
		add(demand{key: "history: ignore", warns: h.Severity == plan.SeverityWarn, strength: -h.Ignore, text: number(h.Ignore), rng: h.Range})
	}
	return out
}

func required(p *plan.Plan, add func(demand)) {
	if !p.Gate.MeasureOnly {
		add(demand{key: "gate: measure_only", text: "false", rng: p.Gate.Range})
	}
}

func policy(of string, p plan.Policy, rng hcl.Range, add func(demand)) {
	add(demand{key: of + ": confidence", strength: p.Confidence, text: number(p.Confidence), rng: rng})
	strict := slices.Index([]plan.Clusters{plan.ClustersNone, plan.ClustersWave, plan.ClustersRound}, p.Clusters)
	add(demand{key: of + ": clusters", strength: float64(strict), text: string(p.Clusters), rng: rng})
	add(demand{key: of + ": decide", strength: certain(p.Decide == plan.Certified), text: string(p.Decide), rng: rng})
	add(demand{key: of + ": on_inconclusive", strength: certain(p.OnInconclusive != plan.Warn), text: string(p.OnInconclusive), rng: rng})
}

func workload(p *plan.Plan, w *plan.Workload, add func(demand)) {
	name := w.Address()
	policy(name, w.Policy, w.Range, add)
	if w.Output.Natural && w.Answers.Repeating != plan.RepeatingAllowed {
		add(demand{key: name + ": answers that do not repeat themselves", text: "checked", rng: w.Range})
	}
	if root := w.Root(); root != w {
		share := strconv.Itoa(w.Own(traffic.Whole))
		add(demand{key: name + ": share in millionths", exact: share, text: share, rng: root.Range})
	}
	add(demand{key: name + ": input_tokens", exact: strconv.Itoa(w.Input), text: strconv.Itoa(w.Input), rng: w.Range})
	add(demand{key: name + ": prompts", exact: w.Prompt.String(), text: w.Prompt.String(), rng: w.Range})
	add(demand{key: name + ": output_tokens", exact: strconv.Itoa(w.Output.Mean), text: strconv.Itoa(w.Output.Mean), rng: w.Range})
	measuredOn(w, add)
	for _, s := range w.Servers {
		on := name + " on " + s.Address()
		kinds := map[metric.LoadKind]int{}
		for _, l := range w.Loads {
			if kinds[l.Kind]++; kinds[l.Kind] > 1 {
				sent(fmt.Sprintf("%s: load %s %d", on, overs[l.Kind], kinds[l.Kind]), l, add)
			} else {
				sent(on+": load "+overs[l.Kind], l, add)
			}
			for _, level := range l.Levels {
				at := on + " at " + level.Name
				add(demand{key: at + ": requests", strength: float64(level.Requests), text: strconv.Itoa(level.Requests), rng: level.Range})
				if level.Duration > 0 {
					add(demand{key: at + ": duration", strength: level.Duration.Seconds(), text: level.Duration.String(), rng: level.Range})
				}
				add(demand{key: at + ": timeout", strength: -l.Timeout.Seconds(), text: l.Timeout.String(), rng: l.Range})
				failed(at, w, func(sla *plan.SLA) bool { return slices.Contains(sla.At, level.Name) }, add)
				if r := p.Residual(s, w, level); r != nil {
					add(demand{key: at + ": residue", warns: !r.MustHold(), strength: -r.Settle.Seconds(), text: r.String(), rng: r.Range})
					add(demand{key: at + ": residue burst", warns: !r.MustHold(), strength: certain(r.Burst), text: r.String(), rng: r.Range})
				}
			}
		}
		for _, sla := range w.SLAs {
			levels := slices.Clone(sla.At)
			if sla.AtCapacity {
				levels = append(levels, "capacity")
			}
			for _, level := range levels {
				for _, t := range sla.Thresholds {
					threshold(on+" at "+level, p.Accepted(w, level, t), sla.Severity, add)
				}
			}
		}
		for _, t := range w.Good {
			threshold(on+": good", t, plan.SeverityError, add)
		}
		if c := w.Capacity; c != nil {
			add(demand{key: on + ": capacity", strength: float64(c.Require), text: "require " + c.Amount(c.Require), rng: c.Range})
			searched(on, c, add)
			failed(on+" at capacity", w, func(sla *plan.SLA) bool { return sla.AtCapacity }, add)
			add(demand{key: on + ": capacity up_to", strength: float64(c.UpTo), text: c.Amount(c.UpTo), rng: c.Range})
		}
	}
}

func threshold(at string, t *plan.Threshold, severity plan.Severity, add func(demand)) {
	d := demand{key: at + ": " + fmt.Sprintf("%s %v", t.Metric.Name, t.Stat), warns: severity == plan.SeverityWarn, text: t.Text, rng: t.Range}
	switch t.Op {
	case plan.Less, plan.LessEqual:
		d.strength = -t.Limit
	case plan.Greater, plan.GreaterEqual:
		d.strength = t.Limit
	default: // otherwise every request must succeed
		d.strength = math.Inf(1)
	}
	add(d.by(t.Accept))
}

// failed adds the demand on failed requests at a level: the share of them that its thresholds
// allow. Most thresholds imply one, so a threshold on success that is added can weaken the plan.
func failed(at string, w *plan.Workload, binds func(*plan.SLA) bool, add func(demand)) {
	d := demand{key: at + ": failed requests"}
	allow := func(share float64, t *plan.Threshold) {
		if d.text == "" || -share > d.strength {
			d.strength, d.rng, d.text = -share, t.Range, "none"
			if share > 0 {
				d.text = "at most " + metric.Format(metric.Ratio, share)
			}
		}
	}
	for _, sla := range w.SLAs {
		if sla.Severity == plan.SeverityWarn || !binds(sla) {
			continue
		}
		for _, t := range sla.Thresholds {
			switch {
			case t.Metric.Name == "success":
				if !d.stated {
					d.text, d.stated = "", true
				}
				if t.Op == "" { // every request must succeed
					allow(0, t)
				} else {
					allow(1-t.Limit, t)
				}
			case d.stated || t.BoundsFailures():
			case t.IgnoresFailures():
				allow(0, t)
			default:
				allow(plan.MostFailed, t)
			}
		}
	}
	if d.text != "" {
		add(d)
	}
}

func comparison(p *plan.Plan, c *plan.Compare, add func(demand)) {
	name := "compare." + c.Name
	policy(name, c.Policy, c.Range, add)
	add(demand{key: name + ": rounds", strength: float64(c.Rounds), text: strconv.Itoa(c.Rounds), rng: c.Range})
	control := c.Control.Baseline + c.Control.BaselineServer
	if c.Control.Server != nil {
		control = c.Control.Server.Address()
	}
	if !c.Control.Base { // the control may change if it is the server of the base branch
		add(demand{key: name + ": control", exact: control, text: control, rng: c.Control.Range})
	}
	add(demand{key: name + ": changed", allows: append([]string{}, c.Changed...), text: fmt.Sprint(c.Changed), rng: c.Range})
	if a := c.Answers; a != nil {
		add(demand{key: name + ": answers", strength: float64(a.Prompts), text: strconv.Itoa(a.Prompts) + " prompts", rng: a.Range})
		add(demand{key: name + ": max_tokens of answers", strength: float64(a.MaxTokens), text: strconv.Itoa(a.MaxTokens), rng: a.Range})
	}
	for _, claim := range c.Claims {
		for _, w := range claim.Workloads {
			for _, level := range append(slices.Clone(claim.At), "") {
				for _, ch := range claim.Changes {
					change(name+": "+w.Address()+" at "+cmp.Or(level, "all"), claim, p.AcceptedChange(c, w, level, ch), add)
				}
			}
		}
	}
}

func change(at string, claim *plan.Claim, ch *plan.ChangeBound, add func(demand)) {
	kind, strength := "tolerate", -math.Abs(ch.Limit)
	if claim.Improve {
		kind, strength = "improve", math.Abs(ch.Limit)
	}
	d := demand{key: fmt.Sprintf("%s: %s %s %s", at, kind, ch.Metric.Name, ch.Stat),
		warns: claim.Severity == plan.SeverityWarn, strength: strength, exact: strconv.FormatBool(ch.Points), text: ch.Text, rng: ch.Range}
	add(d.by(ch.Accept))
}

// by says which accept block sets the demand, if one does.
func (d demand) by(a *plan.Accept) demand {
	if a != nil {
		d.text, d.rng = fmt.Sprintf("%s until %s (accept.%s)", d.text, a.Until.Format(time.DateOnly), a.Name), a.Range
	}
	return d
}

// longer lists what accept blocks add that no other demand shows: bounds on nights, and later ends.
func longer(base, head *plan.Plan) (out []Weakening) {
	for _, a := range head.Accepts {
		if base.Accepting(&a.Accept) {
			continue
		}
		ended := a.Accept
		ended.Until = time.Time{}
		key := strings.TrimSpace("history: " + a.Metric + " " + a.Stat)
		if a.Of != metric.AcceptNights {
			if key = "accept." + a.Name + ": until"; !base.Accepting(&ended) {
				continue
			}
		}
		out = append(out, Weakening{key, fmt.Sprintf("%s: accept.%s accepts %s until %s", key, a.Name, a.Text, a.Until.Format(time.DateOnly)), a.Range})
	}
	return out
}

func certain(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func source(p *plan.Plan, rng hcl.Range) string {
	f := p.Files[rng.Filename]
	if f == nil || rng.Start.Byte < 0 || rng.End.Byte > len(f.Bytes) || rng.Start.Byte > rng.End.Byte {
		return ""
	}
	return string(f.Bytes[rng.Start.Byte:rng.End.Byte])
}
