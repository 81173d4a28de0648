package assert

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// alltrue of an empty list is true. So a condition with alltrue over a list that an "if" has
// emptied would always pass, and so would the negation of anytrue. Values made from such a list
// carry this mark. A list that is empty in result itself is found earlier, when the plan is
// checked.
const ofNothing = mark("of nothing")

// ofSomething returns alltrue or anytrue with a change: the result is marked if the list is empty.
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
