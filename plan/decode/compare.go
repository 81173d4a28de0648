package decode

import (
	"reflect"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/plan"
)

var compareBlock = &Block{
	Name: "compare", Labels: []string{"name"}, Repeat: true,
	Doc: "A candidate against a control, on the same prompts and in turns. Every workload that both run on is compared; its sla is judged on the candidate only. With requests left at their default, each leg (one round on one server) gets as many as a level has otherwise.",
	Attrs: []*Attr{
		{Name: "control", Type: "server", Required: true, Doc: "What the candidate is compared with: server.name; base.server.name, the server of the same plan on the base branch (--base DIR); or baseline(\"FOLDER\"), a recorded run, with the server's address in it as second argument where that is not the candidate's."},
		{Name: "candidate", Type: "server", Required: true, Doc: "The server under test: server.name."},
		{Name: "rounds", Type: "number", Computed: "8, or 16 under restart = \"order\" and side_by_side", Doc: "Rounds on each server, at least 5, in turns: A B B A … At least 10, and even, where two are one observation."},
		{Name: "restart", Type: "string", Computed: "`leg`, or `never` where a server is an endpoint", Doc: "When a server is started anew: `leg` (for each round), `order` (for each turn, so that the legs of B in A B B A share one start, and four legs are one observation) or `never` (both run side by side all the time; the verdict then speaks of these two starts alone)."},
		{Name: "side_by_side", Type: "bool", Default: "false", Doc: "Run both legs of a round at the same time, each server on GPUs of its own that the two swap from round to round, so that a faster card does not decide. Two rounds are then one observation. Both servers list as many `gpus`, by index or UUID, and none twice; only under restart = \"leg\"."},
		{Name: "changed", Type: "list of strings", Computed: "nothing", Doc: "What may differ between the two: keys of what is declared and observed, such as `flags`, `flags.max-model-len`, `image`, `version`. Anything else that differs is an error."},
	},
	Blocks: []*Block{
		{Name: "tolerate", Repeat: true, Doc: "How much worse the candidate may be, as a share of the control's value (\"p95 +10%\"), or in percentage points where the metric is a share itself (\"rate -1pp\").", Attrs: claimAttrs()},
		{Name: "improve", Repeat: true, Doc: "How much better the candidate must be, written likewise.", Attrs: claimAttrs()},
	},
}

// workloadType is a workload as a value: workload.chat in an expression.
var workloadType = cty.CapsuleWithOps("workload", reflect.TypeFor[plan.Workload](), &cty.CapsuleOps{
	TypeGoString: func(reflect.Type) string { return "workload" },
	GoString:     func(v any) string { return v.(*plan.Workload).Address() },
})

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

// values is what server, or workload, is in an expression.
func values[T any](families map[string]*family[T], ty cty.Type) cty.Value {
	out := map[string]cty.Value{}
	for name, f := range families {
		if !f.each {
			out[name] = cty.DynamicVal
			if len(f.members) == 1 {
				out[name] = cty.CapsuleVal(ty, f.members[0])
			}
			continue
		}
		instances := map[string]cty.Value{}
		for i, m := range f.members {
			instances[f.keys[i]] = cty.CapsuleVal(ty, m)
		}
		out[name] = cty.ObjectVal(instances)
	}
	return cty.ObjectVal(out)
}

func (d *decoder) decodeCompare(name string, blk *hcl.Block, sc *scope) {
	b := d.open(compareBlock, blk, sc, "compare."+name)
	c := &plan.Compare{Name: name, Policy: d.plan.Gate.Policy, Range: blk.DefRange}
	before := len(d.diags)
	c.Candidate = b.one("candidate")
	c.Control = b.control(c)
	c.Changed = b.texts("changed")
	if !b.given("changed") {
		b.note("changed", "[]", "")
	}
	b.restart(c)
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
				path += "[" + itoa(i) + "]"
			}
			o := d.open(compareBlock.block(kind), claim, sc, path)
			if out := o.claim(c, work, kind == "improve"); out != nil {
				c.Claims = append(c.Claims, out)
			}
		}
	}
	slices.SortStableFunc(c.Claims, func(x, y *plan.Claim) int { return x.Range.Start.Byte - y.Range.Start.Byte })
}
