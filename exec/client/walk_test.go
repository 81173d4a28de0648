package client

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tokgate/tokgate/internal/must"
)

var events = []struct {
	name, json string
	want       Event
}{
	{"role only", `{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`, Event{}},
	{"role only, null", `{"choices":[{"finish_reason":null,"delta":{"role":"assistant","content":null}}]}`, Event{}},
	{"content", `{"choices":[{"delta":{"content":"Hi"}}]}`, Event{Content: true}},
	{"content, spaces", " { \"choices\" :\t[ { \"delta\" : { \"content\" : \"Hi\" } } ] }\r\n", Event{Content: true}},
	{"content that looks like JSON", `{"choices":[{"delta":{"content":"\"},\"usage\":{\"prompt_tokens\":9}}"}}]}`, Event{Content: true}},
	{"escaped key", `{"choices":[{"delta":{"\u0063ontent":"Hi"}}]}`, Event{Content: true}},
	{"text", `{"choices":[{"text":" word","index":0,"finish_reason":null}]}`, Event{Content: true}},
	{"empty text with the finish", `{"choices":[{"text":"","finish_reason":"length"}],"usage":{"completion_tokens":8,"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":0}}}`,
		Event{Finish: "length", Usage: &Usage{9, 8, 0, 0}}},
	{"reasoning", `{"choices":[{"delta":{"reasoning":"Hm"}}]}`, Event{Reasoning: true}},
	{"reasoning_content", `{"choices":[{"delta":{"content":null,"reasoning_content":"Hm"}}]}`, Event{Reasoning: true}},
	{"tool call, name", `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":""}}]}}]}`, Event{ToolCall: true}},
	{"tool call, arguments", `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}}]}`, Event{ToolCall: true}},
	{"tool call, nothing yet", `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":null,"arguments":""}}]}}]}`, Event{}},
	{"function_call", `{"choices":[{"delta":{"function_call":{"name":"f"}}}]}`, Event{ToolCall: true}},
	{"token ids", `{"choices":[{"delta":{"content":"ab"},"token_ids":[1, 22,333]}],"prompt_token_ids":null}`, Event{Content: true, Tokens: 3}},
	{"no token ids", `{"choices":[{"delta":{"content":"ab"},"token_ids":[]}]}`, Event{Content: true}},
	{"usage of its own", `{"choices":[],"usage":{"prompt_tokens":17,"completion_tokens":8,"total_tokens":25,"prompt_tokens_details":{"cached_tokens":3}}}`, Event{Usage: &Usage{17, 8, 3, 0}}},
	{"usage with reasoning", `{"choices":[],"usage":{"prompt_tokens":17,"completion_tokens":8,"completion_tokens_details":{"audio_tokens":0,"reasoning_tokens":5}}}`, Event{Usage: &Usage{17, 8, -1, 5}}},
	{"usage without details", `{"usage":{"prompt_tokens":17,"completion_tokens":8,"prompt_tokens_details":null},"choices":[]}`, Event{Usage: &Usage{17, 8, -1, 0}}},
	{"another choice", `{"choices":[{"index":1,"delta":{"content":"Hi"}}]}`, Event{Content: true, Several: true}},
	{"another tool call", `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"name":"f"}}]}}]}`, Event{ToolCall: true}},
	{"timings", `{"choices":[{"delta":{"content":"rt"}}],"timings":{"cache_n":0,"prompt_per_second":9945.7,"predicted_n":3,"predicted_ms":0.001}}`, Event{Content: true, Made: 3}},
	{"timings of junk", `{"choices":[{"delta":{"content":"rt"}}],"timings":[{"predicted_n":3}]}`, Event{Content: true}},
	{"usage null", `{"usage":null,"choices":[]}`, Event{}},
	{"usage of zeros", `{"usage":{"prompt_tokens":0,"completion_tokens":0}}`, Event{}},
	{"usage with floats", `{"usage":{"prompt_tokens":17.0,"completion_tokens":1e1}}`, Event{Usage: &Usage{17, 10, -1, 0}}},
	{"usage of junk", `{"usage":{"prompt_tokens":"17","completion_tokens":-3}}`, Event{}},
	{"another finish", `{"choices":[{"delta":{},"finish_reason":"eos\u0021"}]}`, Event{Finish: "eos!"}},
	{"error object", `{"error":{"message":"CUDA out of \"memory\"","type":"x","code":500}}`, Event{Err: `CUDA out of "memory"`}},
	{"error object without a message", `{"error":{"code":500}}`, Event{Err: `{"code":500}`}},
	{"error object, null message", `{"error":{"message":null}}`, Event{Err: `{"message":null}`}},
	{"error string", `{"error":"broken"}`, Event{Err: "broken"}},
	{"error null", `{"error":null,"choices":[{"delta":{"content":"Hi"}}]}`, Event{Content: true}},
	{"error false", `{"error":false}`, Event{}},
	{"object error", `{"object":"error","message":"too long","code":400}`, Event{Err: "too long"}},
	{"object error, escaped", `{"object":"\u0065rror","message":"too long"}`, Event{Err: "too long"}},
	{"object error, no message", `{"object":"error"}`, Event{Err: "an error without a message"}},
	{"not an error", `{"object":"text_completion","message":"hello"}`, Event{}},
	{"junk around", `{"a":[[],{},{"b":[1,-2.5e+3,true,false,null,"\ud83d\ude00"]}],"choices":[7,null,{"delta":[1]},{"delta":{"content":["Hi"]}}],"timings":{"error":"no"}}`, Event{}},
	{"not an object", `[1,2]`, Event{}},
}

// seen compares events, but not their text, which TestWalkCountsText checks.
var seen = cmpopts.IgnoreFields(Event{}, "Text", "Raw", "Visible", "Calls")

func TestWalkCountsText(t *testing.T) {
	for data, want := range map[string]int{
		`{"choices":[{"delta":{"content":"Hi"}}]}`:                           2,
		`{"choices":[{"delta":{"content":"Hi","reasoning":"hm."}}]}`:         5,
		`{"choices":[{"delta":{"content":""}}],"usage":{"prompt_tokens":9}}`: 0,
		`{"choices":[{"text":"größe"}]}`:                                     7, // ö and ß are two bytes each
	} {
		var e Event
		var u Usage
		err := walk([]byte(data), &e, &u)
		must.Hold(t, err == nil && e.Text == want, "%s: %d bytes, want %d; %v", data, e.Text, want, err)
	}
}

func TestWalk(t *testing.T) {
	for _, tt := range events {
		var got Event
		var u Usage
		if err := walk([]byte(tt.json), &got, &u); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		must.Same(t, tt.name+" (-want +got)", tt.want, got, seen)
		if ref, ok := reference([]byte(tt.json)); !ok || !cmp.Equal(ref, got, cmpopts.IgnoreFields(Event{}, "Text", "Raw", "Visible", "Calls", "Several")) {
			t.Errorf("%s: the reference says %v, %+v", tt.name, ok, ref)
		}
	}
}

func TestWalkRejects(t *testing.T) {
	deep := strings.Repeat(`{"a":`, maxDepth+1) + "1" + strings.Repeat("}", maxDepth+1)
	for _, bad := range []string{
		``, ` `, `{`, `{]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `[1,]`, `[1 2]`, `{"a":1}{`, `nul`, `tru`, `01`, `1.`, `.5`, `-`, `1e`, `+1`,
		`"a`, `"\x"`, `"\u12g4"`, `"\u123`, "\"a\nb\"", "\"a\x00b\"", `'a'`, `{"choices":[{"delta":{"content":"a}]}`, `{"usage":{"prompt_tokens":1x}}`,
		"\x00", deep,
	} {
		var e Event
		var u Usage
		err := walk([]byte(bad), &e, &u)
		must.Hold(t, err != nil, "%.60q was accepted", bad)
	}
	okay := strings.Repeat(`[`, maxDepth) + strings.Repeat("]", maxDepth)
	var e Event
	var u Usage
	err := walk([]byte(okay), &e, &u)
	must.Hold(t, err == nil, "depth %d: %v", maxDepth, err)
}

// Reading a chunk of a stream allocates no memory.
func TestWalkAllocations(t *testing.T) {
	var e Event
	var u Usage
	for _, tt := range events {
		if tt.want.Err != "" || tt.want.Finish == "eos!" || tt.name == "escaped key" || tt.name == "usage with floats" || tt.name == "usage of junk" {
			continue
		}
		data := []byte(tt.json)
		n := testing.AllocsPerRun(100, func() { _ = walk(data, &e, &u) })
		must.Hold(t, n == 0, "%s: %v allocations, want 0", tt.name, n)
	}
}

// member and value represent a JSON document as written: with the order of members, and with
// duplicate names.
type member struct {
	key   string
	value any // []member, []any, string, json.Number, bool or nil
	raw   string
}

// tree reads a JSON document with encoding/json, and keeps the order of members.
func tree(raw []byte) (any, bool) {
	if !json.Valid(raw) {
		return nil, false
	}
	raw = bytes.TrimSpace(raw)
	switch raw[0] {
	case '{', '[':
		d := json.NewDecoder(bytes.NewReader(raw))
		_, _ = d.Token()
		members, elements := []member{}, []any{}
		for d.More() {
			var m member
			if raw[0] == '{' {
				key, err := d.Token()
				if err != nil {
					return nil, false
				}
				m.key = key.(string)
			}
			var v json.RawMessage
			if err := d.Decode(&v); err != nil {
				return nil, false
			}
			sub, ok := tree(v)
			if !ok {
				return nil, false
			}
			m.value, m.raw = sub, string(v)
			members, elements = append(members, m), append(elements, sub)
		}
		if raw[0] == '{' {
			return members, true
		}
		return elements, true
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := d.Token()
	return v, err == nil || err == io.EOF
}

// reference returns what walk should return. It uses encoding/json.
func reference(raw []byte) (Event, bool) {
	var e Event
	u := Usage{Cached: -1}
	doc, ok := tree(raw)
	if !ok {
		return e, false
	}
	each := func(v any, f func(m member)) {
		if members, ok := v.([]member); ok {
			for _, m := range members {
				f(m)
			}
		}
	}
	elements := func(v any, f func(v any)) {
		if list, ok := v.([]any); ok {
			for _, v := range list {
				f(v)
			}
		}
	}
	text := func(v any, is *bool) {
		if s, ok := v.(string); ok && s != "" {
			*is = true
		}
	}
	count := func(v any, n *int) {
		if x, ok := v.(json.Number); ok {
			if f, err := x.Float64(); err == nil && f >= 0 && f <= 1e15 && f == math.Trunc(f) {
				*n = int(f)
			}
		}
	}
	function := func(v any) {
		each(v, func(m member) {
			if m.key == "name" || m.key == "arguments" {
				text(m.value, &e.ToolCall)
			}
		})
	}
	isError, words := false, "an error without a message"
	each(doc, func(m member) {
		switch m.key {
		case "choices":
			elements(m.value, func(v any) {
				each(v, func(m member) {
					switch m.key {
					case "text":
						text(m.value, &e.Content)
					case "finish_reason":
						if s, ok := m.value.(string); ok && s != "" {
							e.Finish = bounded(s)
						}
					case "token_ids":
						elements(m.value, func(any) { e.Tokens++ })
					case "delta":
						each(m.value, func(m member) {
							switch m.key {
							case "content":
								text(m.value, &e.Content)
							case "reasoning", "reasoning_content":
								text(m.value, &e.Reasoning)
							case "function_call":
								function(m.value)
							case "tool_calls":
								elements(m.value, func(v any) {
									each(v, func(m member) {
										if m.key == "function" {
											function(m.value)
										}
									})
								})
							}
						})
					}
				})
			})
		case "usage":
			each(m.value, func(m member) {
				switch m.key {
				case "prompt_tokens":
					count(m.value, &u.Input)
				case "completion_tokens":
					count(m.value, &u.Output)
				case "completion_tokens_details":
					each(m.value, func(m member) {
						if m.key == "reasoning_tokens" {
							count(m.value, &u.Reasoning)
						}
					})
				case "prompt_tokens_details":
					each(m.value, func(m member) {
						if m.key == "cached_tokens" {
							count(m.value, &u.Cached)
						}
					})
				}
			})
		case "timings":
			each(m.value, func(m member) {
				if m.key == "predicted_n" {
					count(m.value, &e.Made)
				}
			})
		case "object":
			if m.value == "error" {
				isError = true
			}
		case "message":
			switch v := m.value.(type) {
			case string:
				words = bounded(v)
			case bool:
				words = m.raw
				if !v {
					words = ""
				}
			case nil:
				words = ""
			default:
				words = bounded(m.raw)
			}
		case "error":
			if e.Err != "" {
				return
			}
			switch v := m.value.(type) {
			case nil:
			case bool:
				if v {
					e.Err = "true"
				}
			case string:
				e.Err = bounded(v)
			case []member:
				for _, m := range v {
					if m.key == "message" {
						if s, ok := m.value.(string); ok {
							e.Err = bounded(s)
						} else if m.value == nil {
							e.Err = ""
						} else {
							e.Err = bounded(m.raw)
						}
					}
				}
				if e.Err == "" {
					e.Err = bounded(m.raw)
				}
			default:
				e.Err = bounded(m.raw)
			}
		}
	})
	if isError && e.Err == "" {
		e.Err = words
	}
	if u.Input > 0 || u.Output > 0 {
		e.Usage = &u
	}
	return e, true
}

func FuzzWalk(f *testing.F) {
	for _, tt := range events {
		f.Add([]byte(tt.json))
	}
	for _, s := range []string{`{"choices":[{"delta":{"content":"a","content":""}}],"error":"","error":{"message":1}}`, `{"usage":{"prompt_tokens":1e400}}`, `{"a":1,}`, `"\ud800"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got Event
		var u Usage
		err := walk(data, &got, &u)
		if err == errDeep {
			return
		}
		want, ok := reference(data)
		must.Need(t, ok == (err == nil), "%q: %v, encoding/json says valid is %v", data, err, ok)
		if ok && !cmp.Equal(want, got, cmpopts.IgnoreFields(Event{}, "Text", "Raw", "Visible", "Calls", "Several")) {
			t.Fatalf("%q (-want +got):\n%s", data, cmp.Diff(want, got, seen))
		}
	})
}

// BenchmarkWalk measures the cost of reading one ordinary chunk.
func BenchmarkWalk(b *testing.B) {
	chunk := []byte(`{"id":"chatcmpl-5f0c2a4be6f74a5d8a1b","object":"chat.completion.chunk","created":1795178385,"model":"m","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null,"token_ids":null}],"usage":{"prompt_tokens":1024,"total_tokens":1100,"completion_tokens":76}}`)
	var e Event
	var u Usage
	b.ReportAllocs()
	b.SetBytes(int64(len(chunk)))
	for b.Loop() {
		if err := walk(chunk, &e, &u); err != nil || !e.Content {
			b.Fatal(err)
		}
	}
}
