package assert

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// ofNothing marks values that are made from an empty list. HCL's alltrue of an empty list is true,
// so a condition would always pass if an "if" removed every element of its list. The same holds for
// the negation of anytrue.
const ofNothing = mark("of nothing")

// ofSomething returns a variant of HCL's function alltrue or anytrue. It marks the result if the
// list is empty, because an empty list proves nothing.
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
