package decode

import (
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/plan"
)

// What a comparison has when the plan does not say, and at least. Five rounds
// are what an interval needs; two of restart = "order" make one observation.
const (
	compareRounds      = 8
	compareOrderRounds = 16
	leastRounds        = 5
	leastOrderRounds   = 10
	mostRounds         = 1000
)

func (d *decoder) decodeCompares() {
	if d.opts.lenient {
		return // of the base branch only the servers are wanted
	}
	seen := map[string]hcl.Range{}
	sc := scope{ctx: d.base, server: true, work: true}.child(map[string]cty.Value{
		"server": values(d.servers, serverType), "workload": values(d.workloads, workloadType),
	})
	for _, blk := range d.blocks["compare"] {
		name := blk.Labels[0]
		if !d.checkName(name, blk.LabelRanges[0]) {
			continue
		}
		if first, ok := seen[name]; ok {
			d.errorf(blk.LabelRanges[0], sumDuplicateName, "compare %q is already declared at %s.", name, first)
			continue
		}
		seen[name] = blk.DefRange
		d.decodeCompare(name, blk, sc)
	}
	d.takeTurns()
}

func (d *decoder) decodeCompare(name string, blk *hcl.Block, sc *scope) {
	b := d.open(compareBlock, blk, sc, "compare."+name)
	c := &plan.Compare{Name: name, Policy: d.plan.Gate.Policy, Range: blk.DefRange}
	before := len(d.diags)
	c.Candidate = b.one("candidate")
	c.Control = b.control(c)
	if !b.given("changed") {
		b.note("changed", "[]", "")
	}
	b.restart(c)
	b.bind(c)
	b.sideBySide(c)
	b.rounds(c)
	var work []*plan.Workload
	switch {
	case c.Candidate == nil || len(d.diags) > before && d.diags[before:].HasErrors():
	case c.Control.Server == c.Candidate:
		d.errorf(b.rangeOf("candidate"), sumCompare, `The candidate is its own control. To see what chance alone does, declare the server twice: for_each = toset(["a", "b"]).`)
	default:
		if work = c.Workloads(d.plan); len(work) == 0 && c.Skip == "" {
			d.errorf(blk.DefRange, sumCompare, "No workload runs on both servers: name both in its server, or leave that out.")
			break
		}
		d.plan.Compares = append(d.plan.Compares, c)
		b.sameServers(c)
	}
	for _, kind := range []string{"tolerate", "improve"} {
		for i, claim := range b.blocksOf(kind) {
			path := b.path + "." + kind
			if len(b.blocksOf(kind)) > 1 {
				path += "[" + strconv.Itoa(i) + "]"
			}
			o := d.open(compareBlock.block(kind), claim, sc, path)
			if out := o.claim(c, work, kind == "improve"); out != nil {
				c.Claims = append(c.Claims, out)
			}
		}
	}
	slices.SortStableFunc(c.Claims, func(x, y *plan.Claim) int { return x.Range.Start.Byte - y.Range.Start.Byte })
}
