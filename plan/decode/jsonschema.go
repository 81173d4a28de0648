package decode

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// JSONSchema writes the language as a JSON Schema (draft 2020-12), for editors of plans in JSON
// syntax. It is generated from the schema that the decoder reads. It checks names, shapes and the
// syntax of durations, and accepts any template ("${…}"). A plan that the JSON Schema refuses is
// wrong. A plan that it accepts may still be wrong; `tokgate validate` checks everything.
func JSONSchema() []byte {
	s := jsonSchema{"set": object{"not": jsonAny(object{"type": "array", "maxItems": 0})}}
	root := s.body(schema, "")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = "https://raw.githubusercontent.com/tokgate/tokgate/main/plan/schema/plan.schema.json"
	root["title"] = "tokgate plan, JSON syntax (.hcl.json)"
	root["$defs"] = s
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // cannot happen with strings, slices and maps
	}
	return append(out, '\n')
}

type object = map[string]any

type jsonSchema object

func (s jsonSchema) body(b *Block, path string) object {
	properties := object{"//": object{"description": "A comment."}}
	var required []string
	for _, a := range b.Attrs {
		properties[a.Name] = s.attr(a)
		if a.Required && !a.conditional() {
			required = append(required, a.Name)
		}
	}
	for _, c := range b.Blocks {
		properties[c.Name] = s.block(c, strings.TrimPrefix(path+"."+c.Name, "."))
	}
	out := object{"type": "object", "description": b.Doc, "properties": properties}
	switch {
	case b.Series: // which may have any name
		out["additionalProperties"] = s.typeOf(&Attr{}, "threshold or list of thresholds")
	case b.Free == "":
		out["additionalProperties"] = false
	}
	if required != nil {
		out["required"] = required
	}
	if rules := b.rules(); rules != nil {
		out["allOf"] = rules
	}
	return out
}

// Where a template decides it, the rules accept the plan.
func (b *Block) rules() []any {
	var all []any
	rule := func(name string, then object) {
		all = append(all, object{"if": set(name), "then": then})
	}
	clashes := func(name string, not []Clash) {
		for _, c := range not {
			if _, _, outside := inBlock(c.With); !outside { // what is in another block cannot be seen from here
				rule(name, object{"not": set(c.With)})
			}
		}
	}
	for _, a := range b.Attrs {
		clashes(a.Name, a.Not)
		if _, _, outside := inBlock(strings.Join(a.With, " ")); len(a.With) > 0 && !outside {
			rule(a.Name, maySet(a.With))
		}
		if a.Required && len(a.With) == 0 && len(a.Not) > 0 {
			instead := []string{a.Name}
			for _, c := range a.Not {
				instead = append(instead, c.With)
			}
			all = append(all, maySet(instead))
		}
		if a.Required && len(a.With) == 1 {
			rule(a.With[0], maySet([]string{a.Name}))
		}
	}
	for _, c := range b.Blocks {
		clashes(c.Name, c.Not)
	}
	for i, name := range b.One {
		var others []any
		for _, other := range b.One[i+1:] {
			others = append(others, set(other))
		}
		if others != nil {
			rule(name, object{"not": object{"anyOf": others}})
		}
	}
	if choice := slices.Concat(b.One, b.Any); len(choice) > 0 {
		all = append(all, maySet(choice))
	}
	return all
}

// set is the schema of a block in which a condition certainly holds.
func set(condition string) object {
	name, want, isValue := strings.Cut(condition, " = ")
	is := ref("set")
	if isValue {
		is = object{"const": json.RawMessage(want)}
	}
	return object{"type": "object", "required": []string{name}, "properties": object{name: is}}
}

func maySet(conditions []string) object {
	var any []any
	for _, c := range conditions {
		name, want, isValue := strings.Cut(c, " = ")
		may := object{"required": []string{name}}
		if isValue {
			may["properties"] = object{name: jsonAny(object{"const": json.RawMessage(want)})}
		}
		any = append(any, may)
	}
	return object{"anyOf": any}
}

func (s jsonSchema) block(b *Block, path string) object {
	name := "block." + path
	s[name] = s.body(b, path)
	out := oneOrList(ref(name))
	for range b.Labels {
		out = oneOrList(object{"type": "object", "additionalProperties": out})
	}
	out["description"] = b.Doc
	return out
}

func (s jsonSchema) attr(a *Attr) object {
	doc := a.Doc
	if !a.Required && (a.Default != "" || a.Computed != "") {
		doc += " Default: " + a.defaultText() + "."
	}
	out := s.typeOf(a, a.Type)
	out["description"] = doc + a.together()
	return out
}

func (s jsonSchema) typeOf(a *Attr, typ string) object {
	name := "type." + strings.NewReplacer(" ", "-", `"`, "").Replace(typ)
	if _, ok := s[name]; !ok {
		s[name] = jsonType(typ)
	}
	out := ref(name)
	if low, high := "minimum", "maximum"; a.Bounds != (Bounds{}) && strings.Contains(typ, "number") {
		if a.Above {
			low = "exclusiveMinimum"
		}
		if a.Below {
			high = "exclusiveMaximum"
		}
		out[low], out[high] = a.Min, a.Max // of numbers only: elsewhere they say nothing
	}
	if a.Keys != nil {
		keys := &Block{Attrs: a.Keys}
		properties, of := object{}, out
		if strings.HasPrefix(typ, "list") {
			of = object{}
			out["items"] = of
		}
		for _, k := range a.Keys {
			properties[k.Name] = s.attr(k)
		}
		of["properties"], of["patternProperties"], of["additionalProperties"] = properties, object{`[$%]\{`: true}, false
		if rules := keys.rules(); rules != nil {
			of["allOf"] = rules
		}
	}
	return out
}

func ref(name string) object { return object{"$ref": "#/$defs/" + name} }

func oneOrList(one object) object {
	return object{"anyOf": []any{one, object{"type": "array", "items": one}}}
}

// jsonType returns the JSON schema for a type of the language reference. Every attribute may be
// null, which means that it is not set. Every string may be a template.
func jsonType(name string) object {
	if name == "any" {
		return object{}
	}
	of, ok := jsonTypes[name]
	if !ok {
		panic(fmt.Sprintf("no JSON schema for the type %q", name))
	}
	return jsonAny(of...)
}

func jsonAny(of ...object) object {
	all := []any{object{"type": "null"}, object{"type": "string", "pattern": `[$%]\{`}}
	for _, o := range of {
		all = append(all, o)
	}
	return object{"anyOf": all}
}

var jsonTypes = func() map[string][]object {
	type of = []object
	list := func(items object) object { return object{"type": "array", "items": items} }
	var (
		digits   = object{"type": "number"}
		number   = jsonAny(digits)
		span     = object{"type": "string", "pattern": `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`}
		duration = jsonAny(span)
		auto     = object{"const": "auto"}
		text     = object{"type": "string"}
		share    = object{"type": "string", "pattern": "%$"}
		anObject = object{"type": "object"}
		anyList  = list(object{})
	)
	types := map[string][]object{
		"bool":                       {object{"type": "boolean"}},
		"number":                     {digits},
		"duration":                   {span},
		"rate":                       {text},
		"share":                      {digits, share},
		"limit":                      {digits, text},
		"rate or object":             {text, anObject},
		"map or set of strings":      {anObject, anyList},
		"list of numbers":            {list(number)},
		"number or list of numbers":  {number, list(number)},
		"string or object":           {text, anObject},
		"number or object":           {number, anObject},
		`number, duration or "auto"`: {number, duration, auto},
		"duration or object":         {duration, anObject},
		`duration or "auto"`:         {duration, auto},
		"number or rate":             {number, text},
		"number or share":            {number, share},
		gpusType:                     {number, anyList, object{"const": "all"}},
		"level or list of levels":    {digits, text, anyList},
	}
	for _, alike := range []struct {
		names []string
		of    of
	}{
		{[]string{"string", "path", "url", "type", "server", "comparison"}, of{text}},
		{[]string{"object", "object of limits", "map of strings", "map of shares", "map of headers", "map of parameters", "map of variables"}, of{anObject}},
		{[]string{"list of strings", "list of urls", "list of paths", "list of numbers or strings", "list of objects"}, of{anyList}},
		{[]string{"threshold or list of thresholds", "change", "string or list of strings", "server or list of servers", "workload or list of workloads"}, of{text, list(text)}},
	} {
		for _, name := range alike.names {
			types[name] = alike.of
		}
	}
	return types
}()

func (a *Attr) defaultText() string {
	switch {
	case a.Required && len(a.With) > 0:
		return "required with `" + strings.Join(a.With, "` or `") + "`"
	case a.Required:
		return "required"
	case a.Default != "":
		return "`" + a.Default + "`"
	case a.Computed != "":
		return cell(a.Computed)
	}
	return "none"
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
