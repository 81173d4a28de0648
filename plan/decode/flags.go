package decode

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/tokgate/tokgate/plan"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Flags in an object literal keep their order and their positions in the plan. Computed flags are
// sorted by name.
func readFlags(b *body) []plan.Flag {
	attr := b.attrs["flags"]
	if attr == nil {
		return nil
	}
	var out []plan.Flag
	add := func(name string, v cty.Value, rng hcl.Range) {
		if slices.ContainsFunc(out, func(f plan.Flag) bool { return f.Name == name }) {
			b.d.errorf(rng, sumDuplicateName, "The flag %s is set twice.", name)
			return
		}
		out = append(out, plan.Flag{Name: name, Value: v, Range: rng})
	}
	if pairs, diags := hcl.ExprMap(attr.Expr); !diags.HasErrors() {
		for _, p := range pairs {
			if dottedKey(p.Key) {
				b.d.errorf(p.Key.Range(), sumAmbiguousKey, ambiguousKey)
				continue
			}
			key, ok := b.d.eval(p.Key, b.scope)
			if !ok {
				continue
			}
			v, ok := b.d.eval(p.Value, b.scope)
			if !ok {
				continue
			}
			key, err := convert.Convert(key, cty.String)
			if err != nil || key.IsMarked() || key.IsNull() || !key.IsKnown() {
				b.d.errorf(p.Key.Range(), sumFlagName, "The name of a flag must not depend on a secret or on a variable that is not set.")
				continue
			}
			if v, ok = b.plain(p.Value, "flags", v); !ok {
				continue
			}
			add(key.AsString(), v, hcl.RangeBetween(p.Key.Range(), p.Value.Range()))
		}
	} else {
		v, ok := b.d.eval(attr.Expr, b.scope)
		if !ok {
			return nil
		}
		if v, ok = b.plain(attr.Expr, "flags", v); !ok || v.IsNull() {
			return nil
		}
		if ty := v.Type(); !v.IsKnown() || !(ty.IsObjectType() || ty.IsMapType()) {
			b.itemOf("flags", v, attr.Expr.Range()).wrongType("an object: { max-model-len = 32768 }")
			return nil
		}
		for it := v.ElementIterator(); it.Next(); {
			key, e := it.Element()
			add(key.AsString(), e, attr.Expr.Range())
		}
	}
	return out
}

// HCL refuses such a key, because it could be a name or a reference.
func dottedKey(key hcl.Expression) bool {
	k, ok := key.(*hclsyntax.ObjectConsKeyExpr)
	if !ok || k.ForceNonLiteral {
		return false
	}
	t, diags := hcl.AbsTraversalForExpr(k.Wrapped)
	return !diags.HasErrors() && len(t) > 1
}
