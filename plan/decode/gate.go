package decode

import (
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

func (d *decoder) decodeGate() {
	b := d.only(gateBlock, "A plan has one gate; it is already at %s.")
	g := &d.plan.Gate
	g.Policy = plan.Policy{Confidence: 0.95, Decide: plan.Certified, OnInconclusive: plan.Stop, Window: metric.Steady}
	if b == nil {
		b = &body{d: d, spec: gateBlock, scope: &scope{ctx: d.base}, path: "gate"}
	} else {
		g.Range = b.rng
	}
	policy(b, &g.Policy)
	if g.MaxRequests == 0 {
		b.note("max_requests", gateBlock.attr("max_requests").Computed, "")
	}
	if !b.given("budget") {
		b.note("budget", "none", "")
	}
	b.bind(g)
}

// only is the one block of its kind at the top level of the plan; nil when there
// is none.
func (d *decoder) only(spec *Block, twice string) *body {
	blocks := d.blocks[spec.Name]
	if len(blocks) == 0 {
		return nil
	}
	for _, more := range blocks[1:] {
		d.errorf(more.DefRange, sumDuplicateBlock, twice, blocks[0].DefRange)
	}
	return d.open(spec, blocks[0], &scope{ctx: d.base}, spec.Name)
}

// policy overrides what the block sets, or what the schema has a default for.
func policy(b *body, p *plan.Policy) {
	usual := p.Confidence
	b.bind(p)
	if p.Confidence <= 0.5 || p.Confidence >= 1 {
		b.d.errorf(b.rangeOf("confidence"), sumOutOfRange, "confidence must be above 0.5 and below 1.")
		p.Confidence = usual
	}
}

// decodeHistory reads where the nights of the plan are kept.
func (d *decoder) decodeHistory() {
	b := d.only(historyBlock, "history may be written once; it is already at %s.")
	if b == nil {
		return
	}
	h := &plan.History{Range: b.rng}
	b.bind(h)
	if b.isSet("folder") && h.Folder == "" {
		d.errorf(b.rangeOf("folder"), sumOutOfRange, `folder must name a folder, such as "perf/history".`)
	}
	h.Ignore = b.shareBelowOne("ignore")
	d.plan.History = h
}
