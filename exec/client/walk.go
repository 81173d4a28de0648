package client

import (
	"bytes"
	"encoding/json"

	"github.com/tokgate/tokgate/engine"
)

// walk reads the JSON of one event into e, and its usage into u. It accepts the same JSON as
// encoding/json (up to maxDepth), with keys in any order. It reads these fields of the chunks of
// chat and text completions:
//
//	choices[].delta.{content, reasoning, reasoning_content}
//	choices[].delta.tool_calls[].function.{name, arguments}, delta.function_call
//	choices[].text, choices[].finish_reason, choices[].token_ids, choices[].index
//	usage.{prompt_tokens, completion_tokens}, usage.prompt_tokens_details.cached_tokens,
//	usage.completion_tokens_details.reasoning_tokens
//	timings.predicted_n
//	error: a string or an object; {"object": "error", "message": …}
//
// A value of an unexpected type is skipped; null and an empty string count as missing.
func walk(data []byte, e *Event, u *Usage) error { return walkAs(engine.Chat, data, e, u) }

// walkAs is like walk, for the events of any API.
func walkAs(api engine.API, data []byte, e *Event, u *Usage) error {
	*e = Event{Calls: e.Calls[:0]}
	*u = Usage{Cached: -1}
	w := walker{scanner: scanner{b: data}, e: e, u: u}
	w.space()
	if err := w.as(api); err != nil {
		return err
	}
	w.space()
	if w.i != len(w.b) {
		return errJSON
	}
	if w.isError && e.Err == "" {
		e.Err = message(w.message)
	}
	if u.Input > 0 || u.Output > 0 {
		e.Usage = u
	}
	return nil
}

type walker struct {
	scanner
	e *Event
	u *Usage

	isError bool   // "object": "error"
	message []byte // top-level message, raw
}

// as reads a document of an API. It calls no function value, because w would then be allocated on the
// heap.
func (w *walker) as(api engine.API) error {
	switch api {
	case engine.Responses:
		return w.responses()
	case engine.Messages:
		return w.messages()
	case engine.Embeddings:
		return w.vectors()
	}
	return w.top()
}

func (w *walker) top() error {
	return w.object(func(name []byte) error {
		switch string(name) {
		case "choices":
			return w.array(func() error { return w.choice() })
		case "usage":
			return w.usage()
		case "timings": // llama.cpp's
			return w.object(func(name []byte) error { return w.readCount(name, "predicted_n", &w.e.Made) })
		case "error":
			return w.failure()
		case "object":
			v, err := w.stringOr()
			w.isError = w.isError || err == nil && (string(v) == "error" || bytes.IndexByte(v, '\\') >= 0 && unquote(v) == "error")
			return err
		case "message":
			start := w.i
			err := w.skip()
			w.message = w.b[start:w.i]
			return err
		}
		return w.skip()
	})
}

func (w *walker) choice() error {
	return w.object(func(name []byte) error {
		switch string(name) {
		case "delta":
			return w.delta()
		case "text":
			return w.content()
		case "finish_reason":
			v, err := w.stringOr()
			if err == nil && len(v) > 0 {
				w.e.Finish = finish(v)
			}
			return err
		case "index":
			var index int
			err := w.count(&index)
			w.e.Several = w.e.Several || index > 0
			return err
		case "token_ids":
			return w.array(func() error { w.e.Tokens++; return w.skip() })
		}
		return w.skip()
	})
}

func (w *walker) delta() error {
	return w.object(func(name []byte) error {
		switch string(name) {
		case "content":
			return w.content()
		case "reasoning", "reasoning_content":
			v, err := w.text(&w.e.Reasoning)
			w.e.Raw = joined(w.e.Raw, v)
			return err
		case "tool_calls":
			return w.array(func() error { return w.toolCall() })
		case "function_call":
			w.call(0)
			return w.function()
		}
		return w.skip()
	})
}

func (w *walker) toolCall() error {
	w.call(0)
	return w.object(func(name []byte) error {
		switch string(name) {
		case "index":
			return w.count(&w.e.Calls[len(w.e.Calls)-1].Index)
		case "function":
			return w.function()
		}
		return w.skip()
	})
}

func (w *walker) call(index int) { w.e.Calls = append(w.e.Calls, CallPart{Index: index}) }

func (w *walker) function() error {
	part := &w.e.Calls[len(w.e.Calls)-1]
	return w.object(func(name []byte) (err error) {
		switch string(name) {
		case "name":
			part.Name, err = w.text(&w.e.ToolCall)
		case "arguments":
			part.Arguments, err = w.text(&w.e.ToolCall)
		default:
			err = w.skip()
		}
		return err
	})
}

func (w *walker) usage() error {
	return w.object(func(name []byte) error {
		switch string(name) {
		case "prompt_tokens":
			return w.count(&w.u.Input)
		case "completion_tokens":
			return w.count(&w.u.Output)
		case "completion_tokens_details":
			return w.object(func(name []byte) error { return w.readCount(name, "reasoning_tokens", &w.u.Reasoning) })
		case "prompt_tokens_details":
			return w.object(func(name []byte) error { return w.readCount(name, "cached_tokens", &w.u.Cached) })
		}
		return w.skip()
	})
}

// readCount reads the value of a field as a count if the field has the wanted name. It
// skips the value of any other field.
func (w *walker) readCount(name []byte, wanted string, n *int) error {
	if string(name) == wanted {
		return w.count(n)
	}
	return w.skip()
}

func (w *walker) failure() error {
	start := w.i
	if w.peek() != '{' {
		if err := w.skip(); err != nil {
			return err
		}
		if m := message(w.b[start:w.i]); w.e.Err == "" {
			w.e.Err = m
		}
		return nil
	}
	var words []byte
	err := w.object(func(name []byte) error {
		from := w.i
		err := w.skip()
		if string(name) == "message" {
			words = w.b[from:w.i]
		}
		return err
	})
	if err == nil && w.e.Err == "" {
		if w.e.Err = wordsOf(words); w.e.Err == "" {
			w.e.Err = bounded(string(w.b[start:w.i]))
		}
	}
	return err
}

// message returns the text of a JSON value named error. For null, false and the empty string it
// returns "", because these values mean no error.
func message(raw []byte) string {
	switch string(raw) {
	case "null", "false", `""`:
		return ""
	case "":
		return "an error without a message"
	}
	return wordsOf(raw)
}

// wordsOf returns the text of a JSON string. It returns any other value as it is written.
func wordsOf(raw []byte) string {
	if len(raw) > 1 && raw[0] == '"' {
		return bounded(unquote(raw[1 : len(raw)-1]))
	}
	if string(raw) == "null" {
		return ""
	}
	return bounded(string(raw))
}

// unquote decodes the content of a JSON string. If the content is invalid, it returns raw.
func unquote(raw []byte) string {
	if s, ok := decode(raw); ok {
		return s
	}
	return string(raw)
}

// decode returns the text of a JSON string, given the raw bytes between its quotes. It returns
// false if these bytes are invalid.
func decode(raw []byte) (s string, ok bool) {
	quoted := append(append([]byte{'"'}, raw...), '"')
	return s, json.Unmarshal(quoted, &s) == nil
}

// finish returns v as a string. It allocates nothing for the usual finish reasons.
func finish(v []byte) string {
	switch string(v) {
	case "stop":
		return "stop"
	case "length":
		return "length"
	case "tool_calls":
		return "tool_calls"
	case "content_filter":
		return "content_filter"
	case "abort":
		return "abort"
	}
	return bounded(unquote(v))
}

func (w *walker) content() error {
	v, err := w.text(&w.e.Content)
	w.e.Raw, w.e.Visible = joined(w.e.Raw, v), joined(w.e.Visible, v)
	return err
}

// text reads a string and returns its raw bytes. If the string is not empty, it sets *is to true.
// It skips a value that is no string.
func (w *walker) text(is *bool) ([]byte, error) {
	v, err := w.stringOr()
	if err != nil || len(v) == 0 {
		return nil, err
	}
	*is = true
	w.e.Text += len(v)
	return v, nil
}

// joined returns the bytes of a and then of b. It must not append to a, because the event's bytes
// follow a.
func joined(a, b []byte) []byte {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	return append(a[:len(a):len(a)], b...)
}
