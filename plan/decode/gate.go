package decode

import (
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

func (d *decoder) decodeGate() {
	sc := &scope{ctx: d.base}
	var b *body
	for i, blk := range d.blocks["gate"] {
		if i > 0 {
			d.errorf(blk.DefRange, sumDuplicateBlock, "A plan has one gate; it is already at %s.", d.blocks["gate"][0].DefRange)
			continue
		}
		b = d.open(gateBlock, blk, sc, "gate")
		d.plan.Gate.Range = blk.DefRange
	}
	if b == nil {
		b = &body{d: d, spec: gateBlock, scope: sc, path: "gate"}
	}
	g := &d.plan.Gate
	g.Policy = plan.Policy{Confidence: 0.95, Decide: plan.Certified, OnInconclusive: plan.Stop, Window: metric.Steady}
	b.policy(&g.Policy)
	if g.MaxRequests == 0 {
		b.note("max_requests", gateBlock.attr("max_requests").Computed, "")
	}
	g.Budget, _ = b.duration("budget", time.Second, maxDuration)
	if g.Budget == 0 && !b.given("budget") {
		b.note("budget", "none", "")
	}
	g.MeasureOnly = b.boolean("measure_only")
}

// policy overrides what the block sets, or what the schema has a default for.
func (b *body) policy(p *plan.Policy) {
	if b.hasValue("confidence") {
		if c, ok := b.number("confidence", 0, 1); ok {
			if c <= 0.5 || c >= 1 {
				b.d.errorf(b.rangeOf("confidence"), sumOutOfRange, "confidence must be above 0.5 and below 1.")
			} else {
				p.Confidence = c
			}
		}
	}
	if b.hasValue("decide") {
		p.Decide = plan.Decide(b.oneOf("decide", string(plan.Certified), string(plan.Estimate)))
	}
	if b.hasValue("on_inconclusive") {
		p.OnInconclusive = plan.OnInconclusive(b.oneOf("on_inconclusive", string(plan.Stop), string(plan.Extend), string(plan.Warn)))
	}
	if b.hasValue("window") {
		p.Window = metric.Window(b.oneOf("window", string(metric.Steady), string(metric.All)))
	}
	if n, ok := b.integer("max_requests", 1, maxCount); ok {
		p.MaxRequests = int(n)
	}
}
