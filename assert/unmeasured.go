package assert

import (
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/customdecode"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// In a condition, a value that was not measured is null. HCL treats null as unequal to every
// number, so "result.….p95 != 5" would be true. A condition that uses such a null must count as not
// evaluated. There are three ways to find such conditions:
//
//   - References: the condition refers to the value, even in a branch that is not taken.
//   - Marks: the null carries a mark, which every value computed from it inherits. Marks find what
//     references cannot, such as values in the body of a for.
//   - The functions try and can: they would hide the mark of a null. So their result is marked if
//     their argument uses such a null.
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
			continue // the same error is reported when the condition is evaluated
		}
		if v.HasMark(notMeasured) {
			return spell(t)
		}
	}
	return ""
}

// spell writes a reference as in a plan, such as result.sim.chat.
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

// forgiving returns variants of the functions try and can, which turn an error into a value. The
// variants mark the value if it hides a missing measurement.
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

// watched returns a variant of the function f. The variant marks the result if an argument refers
// to a missing measurement, or to a value that contains a missing measurement.
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
