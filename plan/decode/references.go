package decode

import (
	"reflect"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/suggest"
	"github.com/zclconf/go-cty/cty"
)

// serverType is the type of a server in an expression, such as server.vllm.
var serverType = cty.CapsuleWithOps("server", reflect.TypeFor[plan.Server](), &cty.CapsuleOps{
	TypeGoString: func(reflect.Type) string { return "server" },
	GoString:     func(v any) string { return v.(*plan.Server).Address() },
})

var workloadType = cty.CapsuleWithOps("workload", reflect.TypeFor[plan.Workload](), &cty.CapsuleOps{
	TypeGoString: func(reflect.Type) string { return "workload" },
	GoString:     func(v any) string { return v.(*plan.Workload).Address() },
})

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

func readOne(b *body, name string) *plan.Server {
	v, ok := b.value(name)
	if !ok {
		return nil
	}
	rng := b.rangeOf(name)
	switch {
	case v.Type().Equals(serverType) && v.IsKnown():
		return v.EncapsulatedValue().(*plan.Server)
	case v.Type() == cty.String && v.IsKnown():
		b.d.errorf(rng, sumServerReference, "Write a reference, server.%s, not text.", nearestName(v.AsString(), b.d.servers))
	case v.Type().IsObjectType() && v.IsKnown():
		b.d.errorf(rng, sumServerReference, `%s takes one server, but this one has several instances. Name one: server.name["key"].`, name)
	case v.Type() != cty.DynamicPseudoType:
		b.d.errorf(rng, sumServerReference, "%s takes server.name, not %s.", name, v.Type().FriendlyNameForConstraint())
	}
	return nil
}

func readServers(b *body) []*plan.Server {
	if !b.given("server") {
		if len(b.d.out.Servers) > 0 && !b.quiet {
			value := "every server"
			if len(b.d.out.Servers) == 1 {
				value = "server." + b.d.out.Servers[0].Address()
			}
			b.note("server", value, "the workload names none")
		}
		for _, f := range b.d.servers {
			f.used = true
		}
		return slices.Clone(b.d.out.Servers)
	}
	var out []*plan.Server
	refer(b, "server", func(v cty.Value, rng hcl.Range) {
		switch {
		case v.IsNull():
			b.d.errorf(rng, sumServerReference, "Name a server: server.name.")
		case v.Type().Equals(serverType) && v.IsKnown():
			s := v.EncapsulatedValue().(*plan.Server)
			if slices.Contains(out, s) {
				b.d.errorf(rng, sumServerReference, "server.%s is named twice.", s.Address())
				return
			}
			out = append(out, s)
		case v.Type() == cty.DynamicPseudoType: // an error about this server was reported already
		case !v.IsKnown():
			b.itemOf("server", v, rng).unknown()
		case v.Type() == cty.String:
			b.d.errorf(rng, sumServerReference, "Write a reference, server.%s, not text.", nearestName(v.AsString(), b.d.servers))
		default:
			b.d.errorf(rng, sumServerReference, "server takes server.name or a list of them, not %s.", v.Type().FriendlyNameForConstraint())
		}
	})
	return out
}

// A reference to a block with for_each stands for all instances of the block.
func refer(b *body, name string, use func(v cty.Value, rng hcl.Range)) {
	for _, e := range b.list(name) {
		spread(e.value, func(v cty.Value) { use(v, e.rng) })
	}
}

func spread(v cty.Value, use func(cty.Value)) {
	if ty := v.Type(); v.IsNull() || !v.IsKnown() || !ty.IsObjectType() && !ty.IsMapType() {
		use(v)
		return
	}
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		spread(e, use)
	}
}

// For a mix it returns the mix and its parts.
func readWorkloads(b *body, name string, work []*plan.Workload, c *plan.Compare) []*plan.Workload {
	var out []*plan.Workload
	refer(b, name, func(v cty.Value, rng hcl.Range) {
		switch {
		case v.IsNull():
			b.d.errorf(rng, sumServerReference, "Name a workload: workload.name.")
		case v.Type().Equals(workloadType) && v.IsKnown():
			w := v.EncapsulatedValue().(*plan.Workload)
			switch {
			case slices.Contains(out, w):
				b.d.errorf(rng, sumDuplicateName, "workload.%s is named twice.", w.Address())
			case !slices.Contains(work, w) && c.Skip == "" && len(work) > 0:
				b.d.errorf(rng, sumCompare, "workload.%s does not run on both servers, so it is not compared.", w.Address())
			default:
				out = append(out, w.Whole()...)
			}
		case v.IsKnown():
			b.itemOf(name, v, rng).wrongType("workload.name or a list of them")
		}
	})
	return out
}

func nearestName[T any](given string, have map[string]*family[T]) string {
	var names []string
	for n := range have {
		names = append(names, n)
	}
	slices.Sort(names)
	if slices.Contains(names, given) {
		return given
	}
	if n := suggest.Nearest(given, names); n != "" {
		return n
	}
	return "name"
}
