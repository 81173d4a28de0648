package decode

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/suggest"
	"github.com/tokgate/tokgate/traffic"
)

// The plan gives each a share, as in { chat = "70%", long = "30%" }. Over a trace, it gives each
// the type of its rows, as in { chat = "/v1/chat" }.
func (d *decoder) readMix(b *body, w *plan.Workload) {
	m := &mixture{Workload: w, block: b.rng, rng: b.rangeOf("mix")}
	d.mixes = append(d.mixes, m)
	w.API = "" // only the workloads in the mix have an API
	d.out.Defaults = slices.DeleteFunc(d.out.Defaults, func(x plan.Default) bool { return x.Path == b.path+".api" })
	x, ok := b.item("mix")
	if !ok || x.unknown() {
		return
	}
	if !x.isObject() {
		x.wrongType(`an object: { chat = "70%", long = "30%" }`)
		return
	}
	for it := x.value.ElementIterator(); it.Next(); {
		k, e := it.Element()
		part, ok := m.readPart(b, k.AsString(), e)
		if !ok {
			return
		}
		m.parts = append(m.parts, part)
	}
	m.checkParts(d)
}

func (m *mixture) readPart(b *body, name string, v cty.Value) (part portion, ok bool) {
	if v.Type() == cty.String && !v.IsNull() && isType(v.AsString()) {
		return portion{name: name, rows: v.AsString()}, true
	}
	x := b.itemOf("mix", v, m.rng)
	x.name += "." + name
	share, ok := x.share()
	part = portion{name: name, share: min(max(int(math.Round(share*traffic.Whole)), 1), traffic.Whole-1)}
	return part, ok
}

func isType(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return s != "" && err != nil && !strings.HasSuffix(s, "%")
}

// A workload without a load runs only as part of a mix.
func (d *decoder) decodeMixes() {
	mixesOf := map[*plan.Workload][]*plan.Workload{}
	for _, m := range d.mixes {
		for _, part := range m.parts {
			base := d.partNamed(m, part)
			if base == nil {
				continue
			}
			if mixesOf[base] = append(mixesOf[base], m.Workload); !d.canBePart(m, base) {
				continue
			}
			own := m.Part(base, part.share)
			d.checkCancel(own, m.rng)
			own.Type = part.rows
			if m.Replays() != nil {
				m.recorded(own)
			} else if rng, ok := d.lengthless[base]; ok && !m.byType() && !slices.ContainsFunc(m.Loads, m.unread) {
				d.needs(base, rng, "input_tokens", "output_tokens")
			}
			for _, sla := range base.SLAs {
				d.inMix(m, own, sla)
			}
			m.Mix = append(m.Mix, own)
		}
		d.checkLoads(m)
	}
	if !d.diags.HasErrors() {
		for _, m := range d.mixes {
			d.shareOut(m)
		}
	}
	var all []*plan.Workload
	for _, w := range d.out.Workloads {
		switch mixes := mixesOf[w]; {
		case !d.isLoadless(w):
			all = append(all, w.Whole()...)
		case len(mixes) == 0:
			if rng, ok := d.lengthless[w]; ok {
				d.needs(w, rng, "input_tokens", "output_tokens")
			}
			d.errorf(d.loadless[w], sumNoLoad, "workload.%s has no load. Add a block load { concurrency = [1, 8] }, or a capacity block.", w.Address())
		default:
			d.checkMixedAt(w, mixes)
		}
	}
	d.out.Workloads = all
}

func (d *decoder) partNamed(m *mixture, part portion) *plan.Workload {
	var names []string
	for _, w := range d.out.Workloads {
		if w.Address() == part.name {
			return w
		}
		if !d.isMix(w) {
			names = append(names, w.Address())
		}
	}
	hint := suggest.DidYouMean(part.name, names)
	if hint == "" && len(names) > 0 {
		hint = " There is " + choices(names) + "."
	}
	d.errorf(m.rng, sumUndeclared, "workload.%s names the part %q, but the plan has no such workload.%s", m.Address(), part.name, hint)
	return nil
}

func (d *decoder) canBePart(m *mixture, w *plan.Workload) bool {
	rng := m.rng
	switch {
	case w == m.Workload:
		d.errorf(rng, sumConflict, "workload.%s cannot be a part of itself.", m.Address())
	case d.isMix(w):
		d.errorf(rng, sumConflict, "workload.%s is a mix, and a mix cannot contain another mix. In workload.%s, name the parts of that mix instead, each with its share.", w.Address(), m.Address())
	case w.API.Embeds():
		d.errorf(rng, sumConflict, "The parts of workload.%s share what a mix measures of answers, but workload.%s asks for embeddings. Give it a load of its own.", m.Address(), w.Address())
	case w.Prompt.Turns.Several():
		d.errorf(w.Prompt.Range, sumConflict, "A mix sends single requests, but its part workload.%s has conversations. Remove turns from it, or remove the part from the mix.", w.Address())
	default:
		return true
	}
	return false
}

func (d *decoder) isMix(w *plan.Workload) bool {
	return slices.ContainsFunc(d.mixes, func(m *mixture) bool { return m.Workload == w })
}

// If the block names levels, the copy applies to these levels of the mix. Otherwise it applies to
// all levels of the mix except stages.
func (d *decoder) inMix(m *mixture, part *plan.Workload, sla *plan.SLA) {
	own, levels := *sla, levelsOf(m.Workload)
	names, given := d.at[sla]
	own.At, own.AtCapacity = levels.alone, m.Capacity != nil && !given
	if given {
		own.At = nil
		for _, n := range names {
			if levels.have[n.name] {
				own.At = append(own.At, n.name)
			}
			own.AtCapacity = own.AtCapacity || n.name == "capacity" && m.Capacity != nil
		}
	}
	if len(own.At) == 0 && !own.AtCapacity {
		return
	}
	part.SLAs = append(part.SLAs, &own)
	for _, t := range own.Thresholds {
		if !metric.OfParts(t.Metric) {
			d.errorf(t.Range, sumConflict, "%s cannot be measured for one part of a mix, because workload.%s shares the server with the other parts of workload.%s. Move the threshold to an sla block of the mix, or set `at` to levels that the mix does not have.", t.Metric.Name, part.PartName(), m.Address())
		}
	}
}

// The shares of a mix are exact, so each load needs a known number of requests.
func (d *decoder) checkLoads(m *mixture) {
	for _, l := range m.allLoads() {
		timed := slices.ContainsFunc(l.Levels, func(level plan.Level) bool { return level.Duration > 0 })
		switch {
		case m.unread(l):
		case l.Open != nil && l.Open.Trace != nil:
			d.checkReplayed(m, l)
		case m.byType():
			d.errorf(m.rng, sumConflict, `%q is a type of rows in a trace, but this load replays no trace. Give each part a share, such as { %s = "70%%" }.`, m.parts[0].rows, m.parts[0].name)
		case l.Kind == metric.Users:
			d.errorf(l.Range, sumConflict, `The shares of a mix are exact, so the number of requests must be known, and for users it is not. Give workload.%s a rate or a concurrency.`, m.Address())
		case timed:
			d.errorf(l.Range, sumConflict, `The shares of a mix are exact, so the number of requests must be known. Set requests in workload.%s instead of duration, or use a rate.`, m.Address())
		}
	}
}

func (d *decoder) shareOut(m *mixture) {
	m.ShareOut()
	for _, part := range m.Mix {
		for _, level := range part.Levels() {
			if level.Requests == 0 {
				d.errorf(level.Range, sumFewRequests, "The level %s has too few requests (%d), so workload.%s gets none of them. Set more requests, or a larger share.", level.Name, m.Fixed(level.Name).Requests, part.PartName())
			}
		}
		d.checkStages(part)
		d.checkContext(m.block, part)
	}
	d.checkCapacity(m.Workload)
}

// Every name in it must be a level of a mix that contains the workload.
func (d *decoder) checkMixedAt(w *plan.Workload, mixes []*plan.Workload) {
	all := levelsOf(mixes...)
	searched := slices.ContainsFunc(mixes, func(m *plan.Workload) bool { return m.Capacity != nil })
	for _, sla := range w.SLAs {
		for _, n := range d.at[sla] {
			switch {
			case n.name == "capacity" && !searched:
				d.errorf(n.rng, sumNoCapacity, "`at` names \"capacity\", but neither workload.%s nor workload.%s has a capacity block. Add capacity { up_to = 64 }.", w.Address(), mixes[0].Address())
			case n.name != "capacity" && !all.have[n.name]:
				d.unknownLevel(n.rng, n.name, all)
			}
		}
	}
}
