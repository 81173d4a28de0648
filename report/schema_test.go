package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// schema is the subset of JSON Schema that the document's schema uses. Any other keyword is an
// error, so that the test ignores none.
type schema struct {
	Schema      string             `json:"$schema"`
	ID          string             `json:"$id"`
	Title       string             `json:"title"`
	Description string             `json:"description"`
	Ref         string             `json:"$ref"`
	Type        string             `json:"type"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
	Items       *schema            `json:"items"`
	OneOf       []*schema          `json:"oneOf"`
	Enum        []any              `json:"enum"`
	Const       any                `json:"const"`
	Additional  *schema            `json:"additionalProperties"`
	Least       int                `json:"minItems"`
	Most        int                `json:"maxItems"`
	Encoding    string             `json:"contentEncoding"`
	Format      string             `json:"format"`
	Defs        map[string]*schema `json:"$defs"`
}

func readSchema(t *testing.T) *schema {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(SchemaJSON))
	dec.DisallowUnknownFields()
	var s schema
	must.Do(t, dec.Decode(&s))
	return &s
}

func (s *schema) resolve(root *schema) *schema {
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
		return root.Defs[name]
	}
	return s
}

// check returns an error for each place in v that does not conform to the schema s.
func (s *schema) check(root *schema, at string, v any) (errs []string) {
	s = s.resolve(root)
	if s == nil {
		return []string{at + ": the schema refers to nothing"}
	}
	fail := func(format string, args ...any) { errs = append(errs, at+": "+fmt.Sprintf(format, args...)) }
	if s.Enum != nil && !slices.Contains(s.Enum, v) {
		fail("%v is not one of %v", v, s.Enum)
	}
	if s.Const != nil && s.Const != v {
		fail("%v is not %v", v, s.Const)
	}
	if s.OneOf != nil {
		matched := 0
		for _, o := range s.OneOf {
			if len(o.check(root, at, v)) == 0 {
				matched++
			}
		}
		if matched != 1 {
			fail("%v matches %d of oneOf", v, matched)
		}
	}
	switch s.Type {
	case "":
	case "object":
		o, ok := v.(map[string]any)
		if !ok {
			fail("%T is no object", v)
			return errs
		}
		for _, name := range s.Required {
			if _, ok := o[name]; !ok {
				fail("%s is missing", name)
			}
		}
		for name, value := range o {
			p, ok := s.Properties[name]
			if s.Additional != nil {
				p, ok = s.Additional, true
			}
			if !ok {
				fail("%s is not in the schema", name) // although the schema allows it
				continue
			}
			errs = append(errs, p.check(root, at+"."+name, value)...)
		}
	case "array":
		a, ok := v.([]any)
		if !ok {
			fail("%T is no array", v)
			return errs
		}
		for i, value := range a {
			errs = append(errs, s.Items.check(root, fmt.Sprintf("%s[%d]", at, i), value)...)
		}
	case "string":
		str, ok := v.(string)
		if !ok {
			fail("%T is no string", v)
			return errs
		}
		if s.Format == "date-time" {
			if _, err := time.Parse(time.RFC3339, str); err != nil {
				fail("%v", err)
			}
		}
	case "number", "integer":
		n, ok := v.(float64)
		if !ok {
			fail("%T is no number", v)
			return errs
		}
		if s.Type == "integer" && n != math.Trunc(n) {
			fail("%v is no integer", n)
		}
	case "boolean":
		if _, ok := v.(bool); !ok {
			fail("%T is no boolean", v)
		}
	case "null":
		if v != nil {
			fail("%v is not null", v)
		}
	default:
		fail("unknown type %s", s.Type)
	}
	return errs
}

func conforms(t *testing.T, d *Document) {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, d.Write(&b))
	var v any
	must.Do(t, json.Unmarshal(b.Bytes(), &v))
	s := readSchema(t)
	for _, e := range s.check(s, "$", v) {
		t.Error(e)
	}
}

func TestDocumentsConformToTheSchema(t *testing.T) {
	for name, d := range map[string]*Document{"rich": document(), "pass": passing(), "empty": emptyDocument()} {
		t.Run(name, func(t *testing.T) { conforms(t, d) })
	}
}

// The schema's validator finds errors. Without this test, a validator that finds none would pass.
func TestValidatorFindsErrors(t *testing.T) {
	s := readSchema(t)
	tests := []struct{ name, change, want string }{
		{"missing field", `del run`, "$: run is missing"},
		{"wrong type", `exit_code "4"`, "$.exit_code: string is no number"},
		{"fraction", `exit_code 1.5`, "$.exit_code: 1.5 is no integer"},
		{"unknown outcome", `outcome "fine"`, "$.outcome: fine is not one of [pending skipped pass inconclusive fail error saturated capped]"},
		{"other version", `schema "tokgate.results/1"`, "$.schema: tokgate.results/1 is not tokgate.results/2"},
		{"unknown field", `extra 1`, "$: extra is not in the schema"},
		{"no time", `run {"started": "today"}`, `parsing time "today"`},
		{"no value", `verdicts [{"value": "high"}]`, `high matches 0 of oneOf`},
		{"text in a map", `run {"servers": [{"fingerprint": {"gpu": 1}}]}`, `fingerprint.gpu: float64 is no string`},
		{"null list", `cases null`, `$.cases: <nil> is no array`},
	}
	for _, tt := range tests {
		var b bytes.Buffer
		must.Do(t, passing().Write(&b))
		var o map[string]any
		must.Do(t, json.Unmarshal(b.Bytes(), &o))
		key, value, _ := strings.Cut(tt.change, " ")
		if key == "del" {
			delete(o, value)
		} else {
			var v any
			must.Do(t, json.Unmarshal([]byte(value), &v))
			o[key] = v
		}
		got := strings.Join(s.check(s, "$", o), "\n")
		must.Hold(t, strings.Contains(got, tt.want), "%s: check = %q, want %q", tt.name, got, tt.want)
	}
}

// The schema follows from the Go types and their comments.
func TestSchemaIsThatOfTheTypes(t *testing.T) {
	g := generator{docs: comments(t, ".", "../metric", "../assert/verdict", "../assert/compare", "../plan"), defs: map[string]any{}}
	root := g.object(reflect.TypeFor[Document]())
	root["$schema"], root["$id"] = "https://json-schema.org/draft/2020-12/schema", "https://github.com/tokgate/tokgate/report/schema/results.schema.json"
	root["title"], root["$defs"] = "tokgate results, version 2", g.defs
	root["properties"].(map[string]any)["schema"] = map[string]any{"const": Schema}
	want := must.Get(json.MarshalIndent(root, "", "  "))(t)
	want = append(want, '\n')
	if bytes.Equal(want, SchemaJSON) {
		return
	}
	must.Need(t, *update, "the schema is not that of the types; run with -update to write it")
	must.Do(t, os.WriteFile("schema/results.schema.json", want, 0o644))
}

// comments returns the comments of the types and fields in some folders: "metric.Level",
// "metric.Level.Name".
func comments(t *testing.T, folders ...string) map[string]string {
	out := map[string]string{}
	for _, folder := range folders {
		files := must.Get(filepath.Glob(folder + "/*.go"))(t)
		for _, file := range files {
			f := must.Get(parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments))(t)
			for _, decl := range f.Decls {
				types, ok := decl.(*ast.GenDecl)
				if !ok || types.Tok != token.TYPE {
					continue
				}
				for _, spec := range types.Specs {
					typ := spec.(*ast.TypeSpec)
					name := f.Name.Name + "." + typ.Name.Name
					out[name] = oneLine(typ.Doc, types.Doc)
					if s, ok := typ.Type.(*ast.StructType); ok {
						for _, field := range s.Fields.List {
							for _, n := range field.Names {
								out[name+"."+n.Name] = oneLine(field.Doc, field.Comment)
							}
						}
					}
				}
			}
		}
	}
	return out
}

func oneLine(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if s := strings.Join(strings.Fields(g.Text()), " "); s != "" {
			return s
		}
	}
	return ""
}

// generator makes a JSON schema of Go types.
type generator struct {
	docs map[string]string
	defs map[string]any
}

func (g generator) of(typ reflect.Type) map[string]any {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch typ {
	case reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case reflect.TypeFor[[]byte]():
		return map[string]any{"type": "string", "contentEncoding": "base64"}
	case reflect.TypeFor[metric.Stat]():
		return map[string]any{"type": "string"}
	case reflect.TypeFor[metric.Value]():
		none := map[string]any{"type": "object", "required": []string{"why"}, "properties": map[string]any{"why": map[string]any{"type": "string"}}}
		return g.named("value", map[string]any{"description": g.docs["metric.Value"],
			"oneOf": []any{map[string]any{"type": "number"}, map[string]any{"enum": []string{"+Inf", "-Inf"}}, map[string]any{"type": "null"}, none}})
	case reflect.TypeFor[metric.Outcome]():
		var names []string
		for o := verdict.Pending; o <= metric.Capped; o++ {
			names = append(names, o.String())
		}
		return g.named("outcome", map[string]any{"description": g.docs["metric.Outcome"], "enum": names})
	case reflect.TypeFor[metric.Def]():
		text := map[string]any{"type": "string"}
		return g.named("metric", map[string]any{"type": "object", "description": "A metric, with the unit of its values and whether lower or higher is better.",
			"required": []string{"better", "name", "unit"}, "properties": map[string]any{"name": text, "unit": text, "better": map[string]any{"enum": []string{"neutral", "lower", "higher"}}}})
	}
	switch typ.Kind() {
	case reflect.Struct:
		name := strings.ReplaceAll(typ.String(), ".", "_")
		if g.defs[name] == nil {
			g.defs[name] = true // a type may contain itself
			g.defs[name] = g.object(typ)
		}
		return map[string]any{"$ref": "#/$defs/" + name}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": g.of(typ.Elem())}
	case reflect.Array:
		return map[string]any{"type": "array", "items": g.of(typ.Elem()), "minItems": typ.Len(), "maxItems": typ.Len()}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": g.of(typ.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	}
	return map[string]any{"type": "integer"}
}

func (g generator) named(name string, s map[string]any) map[string]any {
	g.defs[name] = s
	return map[string]any{"$ref": "#/$defs/" + name}
}

func (g generator) object(typ reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	g.fields(typ, properties, &required)
	slices.Sort(required)
	out := map[string]any{"type": "object", "properties": properties, "required": required}
	if doc := g.docs[typ.String()]; doc != "" {
		out["description"] = doc
	}
	return out
}

func (g generator) fields(typ reflect.Type, properties map[string]any, required *[]string) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
			continue
		case f.Anonymous && name == "":
			g.fields(f.Type, properties, required)
			continue
		}
		s := g.of(f.Type)
		if doc := g.docs[typ.String()+"."+f.Name]; doc != "" {
			s["description"] = doc
		}
		properties[name] = s
		if !strings.HasPrefix(opts, "omit") {
			*required = append(*required, name)
		}
	}
}
