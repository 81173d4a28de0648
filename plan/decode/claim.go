package decode

import (
	"cmp"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// claim reads one tolerate or improve block; nil when there is nothing in it.
func (b *body) claim(c *plan.Compare, work []*plan.Workload, improve bool) *plan.Claim {
	out := &plan.Claim{Improve: improve, Range: b.rng, Workloads: work}
	if b.given("workloads") {
		out.Workloads = b.workloads(work, c)
	}
	out.At = b.claimAt(out)
	b.bind(out)
	out.Changes = b.changes(out)
	if len(out.Changes) == 0 {
		if !b.later && !b.stray && !b.anyMetric() && !b.isSet("capacity") {
			b.d.errorf(b.rng, sumEmptySLA, `The block needs a change, such as ttft = "p95 %s10%%".`, map[bool]string{true: "-", false: "+"}[improve])
		}
		return nil
	}
	return out
}

// changes reads every metric of a claim, in order of the source.
func (b *body) changes(c *plan.Claim) []*plan.Change {
	var out []*plan.Change
	for _, attr := range sortedAttributes(b.attrs) {
		def, ok := metric.Lookup(attr.Name)
		if attr.Name == "capacity" {
			def, ok = capacityDef, true
		}
		if !ok {
			continue
		}
		seen := map[string]bool{}
		for _, e := range b.list(attr.Name) {
			if b.isUnknown(e.rng, attr.Name, e.value) {
				continue
			}
			if e.value.Type() == cty.Number {
				b.d.errorf(e.rng, sumMissingUnit, "%s needs a sign and a unit: write %s.", attr.Name, exampleChange(def, c.Improve))
				continue
			}
			text, ok := b.asText(e.rng, attr.Name, e.value)
			if !ok {
				continue
			}
			ch, p := parseChange(def, text, c.Improve)
			if p != nil {
				b.d.errorf(e.rng, p.summary, "%s", p.detail)
				continue
			}
			if seen[ch.Stat.String()] {
				b.d.errorf(e.rng, sumDuplicateBound, "%s is bounded twice by %s: keep the stricter one.", attr.Name, cmp.Or(ch.Stat.String(), "its value"))
				continue
			}
			seen[ch.Stat.String()] = true
			ch.Range = e.rng
			if b.applies(c, &ch, e.rng) {
				out = append(out, &ch)
			}
		}
	}
	return out
}

// applies says whether the workloads of a claim have what it bounds.
func (b *body) applies(c *plan.Claim, ch *plan.Change, rng hcl.Range) bool {
	need := func(has func(*plan.Workload) bool, summary, format string) bool {
		i := slices.IndexFunc(c.Workloads, func(w *plan.Workload) bool { return !has(w) })
		some := slices.ContainsFunc(c.Workloads, has)
		if i < 0 || some && !b.given("workloads") || len(c.Workloads) == 0 {
			return true
		}
		b.d.errorf(rng, summary, format, c.Workloads[i].Address())
		return false
	}
	switch ch.Metric.Name {
	case "capacity":
		return need(func(w *plan.Workload) bool { return w.Capacity != nil }, sumNoCapacity, "workload.%s has no capacity block that would search its capacity: capacity { up_to = 64 }.")
	case "goodput":
		return need(func(w *plan.Workload) bool { return len(w.Good) > 0 }, sumNoGood, "goodput counts good requests; workload.%s has no good block that says what one is.")
	case "scaling_efficiency":
		return need(func(w *plan.Workload) bool { return levelIndex(w).have["1"] }, sumNoLevelOne, "scaling_efficiency compares with concurrency 1, which workload.%s does not run.")
	}
	return true
}
