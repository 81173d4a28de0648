package runner

import (
	"fmt"

	"github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
)

// DecodeYAML reads a document into values: nil, a bool, a float64, a string, a
// []any or a map[string]any.
func DecodeYAML(src []byte) (any, error) {
	ty, err := yaml.ImpliedType(src)
	if err != nil {
		return nil, err
	}
	v, err := yaml.Unmarshal(src, ty)
	if err != nil {
		return nil, err
	}
	return plain(v), nil
}

func plain(v cty.Value) any {
	switch ty := v.Type(); {
	case v.IsNull():
		return nil
	case ty == cty.Bool:
		return v.True()
	case ty == cty.Number:
		n, _ := v.AsBigFloat().Float64()
		return n
	case ty == cty.String:
		return v.AsString()
	case ty.IsObjectType(), ty.IsMapType():
		out := map[string]any{}
		for k, x := range v.AsValueMap() {
			out[k] = plain(x)
		}
		return out
	case ty.IsTupleType(), ty.IsListType():
		out := []any{}
		for _, x := range v.AsValueSlice() {
			out = append(out, plain(x))
		}
		return out
	}
	return fmt.Sprint(v)
}

// at returns the value at a path of member names. It returns nil if a member is missing.
func at(v any, names ...string) any {
	for _, name := range names {
		v = property(v, name)
	}
	return v
}

// object returns v as an object. If v is not an object, it returns an empty one.
func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}
