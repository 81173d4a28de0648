package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
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
	Minimum     *float64           `json:"minimum"`
	Pattern     string             `json:"pattern"`
	Format      string             `json:"format"`
	Defs        map[string]*schema `json:"$defs"`
}

func readSchema(t *testing.T) *schema {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(SchemaJSON))
	dec.DisallowUnknownFields()
	var s schema
	if err := dec.Decode(&s); err != nil {
		t.Fatal(err)
	}
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
		if s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(str) {
			fail("%q does not match %s", str, s.Pattern)
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
		if s.Minimum != nil && n < *s.Minimum {
			fail("%v is below %v", n, *s.Minimum)
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
	if err := d.Write(&b); err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(b.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
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
		{"negative", `exit_code -1`, "$.exit_code: -1 is below 0"},
		{"unknown outcome", `outcome "fine"`, "$.outcome: fine is not one of [pass inconclusive fail error skipped pending]"},
		{"other version", `schema "tokgate.results/2"`, "$.schema: tokgate.results/2 is not tokgate.results/1"},
		{"unknown field", `extra 1`, "$: extra is not in the schema"},
		{"no time", `started "today"`, `parsing time "today"`},
		{"no number", `salt "0x1"`, `does not match`},
		{"null list", `cases null`, `$.cases: <nil> is no array`},
	}
	for _, tt := range tests {
		var b bytes.Buffer
		if err := passing().Write(&b); err != nil {
			t.Fatal(err)
		}
		var o map[string]any
		if err := json.Unmarshal(b.Bytes(), &o); err != nil {
			t.Fatal(err)
		}
		key, value, _ := strings.Cut(tt.change, " ")
		if key == "del" {
			delete(o, value)
		} else {
			var v any
			if err := json.Unmarshal([]byte(value), &v); err != nil {
				t.Fatal(err)
			}
			o[key] = v
		}
		if got := strings.Join(s.check(s, "$", o), "\n"); !strings.Contains(got, tt.want) {
			t.Errorf("%s: check = %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The schema has exactly the fields of the Go types. Fields with omitempty are not required.
func TestSchemaHasEveryField(t *testing.T) {
	root := readSchema(t)
	used := map[string]bool{}
	var walk func(at string, typ reflect.Type, s *schema)
	walk = func(at string, typ reflect.Type, s *schema) {
		if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
			used[name] = true
		}
		s = s.resolve(root)
		for typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		switch {
		case s == nil:
			t.Errorf("%s: the schema refers to nothing", at)
		case typ == reflect.TypeFor[Number]():
			if s != root.Defs["number"] {
				t.Errorf("%s: a Number is not #/$defs/number", at)
			}
		case typ == reflect.TypeFor[time.Time]():
			if s.Format != "date-time" {
				t.Errorf("%s: a time is not a date-time", at)
			}
		case typ.Kind() == reflect.Slice:
			if s.Items == nil {
				t.Errorf("%s: no items", at)
				return
			}
			walk(at+"[]", typ.Elem(), s.Items)
		case typ.Kind() == reflect.Struct:
			names := map[string]bool{}
			for i := range typ.NumField() {
				f := typ.Field(i)
				name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
				names[name] = true
				p, ok := s.Properties[name]
				if !ok {
					t.Errorf("%s.%s is not in the schema", at, name)
					continue
				}
				if required := slices.Contains(s.Required, name); required == strings.HasPrefix(opts, "omit") {
					t.Errorf("%s.%s: required = %t, but the tag says %q", at, name, required, opts)
				}
				walk(at+"."+name, f.Type, p)
			}
			for name := range s.Properties {
				if !names[name] {
					t.Errorf("%s.%s is in the schema alone", at, name)
				}
			}
		}
	}
	walk("$", reflect.TypeFor[Document](), root)
	for name := range root.Defs {
		if !used[name] {
			t.Errorf("#/$defs/%s is not used", name)
		}
	}
}
