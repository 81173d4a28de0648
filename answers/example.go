package answers

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Example returns an answer that meets the requirements: JSON by the schema of response_format, or
// a call of the first tool. If nothing is required, or no example of the schema is found, ok is
// false.
func (a *Ask) Example() (s Said, ok bool) {
	switch {
	case a == nil:
		return Said{}, false
	case a.parses:
		s.Text = example(a.schema)
		return s, meets(s.Text, a.schema)
	case a.tools != nil:
		name := slices.Min(slices.Collect(maps.Keys(a.tools)))
		s.Calls = []Call{{Name: name, Arguments: example(a.tools[name])}}
		return s, a.called(s.Calls)
	}
	return Said{}, false
}

func example(r *jsonschema.Resolved) string {
	var v any = map[string]any{}
	if r != nil {
		v = instance(r.Schema(), r.Schema(), 0)
	}
	raw, _ := json.Marshal(v) // v has only maps, lists, text and numbers, so Marshal cannot fail
	return string(raw)
}

// deepest is the largest depth of an example, for schemas that contain themselves.
const deepest = 16

// instance returns a value that satisfies most schemas. It takes the first alternative and the
// smallest number, and includes only the required fields of an object.
func instance(s, root *jsonschema.Schema, depth int) any {
	if s == nil || depth > deepest {
		return nil
	}
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok && root.Defs[name] != nil {
		return instance(root.Defs[name], root, depth+1)
	}
	for _, some := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf, s.AllOf} {
		if len(some) > 0 {
			return instance(some[0], root, depth+1)
		}
	}
	switch {
	case s.Const != nil:
		return *s.Const
	case len(s.Enum) > 0:
		return s.Enum[0]
	}
	kind := s.Type
	if kind == "" && len(s.Types) > 0 {
		kind = s.Types[0]
	}
	switch kind {
	case "string":
		return strings.Repeat("a", max(length(s.MinLength), 1))
	case "integer", "number":
		if s.Minimum != nil {
			return *s.Minimum
		}
		return 1
	case "boolean":
		return true
	case "null":
		return nil
	case "array":
		out := []any{}
		for range length(s.MinItems) {
			out = append(out, instance(s.Items, root, depth+1))
		}
		return out
	}
	out := map[string]any{}
	for _, name := range s.Required {
		out[name] = instance(s.Properties[name], root, depth+1)
	}
	return out
}

func length(n *int) int {
	if n == nil {
		return 0
	}
	return min(*n, 1000)
}
