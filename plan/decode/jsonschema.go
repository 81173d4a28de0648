package decode

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tokgate/tokgate/metric"
)

// JSONSchema writes the language as a JSON Schema (draft 2020-12), for editors
// of plans in JSON syntax. It is made from the same data that the decoder reads.
// It knows names, shapes and which strings are durations, and takes whatever
// holds a template ("${…}") for right: what passes may still be a wrong plan, as
// `tokgate validate` would say, but what it refuses is one.
func JSONSchema() []byte {
	s := jsonSchema{}
	root := s.body(Schema, "")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = "https://raw.githubusercontent.com/tokgate/tokgate/main/plan/schema/plan.schema.json"
	root["title"] = "tokgate plan, JSON syntax (.hcl.json)"
	root["$defs"] = s
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // strings, slices and maps
	}
	return append(out, '\n')
}

type object = map[string]any

// jsonSchema is what the schema refers to, by name.
type jsonSchema object

// body is the content of a block.
func (s jsonSchema) body(b *Block, path string) object {
	properties := object{"//": object{"description": "A comment."}}
	var required []string
	for _, a := range b.Attrs {
		if a.Later {
			continue
		}
		properties[a.Name] = s.attr(a)
		if a.Required {
			required = append(required, a.Name)
		}
	}
	for _, c := range b.Blocks {
		if !c.Later {
			properties[c.Name] = s.block(c, strings.TrimPrefix(path+"."+c.Name, "."))
		}
	}
	out := object{"type": "object", "description": b.Doc, "properties": properties}
	if b.Free == "" {
		out["additionalProperties"] = false
	}
	if required != nil {
		out["required"] = required
	}
	return out
}

// block is what a block's name stands for: its body, or an object with a body
// for each label; instead of each there may be a list.
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

// attr is an attribute's value. The type is defined once; beside the reference
// stands what the attribute means.
func (s jsonSchema) attr(a *Attr) object {
	doc := a.Doc
	if !a.Required && (a.Default != "" || a.Computed != "") {
		doc += " Default: " + a.defaultText() + "."
	}
	typ := a.Type
	if _, ok := metric.Lookup(a.Name); ok {
		typ = "threshold or list of thresholds"
	}
	name := "type." + strings.NewReplacer(" ", "-", `"`, "").Replace(typ)
	if _, ok := s[name]; !ok {
		s[name] = jsonType(typ)
	}
	out := ref(name)
	out["description"] = doc
	return out
}

func ref(name string) object { return object{"$ref": "#/$defs/" + name} }

func oneOrList(one object) object {
	return object{"anyOf": []any{one, object{"type": "array", "items": one}}}
}

// jsonType is what may be written for a type, by its name in the reference.
// Every attribute may be null, which is as if it were left out, and every string
// may be a template.
func jsonType(name string) object {
	template := object{"type": "string", "pattern": `[$%]\{`}
	anyOf := func(of ...object) object {
		all := []any{object{"type": "null"}, template}
		for _, o := range of {
			all = append(all, o)
		}
		return object{"anyOf": all}
	}
	list := func(items object) object { return object{"type": "array", "items": items} }
	var (
		text     = object{"type": "string"}
		number   = anyOf(object{"type": "number"})
		duration = anyOf(object{"type": "string", "pattern": `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`})
		anObject = object{"type": "object"}
	)
	switch name {
	case "any":
		return object{}
	case "bool":
		return anyOf(object{"type": "boolean"})
	case "number", "duration":
		return map[string]object{"number": number, "duration": duration}[name]
	case "string", "path", "type", "change", "server":
		return anyOf(text)
	case "object", "map of strings":
		return anyOf(anObject)
	case "rate or object":
		return anyOf(text, anObject)
	case "map or set of strings":
		return anyOf(anObject, list(object{}))
	case "list of strings", "list of paths", "list of numbers or strings":
		return anyOf(list(object{}))
	case "list of numbers":
		return anyOf(list(number))
	case "number or list of numbers":
		return anyOf(number, list(number))
	case "string or object":
		return anyOf(text, anObject)
	case "number or object":
		return anyOf(number, anObject)
	case `number, duration or "auto"`:
		return anyOf(number, duration, object{"const": "auto"})
	case "duration or object":
		return anyOf(duration, anObject)
	case `duration or "auto"`:
		return anyOf(duration, object{"const": "auto"})
	case "number or rate":
		return anyOf(number, text)
	case "number or share":
		return anyOf(number, object{"type": "string", "pattern": "%$"})
	case gpusType:
		return anyOf(number, list(object{}), object{"const": "all"})
	case "level or list of levels":
		return anyOf(object{"type": "number"}, text, list(object{}))
	case "threshold or list of thresholds", "string or list of strings", "server or list of servers", "workload or list of workloads":
		return anyOf(text, list(text))
	}
	panic(fmt.Sprintf("no JSON schema for the type %q", name))
}

// defaultText is the cell of the defaults column.
func (a *Attr) defaultText() string {
	switch {
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
