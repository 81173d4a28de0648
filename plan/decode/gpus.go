package decode

import (
	"regexp"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/tokgate/tokgate/plan"
)

func readGPUs(b *body) *plan.GPUs {
	rng := b.rangeOf("gpus")
	out := &plan.GPUs{Range: rng}
	list := b.list("gpus")
	if len(list) == 1 {
		v := list[0].value
		if list[0].unknown() {
			return out
		}
		whole, isList := b.d.eval(b.attrs["gpus"].Expr, b.scope)
		isList = isList && !whole.Type().IsPrimitiveType()
		switch {
		case !isList && v.Type() == cty.Number:
			out.Count, _ = list[0].integer()
			return out
		case v.Type() == cty.String && v.AsString() == "all":
			out.All = true
			return out
		case !isList:
			wrongGPUs(b, rng)
			return out
		}
	}
	if len(list) == 0 {
		wrongGPUs(b, rng)
	}
	for _, e := range list {
		v := e.value
		if e.unknown() {
			continue
		}
		if v.Type() == cty.Number {
			v, _ = convert.Convert(v, cty.String)
		}
		if v.Type() != cty.String || !gpuID.MatchString(v.AsString()) {
			wrongGPUs(b, e.rng)
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

// gpuID matches the index of a GPU, the UUID of a GPU, or the UUID of a MIG slice of a GPU.
var gpuID = regexp.MustCompile(`^([0-9]{1,3}|(GPU|MIG)-[A-Za-z0-9/-]+)$`)

func wrongGPUs(b *body, rng hcl.Range) {
	b.d.errorf(rng, sumGPUs, `gpus must be a number of free GPUs such as 1, a list such as ["2", "3"], or "all". A list has indexes or UUIDs, as nvidia-smi prints them.`)
}
