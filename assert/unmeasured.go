package assert

import (
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/customdecode"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// A value that was not measured is null in the variable result. In HCL null is unequal to every
// number, so "result.….p95 != 5" would be true. So a condition that uses a value that was not
// measured counts as not evaluated. Three mechanisms find these conditions:
//
//   - references: the condition refers to such a value, even in a branch that
//     is not taken;
//   - marks: the null carries a mark, which every value computed from it
//     inherits. Marks find what references cannot: the body of a for, a splat;
//   - try and can: these functions would hide the error and the mark of a
//     null, so their result is marked if their argument uses such a null.
type mark string

const notMeasured = mark("not measured")

func hasMark(marks cty.ValueMarks) bool {
	_, found := marks[notMeasured]
	return found
}

// unmeasured returns the first of the references that leads to a missing measurement;
// "" if none does.
func unmeasured(references []hcl.Traversal, ctx *hcl.EvalContext) string {
	for _, t := range references {
		v, diags := t.TraverseAbs(ctx)
		if diags.HasErrors() {
			continue // evaluation says so
		}
		if v.HasMark(notMeasured) {
			return spell(t)
		}
	}
	return ""
}

// spell returns a reference in the plan's language, such as result.sim.chat.
func spell(t hcl.Traversal) string {
	var b strings.Builder
	for _, step := range t {
		switch step := step.(type) {
		case hcl.TraverseRoot:
			b.WriteString(step.Name)
		case hcl.TraverseAttr:
			b.WriteString("." + step.Name)
		case hcl.TraverseIndex:
			key := step.Key
			switch {
			case key.Type() == cty.String && key.IsKnown() && !key.IsNull():
				b.WriteString("[" + strconv.Quote(key.AsString()) + "]")
			case key.Type() == cty.Number && key.IsKnown() && !key.IsNull():
				b.WriteString("[" + key.AsBigFloat().Text('f', -1) + "]")
			}
		}
	}
	return b.String()
}

// forgiving returns variants of try and can, the functions that turn an error into a value. Their
// results are marked if they hide a missing measurement.
func forgiving(ctx *hcl.EvalContext) map[string]function.Function {
	out := map[string]function.Function{}
	for _, name := range []string{"can", "try"} {
		if f, ok := called(name, ctx); ok {
			out[name] = watched(f)
		}
	}
	return out
}

// called returns the function with this name in the context ctx, or in one of its parent contexts.
func called(name string, ctx *hcl.EvalContext) (f function.Function, ok bool) {
	for c := ctx; c != nil && !ok; c = c.Parent() {
		f, ok = c.Functions[name]
	}
	return f, ok
}

// watched returns a variant of the function f. Its result is marked if an argument refers to a
// missing measurement, or to a value that contains one.
func watched(f function.Function) function.Function {
	return function.New(&function.Spec{
		VarParam: &function.Parameter{Name: "expressions", Type: customdecode.ExpressionClosureType},
		Type:     f.ReturnTypeForValues,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, err := f.Call(args)
			if err != nil {
				return v, err
			}
			for _, arg := range args {
				closure := customdecode.ExpressionClosureFromVal(arg)
				for _, t := range closure.Expression.Variables() {
					x, diags := t.TraverseAbs(closure.EvalContext)
					if _, marks := x.UnmarkDeep(); !diags.HasErrors() && hasMark(marks) {
						return v.Mark(notMeasured), nil
					}
				}
			}
			return v, nil
		},
	})
}
