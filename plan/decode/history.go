package decode

import "github.com/tokgate/tokgate/plan"

// decodeHistory reads where the nights of the plan are kept.
func (d *decoder) decodeHistory() {
	for i, blk := range d.blocks["history"] {
		if i > 0 {
			d.errorf(blk.DefRange, sumDuplicateBlock, "history may be written once; it is already at %s.", d.blocks["history"][0].DefRange)
			return
		}
		b := d.open(historyBlock, blk, &scope{ctx: d.base}, "history")
		h := &plan.History{
			Folder:   b.file("folder"),
			Severity: plan.Severity(b.oneOf("severity", string(plan.SeverityError), string(plan.SeverityWarn))),
			Range:    blk.DefRange,
		}
		if b.isSet("folder") && h.Folder == "" {
			d.errorf(b.rangeOf("folder"), sumOutOfRange, `folder must name a folder, such as "perf/history".`)
		}
		if v, ok := b.value("ignore"); ok {
			rng := b.rangeOf("ignore")
			switch f, ok := b.asFraction(rng, "ignore", v); {
			case !ok:
			case f < 0 || f >= 1:
				d.errorf(rng, sumOutOfRange, `ignore must be at least "0%%" and below "100%%".`)
			default:
				h.Ignore = f
			}
		}
		d.plan.History = h
	}
}
