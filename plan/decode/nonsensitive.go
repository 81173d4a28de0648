package decode

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/customdecode"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/tokgate/tokgate/plan"
)

func (d *decoder) refuseSecret(expr hcl.Expression, name string) {
	source := "env.NAME"
	for _, t := range expr.Variables() {
		if root := t.RootName(); root == "env" || root == "var" && d.values[plan.StepName(t, 1)] != cty.NilVal &&
			hasMark(d.values[plan.StepName(t, 1)], sensitive) {
			source = root + "." + plan.StepName(t, 1)
			break
		}
	}
	d.errorf(expr.Range(), sumSecret, "%s is made of a secret. Only text of a server, of a request or of an error_message may be: numbers, names and conditions would carry the secret into the results. If the value is no secret, open it by its name: nonsensitive(%s).", name, source)
}

// nonsensitiveFunc returns the function that plans call as nonsensitive. It opens one value by its
// name, so that a policy and a reader see which.
func (d *decoder) nonsensitiveFunc() function.Function {
	evaluate := func(args []cty.Value) (cty.Value, error) {
		closure := customdecode.ExpressionClosureFromVal(args[0])
		name, diags := hcl.AbsTraversalForExpr(closure.Expression)
		if diags.HasErrors() || len(name) < 2 || name.RootName() != "env" && name.RootName() != "var" {
			return cty.DynamicVal, function.NewArgErrorf(0, "write the name of one value: nonsensitive(env.NAME) or nonsensitive(var.NAME)")
		}
		v, diags := closure.Value()
		if diags.HasErrors() {
			return cty.DynamicVal, diags
		}
		v, _ = v.UnmarkDeep()
		d.reveal(name, v)
		return v, nil
	}
	return function.New(&function.Spec{
		Description: "The value of env.NAME or of a sensitive variable, as one that is no secret: it may be used anywhere, and is shown.",
		Params:      []function.Parameter{{Name: "value", Type: customdecode.ExpressionClosureType}},
		Type: func(args []cty.Value) (cty.Type, error) {
			v, err := evaluate(args)
			return v.Type(), err
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return evaluate(args) },
	})
}

// The texts of v are then no secrets, and the value belongs to what determines the plan.
func (d *decoder) reveal(name hcl.Traversal, v cty.Value) {
	read := plan.Read{Name: plan.StepName(name, 1), Range: name.SourceRange()}
	if name.RootName() == "var" {
		read.Name = "var." + read.Name
	}
	if slices.Contains(d.out.Opened, read) {
		return
	}
	d.out.Opened = append(d.out.Opened, read)
	if !v.IsWhollyKnown() {
		return
	}
	d.hash.add("opened", read.Name, []byte(plainText(v)))
	eachText(v, func(s string) { d.revealed[s] = true })
}
