package decode

import (
	"regexp"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/tokgate/tokgate/plan"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// gpus is a number of GPUs, some by name, or "all"; nil when the plan does not
// say.
func (b *body) gpus() *plan.GPUs {
	if !b.given("gpus") {
		b.note("gpus", b.spec.attr("gpus").Computed, "")
		return nil
	}
	rng := b.rangeOf("gpus")
	out := &plan.GPUs{Range: rng}
	list := b.list("gpus")
	if len(list) == 1 {
		v := list[0].value
		if b.isUnknown(rng, "gpus", v) {
			return out
		}
		whole, isList := b.d.eval(b.attrs["gpus"].Expr, b.scope)
		isList = isList && !whole.Type().IsPrimitiveType()
		switch {
		case !isList && v.Type() == cty.Number:
			n, ok := b.asInteger(rng, "gpus", v, 0, maxGPUs)
			if ok {
				out.Count = int(n)
			}
			return out
		case v.Type() == cty.String && v.AsString() == "all":
			out.All = true
			return out
		case !isList:
			b.wrongGPUs(rng)
			return out
		}
	}
	if len(list) == 0 {
		b.wrongGPUs(rng)
	}
	for _, e := range list {
		v := e.value
		if b.isUnknown(e.rng, "gpus", v) {
			continue
		}
		if v.Type() == cty.Number {
			v, _ = convert.Convert(v, cty.String)
		}
		if v.Type() != cty.String || !gpuID.MatchString(v.AsString()) {
			b.wrongGPUs(e.rng)
			continue
		}
		id := v.AsString()
		if slices.Contains(out.IDs, id) {
			b.d.errorf(e.rng, sumDuplicateName, "GPU %s is listed twice.", id)
			continue
		}
		out.IDs = append(out.IDs, id)
	}
	return out
}

// gpuID is an index, or a UUID of a GPU or of a part of one.
var gpuID = regexp.MustCompile(`^([0-9]{1,3}|(GPU|MIG)-[A-Za-z0-9/-]+)$`)

func (b *body) wrongGPUs(rng hcl.Range) {
	b.d.errorf(rng, sumGPUs, `gpus is a number of free GPUs (1), some by index or UUID as nvidia-smi prints them (["2", "3"]), or "all".`)
}
