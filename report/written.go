package report

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// writer finds the order in which a plan's source writes the keys of a for_each. A decoded plan has
// them sorted as text, but readers expect the order of the source.
type writer struct{ locals map[string]hcl.Expression }

// writtenKeys returns the for_each keys of each block, in the order of the plan file. The blocks
// are named "type.name". Keys that are not written in the file, but computed, are left out.
func writtenKeys(files map[string]*hcl.File) map[string][]string {
	w := writer{map[string]hcl.Expression{}}
	each := map[string]hcl.Expression{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if files[name] == nil {
			continue
		}
		body, ok := files[name].Body.(*hclsyntax.Body)
		if !ok {
			continue // a plan in JSON
		}
		for _, b := range body.Blocks {
			if b.Type == "locals" {
				for name, attr := range b.Body.Attributes {
					w.locals[name] = attr.Expr
				}
			}
			if attr := b.Body.Attributes["for_each"]; attr != nil && len(b.Labels) == 1 {
				each[b.Type+"."+b.Labels[0]] = attr.Expr
			}
		}
	}
	out := map[string][]string{}
	for name, expr := range each {
		if keys := w.keys(expr, 0); keys != nil {
			out[name] = keys
		}
	}
	return out
}

// mostHops is the largest number of locals that the function keys follows, one to the next, to find
// a map.
const mostHops = 20

// keys returns the keys of a map or set of strings, if they can be read in the plan file. It looks
// in the expression itself, in a local, in the argument of a function such as toset, and in the
// collection of a for expression.
func (w writer) keys(expr hcl.Expression, hops int) []string {
	if hops > mostHops {
		return nil
	}
	switch e := expr.(type) {
	case *hclsyntax.ObjectConsExpr:
		var keys []hcl.Expression
		for _, item := range e.Items {
			keys = append(keys, item.KeyExpr)
		}
		return literals(keys)
	case *hclsyntax.TupleConsExpr:
		return literals(e.ExprList())
	case *hclsyntax.ForExpr:
		return w.keys(e.CollExpr, hops+1)
	case *hclsyntax.FunctionCallExpr:
		if len(e.Args) == 1 {
			return w.keys(e.Args[0], hops+1)
		}
	case *hclsyntax.ScopeTraversalExpr:
		if len(e.Traversal) == 2 && e.Traversal.RootName() == "local" {
			if step, ok := e.Traversal[1].(hcl.TraverseAttr); ok && w.locals[step.Name] != nil {
				return w.keys(w.locals[step.Name], hops+1)
			}
		}
	}
	return nil
}

// literals returns the strings of a list in the plan file; nil if an element is computed.
func literals(list []hcl.Expression) []string {
	var out []string
	for _, expr := range list {
		v, diags := expr.Value(nil)
		if diags.HasErrors() || v.IsNull() || !v.IsKnown() || v.Type() != cty.String {
			return nil
		}
		out = append(out, v.AsString())
	}
	return out
}
