package decode

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/plan"
)

// decodeAsserts reads the asserts, whose conditions are checked after the run. It also evaluates
// each condition now, to find wrong names. For this, the variable result has the right types but no
// values.
func (d *decoder) decodeAsserts() {
	seen := map[string]hcl.Range{}
	for _, blk := range d.blocks["assert"] {
		name := blk.Labels[0]
		if !d.isNew(blk, seen) {
			continue
		}
		b := d.open(assertBlock, blk, &scope{ctx: d.base}, "assert."+name)
		a := &plan.Assert{Name: name, Condition: missing(b.rng), ErrorMessage: missing(b.rng), Context: d.base, Range: blk.DefRange}
		if attr := b.attrs["condition"]; attr != nil {
			a.Condition = attr.Expr
		}
		if attr := b.attrs["error_message"]; attr != nil {
			a.ErrorMessage = attr.Expr
		}
		d.out.Asserts = append(d.out.Asserts, a)
	}
	if len(d.out.Asserts) == 0 {
		return
	}
	result := plan.UnknownResult(d.out)
	typ, unknown := result.Type(), map[string]cty.Value{"result": result}
	for _, a := range d.out.Asserts {
		sc := scope{ctx: d.base, result: typ}.child(unknown)
		d.checkAssert(a, sc)
		// Keep the environment variables that the condition reads. The condition can then be
		// evaluated after the run.
		env := map[string]cty.Value{}
		for _, expr := range []hcl.Expression{a.Condition, a.ErrorMessage} {
			for _, t := range expr.Variables() {
				if name := plan.StepName(t, 1); t.RootName() == "env" && name != "" {
					env[name] = cty.UnknownVal(cty.String).Mark(sensitive)
					if value, ok := d.environ[name]; ok {
						env[name] = cty.StringVal(value).Mark(sensitive)
					}
				}
			}
		}
		if len(env) > 0 {
			a.Context = scope{ctx: d.base}.child(map[string]cty.Value{"env": cty.ObjectVal(env)}).ctx
		}
	}
}

// missing replaces an expression that was reported as missing. Its value has no type, so it causes
// no further diagnostics.
func missing(rng hcl.Range) hcl.Expression { return hcl.StaticExpr(cty.DynamicVal, rng) }

func (d *decoder) checkAssert(a *plan.Assert, sc *scope) {
	if v, ok := d.eval(a.Condition, sc); ok && v != cty.DynamicVal {
		switch {
		case hasMark(v, sensitive):
			d.refuseSecret(a.Condition, "condition")
		case v.IsNull() || v.Type() != cty.Bool && v.Type() != cty.DynamicPseudoType:
			d.errorf(a.Condition.Range(), sumAssertType, "The condition must be true or false, such as result.… < 2, but it is %s.", v.Type().FriendlyNameForConstraint())
		case !refersTo(a.Condition, "result"):
			d.errorf(a.Condition.Range(), sumAssertConstant, "The condition uses no result, so it is always true or always false. Use a value of result.SERVER.WORKLOAD.")
		default:
			d.checkNothing(a.Condition, sc)
		}
	}
	if v, ok := d.eval(a.ErrorMessage, sc); ok {
		if v = d.unmark(v); v.IsNull() || v.Type() != cty.String && v.Type() != cty.DynamicPseudoType {
			d.errorf(a.ErrorMessage.Range(), sumWrongType, "error_message must be text.")
		}
	}
}

// checkNothing refuses a condition that iterates over an empty part of the variable result. Such a
// condition would hold for every server.
func (d *decoder) checkNothing(condition hcl.Expression, sc *scope) {
	node, ok := condition.(hclsyntax.Node)
	if !ok {
		return
	}
	_ = hclsyntax.VisitAll(node, func(n hclsyntax.Node) hcl.Diagnostics {
		var over hclsyntax.Expression
		switch n := n.(type) {
		case *hclsyntax.ForExpr:
			over = n.CollExpr
		case *hclsyntax.SplatExpr:
			over = n.Source
		default:
			return nil
		}
		if !refersTo(over, "result") {
			return nil
		}
		// A value that depends on an enclosing for expression gives an error, because it cannot be
		// computed here.
		v, diags := over.Value(sc.ctx)
		if diags.HasErrors() {
			return nil
		}
		if v, _ = v.Unmark(); v.IsKnown() && !v.IsNull() && v.CanIterateElements() && v.LengthInt() == 0 {
			d.errorf(over.Range(), sumAssertNothing, "The for expression goes over an empty list, so it checks no result. An assert can use the levels of load blocks, but not the levels that a capacity search tries.")
		}
		return nil
	})
}

func refersTo(expr hcl.Expression, root string) bool {
	for _, t := range expr.Variables() {
		if t.RootName() == root {
			return true
		}
	}
	return false
}
