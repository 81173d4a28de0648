package assert

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// What holds of every element holds of none: alltrue of nothing, such as what an
// if lets no element through to, would pass whatever the server does, and so would
// what is not anytrue. Their value carries a mark then. That a condition goes over
// a part of result that is empty is found with the plan.
const ofNothing = mark("of nothing")

// ofSomething is alltrue or anytrue, its result marked where it was given nothing.
func ofSomething(f function.Function) function.Function {
	params := f.Params()
	for i := range params {
		params[i].AllowMarked = true
	}
	return function.New(&function.Spec{
		Params:   params,
		VarParam: f.VarParam(),
		Type:     f.ReturnTypeForValues,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, err := f.Call(args)
			if err != nil || len(args) != 1 {
				return v, err
			}
			if list, _ := args[0].Unmark(); list.IsKnown() && !list.IsNull() && list.CanIterateElements() && list.LengthInt() == 0 {
				v = v.Mark(ofNothing)
			}
			return v, nil
		},
	})
}
