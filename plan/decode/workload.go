package decode

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/plan"
)

func (d *decoder) decodeWorkloads() {
	sc := scope{ctx: d.base, server: true}.child(map[string]cty.Value{"server": values(d.servers, serverType)})
	families(d, "workload", d.workloads, sc, &d.plan.Workloads, d.decodeWorkload)
}

func (d *decoder) decodeWorkload(name, key string, blk *hcl.Block, sc *scope) *plan.Workload {
	w := &plan.Workload{Name: name, Key: key, Range: blk.DefRange, Policy: d.plan.Gate.Policy}
	b := d.open(workloadBlock, blk, sc, "workload."+w.Address())
	p := b.preset()
	w.Servers = b.servers()
	b.bind(w)
	b.tokens(w, p)
	w.Request = b.request()
	b.loads(w, p)
	if g := b.child("good"); g != nil {
		w.Good = g.bounds()
	}
	if g := b.child("gate"); g != nil {
		policy(g, &w.Policy)
	}
	w.Capacity = b.capacity(w, p)
	b.slas(w, p)
	d.checkContext(b, w)
	d.checkExtension(w)
	d.checkCapacity(w)
	return w
}
