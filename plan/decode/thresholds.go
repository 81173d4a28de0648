package decode

import (
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/zclconf/go-cty/cty"
)

// bounds are the thresholds of a good block.
func (b *body) bounds() []*plan.Threshold {
	out := b.thresholds(true)
	if len(b.attrs) == 0 && !b.stray {
		b.d.errorf(b.rng, sumEmptySLA, `A good block needs a bound, such as ttft = "< 2s".`)
	}
	return out
}

// thresholds reads every metric attribute of the block, in order of the
// source.
func (b *body) thresholds(good bool) []*plan.Threshold {
	var out []*plan.Threshold
	for _, attr := range sortedAttributes(b.attrs) {
		def, ok := metric.Lookup(attr.Name)
		if !ok {
			continue
		}
		if def.Source == metric.Prices {
			if b.d.plan.Prices == nil {
				b.d.errorf(attr.NameRange, sumMissing, "%s needs to know what the server costs: prices { per_hour = 2.5 }.", attr.Name)
				continue
			}
			def.Unit = b.d.plan.Prices.Unit(def.Unit)
		}
		seen := map[string]bool{}
		for _, e := range b.list(attr.Name) {
			if b.isUnknown(e.rng, attr.Name, e.value) {
				continue
			}
			if e.value.Type() == cty.Number {
				b.d.errorf(e.rng, sumMissingUnit, "%s needs a comparison and a unit: write %s.", attr.Name, example(def, good))
				continue
			}
			text, ok := b.asText(e.rng, attr.Name, e.value)
			if !ok {
				continue
			}
			t, p := parseThreshold(def, text, good)
			if p != nil {
				b.d.errorf(e.rng, p.summary, "%s", p.detail)
				continue
			}
			if key := string(t.Op) + " " + t.Stat.String(); seen[key] {
				b.d.errorf(e.rng, sumDuplicateBound, "%s is bounded twice by %s %s: keep the stricter bound.", attr.Name, t.Stat, t.Op)
				continue
			} else {
				seen[key] = true
			}
			t.Range = e.rng
			out = append(out, &t)
		}
	}
	return out
}
