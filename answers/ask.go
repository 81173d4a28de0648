package answers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tokgate/tokgate/metric"
)

// Ask is what a request asks of its answer.
type Ask struct {
	parses bool // response_format is one of JSON
	schema *jsonschema.Resolved
	tools  map[string]*jsonschema.Resolved // by name; nil: none is offered
}

// Read takes from the fields of a request's body what its answer can be held to:
// response_format and tools. The error says which schema cannot be read; what it
// belongs to is then not looked at.
func Read(fields map[string]any) (*Ask, error) {
	raw, err := json.Marshal(map[string]any{"response_format": fields["response_format"], "tools": fields["tools"]})
	if err != nil {
		return &Ask{}, err
	}
	var body struct {
		Format *struct {
			Type   string `json:"type"`
			Schema struct {
				Schema json.RawMessage `json:"schema"`
			} `json:"json_schema"`
		} `json:"response_format"`
		Tools []struct {
			Function struct {
				Name       string          `json:"name"`
				Parameters json.RawMessage `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
	}
	a := &Ask{}
	if err := json.Unmarshal(raw, &body); err != nil {
		return a, fmt.Errorf("response_format or tools is not what OpenAI's API has: %w", err)
	}
	if f := body.Format; f != nil && strings.HasPrefix(f.Type, "json") {
		schema, err := resolve(f.Schema.Schema)
		if err != nil {
			return a, fmt.Errorf("the schema of response_format cannot be read: %w", err)
		}
		a.parses, a.schema = true, schema
	}
	tools := map[string]*jsonschema.Resolved{}
	for _, t := range body.Tools {
		schema, err := resolve(t.Function.Parameters)
		if err != nil {
			return a, fmt.Errorf("the schema of the tool %q cannot be read: %w", t.Function.Name, err)
		}
		tools[t.Function.Name] = schema
	}
	if len(tools) > 0 {
		a.tools = tools
	}
	return a, nil
}

// resolve prepares a schema; nil where there is none. Nothing is loaded: a reference
// to another document is an error.
func resolve(raw json.RawMessage) (*jsonschema.Resolved, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, err
	}
	return schema.Resolve(nil)
}

// Look is what an answer came to. A nil Ask asks for nothing.
func (a *Ask) Look(s Said) metric.Answer {
	var out metric.Answer
	form(s, &out)
	if a == nil {
		return out
	}
	if a.parses {
		out.JSON = metric.FoundIf(!s.Cut && meets(s.Text, a.schema))
	}
	if a.tools != nil {
		out.Call = metric.FoundIf(!s.Cut && a.called(s.Calls))
	}
	return out
}

// called reports whether every call is of an offered tool, as it wants to be called, and
// whether there is one.
func (a *Ask) called(calls []Call) bool {
	for _, c := range calls {
		schema, offered := a.tools[c.Name]
		if !offered || !meets(c.Arguments, schema) {
			return false
		}
	}
	return len(calls) > 0
}

// meets reports whether text is one JSON value that the schema allows; nil allows all.
func meets(text string, schema *jsonschema.Resolved) bool {
	v, ok := value(text)
	return ok && (schema == nil || schema.Validate(v) == nil)
}

// value reads text as one JSON value.
func value(text string) (v any, ok bool) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	if d.Decode(&v) != nil {
		return nil, false
	}
	_, err := d.Token()
	return v, err == io.EOF
}
