package decode

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/plan"
)

type local struct {
	name string
	attr *hcl.Attribute
	done bool
	// visiting is set while this value's dependencies are evaluated. If the evaluation reaches this
	// value again, the local values form a cycle.
	visiting bool
}

func (d *decoder) decodeLocals() {
	var order []*local
	all := map[string]*local{}
	for _, b := range d.blocks["locals"] {
		attrs, diags := b.Body.JustAttributes()
		d.add(diags...)
		for _, attr := range sortedAttributes(attrs) {
			if !hclsyntax.ValidIdentifier(attr.Name) {
				d.errorf(attr.NameRange, sumInvalidName, "%q is not a valid name. Use only letters, digits, _ and -.", attr.Name)
				continue
			}
			if first := all[attr.Name]; first != nil {
				d.errorf(attr.NameRange, sumDuplicateName, "local.%s is already declared at %s.", attr.Name, first.attr.NameRange)
				continue
			}
			l := &local{name: attr.Name, attr: attr}
			all[attr.Name] = l
			d.names["local"][attr.Name] = &named{rng: attr.NameRange}
			order = append(order, l)
		}
	}

	d.base.Variables = map[string]cty.Value{"var": cty.ObjectVal(d.values)}
	values := make(map[string]cty.Value, len(order))
	for _, l := range order {
		d.evalLocal(l, all, values, nil)
	}
	d.base.Variables["local"] = cty.ObjectVal(values)
}

func (d *decoder) evalLocal(l *local, all map[string]*local, values map[string]cty.Value, path []string) {
	if l.done {
		return
	}
	path = append(path, "local."+l.name)
	if l.visiting {
		start := slices.Index(path, "local."+l.name)
		d.errorf(l.attr.Range, sumLocalCycle, "%s.", strings.Join(path[start:], " needs "))
		return
	}
	l.visiting = true
	// Evaluate with only the local values that this value needs. With all of them, a plan with
	// 10,000 local values would take 10,000² steps.
	needs := map[string]cty.Value{}
	for _, t := range l.attr.Expr.Variables() {
		if t.RootName() != "local" {
			continue
		}
		if len(t) == 1 {
			continue // the reference names no local value, which d.eval reports below
		}
		if other := all[plan.StepName(t, 1)]; other != nil {
			d.evalLocal(other, all, values, path)
			if v, ok := values[other.name]; ok {
				needs[other.name] = v
			} else {
				needs[other.name] = cty.DynamicVal // the error in that value was already reported
			}
		}
	}
	l.visiting, l.done = false, true
	sc := scope{ctx: d.base}.child(map[string]cty.Value{"local": cty.ObjectVal(needs)})
	v, _ := d.eval(l.attr.Expr, sc)
	values[l.name] = v
}

func sortedAttributes(attrs hcl.Attributes) []*hcl.Attribute {
	list := slices.Collect(maps.Values(attrs))
	slices.SortFunc(list, func(a, b *hcl.Attribute) int {
		if c := strings.Compare(a.NameRange.Filename, b.NameRange.Filename); c != 0 {
			return c
		}
		if c := a.NameRange.Start.Byte - b.NameRange.Start.Byte; c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list
}
