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

// Ask holds what a request requires of its answer.
type Ask struct {
	parses bool // response_format requires JSON
	schema *jsonschema.Resolved
	tools  map[string]*jsonschema.Resolved // schemas of the arguments, by tool; nil without tools
}

// Read returns what a request requires of its answer. It reads the fields response_format and tools
// of the request's body. If it cannot read a schema, it returns an error that names the schema.
// Answers are then not checked against that schema.
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

// resolve prepares a schema for checks; nil if there is no schema. A reference to another document
// is an error, because resolve loads nothing.
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

// Look examines an answer. A nil Ask checks only the findings that apply to every answer.
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

// called reports whether the answer has tool calls, and all of them are valid. A valid call names
// an offered tool, and its arguments match the tool's schema.
func (a *Ask) called(calls []Call) bool {
	for _, c := range calls {
		schema, offered := a.tools[c.Name]
		if !offered || !meets(c.Arguments, schema) {
			return false
		}
	}
	return len(calls) > 0
}

// meets reports whether the text is a single JSON value that the schema allows. A nil schema allows
// any value.
func meets(text string, schema *jsonschema.Resolved) bool {
	v, ok := value(text)
	return ok && (schema == nil || schema.Validate(v) == nil)
}

func value(text string) (v any, ok bool) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	if d.Decode(&v) != nil {
		return nil, false
	}
	_, err := d.Token()
	return v, err == io.EOF
}
