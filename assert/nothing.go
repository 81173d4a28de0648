package assert

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// A statement about every element of an empty list is true: alltrue of a list whose
// elements an if has all removed would pass whatever the server does, and so would
// the negation of anytrue. Such a value carries this mark. If the list itself is an
// empty part of result, that is found when the plan is checked.
const ofNothing = mark("of nothing")

// ofSomething is alltrue or anytrue with the result marked if the list is empty.
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
