package answers

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

func TestRepeated(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       float64
	}{
		{"nothing", "", 0},
		{"three words", "a a a", 0},
		{"four words", "a b c d", 0},
		{"one word six times", "no no no no no no", 1 - 1.0/3}, // three 4-grams: runs of four words
		{"one sign", strings.Repeat("!", 1000), 1 - 1.0/253},   // 253 4-grams
		{"ideographs count singly", strings.Repeat("好", 300), 1 - 1.0/253},
		{"a circle of five words", strings.Repeat("the cat sat down . ", 60), 1 - 5.0/253},
		{"only the end counts", strings.Repeat("x ", 500) + distinct(256), 0},
		{"prose", "It happens that an engine that is faster answers wrongly, and nobody who looks at latency alone will ever see it in a report.", 0},
		{"combining marks belong to their letter", "é é é é", 0},
	} {
		got := repeated(tt.text)
		must.Hold(t, math.Abs(got-tt.want) <= 1e-12, "%s: %v, want %v", tt.name, got, tt.want)
	}
}

// distinct returns n different words.
func distinct(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat("a", i+1) + " ")
	}
	return b.String()
}

const (
	format = `{"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema":
		{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}, "additionalProperties": false}}}}`
	tools = `{"tools": [{"type": "function", "function": {"name": "look", "parameters":
		{"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}}}, {"type": "function", "function": {"name": "now"}}]}`
)

func TestLook(t *testing.T) {
	for _, tt := range []struct {
		name, fields string
		said         Said
		want         metric.Answer
	}{
		{"a sentence", `{}`, Said{Text: "Yes, it is."}, metric.Answer{}},
		{"nothing", `{}`, Said{}, metric.Answer{Empty: true}},
		{"white space", `{}`, Said{Text: " \n\t"}, metric.Answer{Empty: true}},
		{"reasoning alone", `{}`, Said{Reasoning: "Let me see."}, metric.Answer{Empty: true}},
		{"a call alone is an answer", `{}`, Said{Calls: []Call{{Name: "look", Arguments: "{}"}}}, metric.Answer{}},
		{"a replacement character", `{}`, Said{Text: "a\ufffdb"}, metric.Answer{Invalid: true}},
		{"one at the end", `{}`, Said{Text: "ab\ufffd"}, metric.Answer{Invalid: true}},
		{"one at the end of what the limit cut", `{}`, Said{Text: "ab\ufffd", AtLimit: true}, metric.Answer{}},
		{"one before it", `{}`, Said{Text: "a\ufffdb", AtLimit: true}, metric.Answer{Invalid: true}},
		{"in the reasoning", `{}`, Said{Reasoning: "\x00", Text: "b"}, metric.Answer{Invalid: true}},
		{"reasoning in a circle", `{}`, Said{Reasoning: strings.Repeat("wait, ", 99), Text: "b"}, metric.Answer{Repeats: true}},

		{"JSON", format, Said{Text: ` {"n": 4} `}, metric.Answer{JSON: metric.Yes}},
		{"fenced", format, Said{Text: "```json\n{\"n\": 4}\n```"}, metric.Answer{JSON: metric.No}},
		{"against the schema", format, Said{Text: `{"n": 4.5}`}, metric.Answer{JSON: metric.No}},
		{"more than the schema", format, Said{Text: `{"n": 4, "m": 1}`}, metric.Answer{JSON: metric.No}},
		{"two values", format, Said{Text: `{"n": 4} {"n": 4}`}, metric.Answer{JSON: metric.No}},
		{"cut off", format, Said{Text: `{"n": 4}`, Cut: true}, metric.Answer{JSON: metric.No}},
		{"any JSON", `{"response_format": {"type": "json_object"}}`, Said{Text: `[]`}, metric.Answer{JSON: metric.Yes}},
		{"text was asked for", `{"response_format": {"type": "text"}}`, Said{Text: `x`}, metric.Answer{}},

		{"a call", tools, Said{Calls: []Call{{Name: "look", Arguments: `{"city": "Ulm"}`}}}, metric.Answer{Call: metric.Yes}},
		{"two calls", tools, Said{Calls: []Call{{Name: "look", Arguments: `{"city": "Ulm"}`}, {Name: "now", Arguments: `{}`}}}, metric.Answer{Call: metric.Yes}},
		{"one of two is wrong", tools, Said{Calls: []Call{{Name: "look", Arguments: `{"city": "Ulm"}`}, {Name: "now", Arguments: `{`}}}, metric.Answer{Call: metric.No}},
		{"a tool that is not offered", tools, Said{Calls: []Call{{Name: "find", Arguments: `{}`}}}, metric.Answer{Call: metric.No}},
		{"an argument is missing", tools, Said{Calls: []Call{{Name: "look", Arguments: `{}`}}}, metric.Answer{Call: metric.No}},
		{"the call as text", tools, Said{Text: `<tool_call>{"name": "now"}</tool_call>`}, metric.Answer{Call: metric.No}},
	} {
		var fields map[string]any
		must.Do(t, json.Unmarshal([]byte(tt.fields), &fields))
		ask, err := Read(fields)
		must.Need(t, err == nil, "%s: %v", tt.name, err)
		must.Same(t, tt.name+" (-want +got)", tt.want, ask.Look(tt.said))
	}
}

// A requirement on answers that cannot be read is reported, and is not checked.
func TestReadRefuses(t *testing.T) {
	for _, fields := range []string{
		`{"response_format": {"type": "json_schema", "json_schema": {"schema": {"pattern": "("}}}}`,
		`{"response_format": {"type": "json_schema", "json_schema": {"schema": {"$ref": "https://example.com/a.json"}}}}`,
		`{"tools": [{"function": {"name": "x", "parameters": {"pattern": "("}}}]}`,
		`{"tools": 4}`,
	} {
		var m map[string]any
		must.Do(t, json.Unmarshal([]byte(fields), &m))
		ask, err := Read(m)
		must.Hold(t, err != nil, "%s: no error", fields)
		got := ask.Look(Said{Text: "{}"})
		must.Hold(t, got.JSON == metric.Unasked && got.Call == metric.Unasked, "%s: looked at all the same: %+v", fields, got)
	}
}

func FuzzLook(f *testing.F) {
	f.Add("a b c", "{}", "look")
	f.Add("\xff\xfe", "\x00", "")
	f.Fuzz(func(t *testing.T, text, arguments, name string) {
		var fields map[string]any
		_ = json.Unmarshal([]byte(tools), &fields)
		ask, _ := Read(fields)
		a := ask.Look(Said{Text: text, Reasoning: arguments, Calls: []Call{{Name: name, Arguments: arguments}}})
		r := repeated(text)
		must.Hold(t, r >= 0 && r < 1 && a.Call != metric.Unasked, "%v, %+v", r, a)
	})
}
