package client

import (
	"bytes"
	"fmt"
)

// responses reads an event of OpenAI's Responses. Events that it does not name carry no token:
//
//	{"type": "response.output_text.delta", "delta": "…"}, response.refusal.delta
//	{"type": "response.reasoning_text.delta", "delta": "…"}, response.reasoning_summary_text.delta
//	{"type": "response.output_item.added", "output_index": 0, "item": {"type": "function_call", "name": "…"}}
//	{"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "…"}
//	{"type": "response.completed", "response": {"output": [{"type": "function_call"}], "usage": {…}}}: the last event
//	{"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}, …}}: likewise
//	{"type": "response.failed", "response": {"error": {"message": "…"}}}
//	{"type": "error", "message": "…"}
func (w *walker) responses() error {
	var x responsesEvent
	err := w.object(func(name []byte) (err error) {
		switch string(name) {
		case "type":
			x.kind, err = w.stringOr()
		case "delta":
			x.delta, err = w.stringOr()
		case "output_index":
			err = w.count(&x.index)
		case "item":
			err = w.field("name", func() (err error) { x.name, err = w.stringOr(); return err })
		case "response":
			err = w.response(&x)
		case "error":
			err = w.failure()
		case "message":
			start := w.i
			err = w.skip()
			w.message = w.b[start:w.i]
		default:
			err = w.skip()
		}
		return err
	})
	if err == nil {
		x.tell(w)
	}
	return err
}

// responsesEvent is what an event of Responses holds, as JSON strings without their quotes. Which of
// it counts depends on kind, which may come last.
type responsesEvent struct {
	kind, delta, name []byte
	reason            []byte // why the answer is incomplete
	called            bool   // the answer calls a tool
	index             int
}

// response reads the object of the whole response.
func (w *walker) response(x *responsesEvent) error {
	return w.object(func(name []byte) error {
		switch string(name) {
		case "usage":
			return w.responsesUsage()
		case "error":
			return w.failure()
		case "output":
			return w.array(func() error {
				return w.field("type", func() error {
					v, err := w.stringOr()
					x.called = x.called || string(v) == "function_call"
					return err
				})
			})
		case "incomplete_details":
			return w.field("reason", func() (err error) { x.reason, err = w.stringOr(); return err })
		}
		return w.skip()
	})
}

func (w *walker) responsesUsage() error {
	return w.object(func(name []byte) error {
		switch string(name) {
		case "input_tokens":
			return w.count(&w.u.Input)
		case "output_tokens":
			return w.count(&w.u.Output)
		case "output_tokens_details":
			return w.object(func(name []byte) error { return w.readCount(name, "reasoning_tokens", &w.u.Reasoning) })
		case "input_tokens_details":
			return w.object(func(name []byte) error { return w.readCount(name, "cached_tokens", &w.u.Cached) })
		}
		return w.skip()
	})
}

// tell sets the fields of the event.
func (x *responsesEvent) tell(w *walker) {
	e := w.e
	switch string(x.kind) {
	case "response.output_text.delta", "response.refusal.delta":
		w.says(&e.Content, x.delta)
		e.Visible = joined(e.Visible, x.delta)
	case "response.reasoning_text.delta", "response.reasoning_summary_text.delta":
		w.says(&e.Reasoning, x.delta)
	case "response.output_item.added":
		if len(x.name) > 0 {
			w.call(x.index)
			w.part().Name = w.calls(x.name)
		}
	case "response.function_call_arguments.delta":
		w.call(x.index)
		w.part().Arguments = w.calls(x.delta)
	case "response.completed", "response.incomplete":
		e.Done = true
		switch {
		case len(x.reason) == 0 && x.called:
			e.Finish = "tool_calls"
		case len(x.reason) == 0 && bytes.HasSuffix(x.kind, []byte("completed")):
			e.Finish = "stop"
		case len(x.reason) == 0 || string(x.reason) == "max_output_tokens":
			e.Finish = "length"
		default:
			e.Finish = finish(x.reason)
		}
	case "response.failed":
		if e.Err == "" {
			e.Err = "the response failed, without a message"
		}
	case "error":
		w.isError = true
	}
}

// messages reads an event of Anthropic's Messages. Its text, reasoning and calls stand in a block that
// begins, or in its deltas:
//
//	{"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "name": "…"}}
//	{"type": "content_block_delta", "index": 0, "delta": {"text": "…"}}, or with thinking or partial_json
//	{"type": "message_start", "message": {"usage": {…}}}
//	{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {…}}
//	{"type": "message_stop"}
//	{"type": "error", "error": {"message": "…"}}
//
// input_tokens leaves out the tokens of the cache, which Usage includes.
func (w *walker) messages() error {
	var call CallPart
	err := w.object(func(key []byte) error {
		switch string(key) {
		case "type":
			v, err := w.stringOr()
			w.e.Done = string(v) == "message_stop"
			return err
		case "index":
			return w.count(&call.Index)
		case "content_block", "delta":
			return w.object(func(key []byte) error { return w.block(key, &call) })
		case "message":
			return w.field("usage", w.messageUsage)
		case "usage":
			return w.messageUsage()
		case "error":
			return w.failure()
		}
		return w.skip()
	})
	if len(call.Name)+len(call.Arguments) > 0 {
		w.e.Calls = append(w.e.Calls, call)
	}
	return err
}

// block reads a member of a block of Messages, or of its delta.
func (w *walker) block(key []byte, call *CallPart) (err error) {
	var v []byte
	switch string(key) {
	case "text":
		return w.content()
	case "thinking":
		v, err = w.text(&w.e.Reasoning)
		w.e.Raw = joined(w.e.Raw, v)
	case "name":
		call.Name, err = w.text(&w.e.ToolCall)
	case "partial_json":
		call.Arguments, err = w.text(&w.e.ToolCall)
	case "stop_reason":
		if v, err = w.stringOr(); len(v) > 0 {
			w.e.Finish = stopped(v)
		}
	default:
		err = w.skip()
	}
	return err
}

// messageUsage reads the usage of Messages.
func (w *walker) messageUsage() error {
	read, written := -1, 0
	*w.u = Usage{Cached: -1}
	err := w.object(func(name []byte) error {
		switch string(name) {
		case "input_tokens":
			return w.count(&w.u.Input)
		case "output_tokens":
			return w.count(&w.u.Output)
		case "cache_read_input_tokens":
			return w.count(&read)
		case "cache_creation_input_tokens":
			return w.count(&written)
		}
		return w.skip()
	})
	w.u.Input += max(read, 0) + written
	w.u.Cached = read
	return err
}

// stopped returns the finish_reason that a stop_reason of Messages stands for.
func stopped(v []byte) string {
	switch string(v) {
	case "end_turn", "stop_sequence", "pause_turn":
		return "stop"
	case "max_tokens", "model_context_window_exceeded":
		return "length"
	case "tool_use":
		return "tool_calls"
	}
	return finish(v)
}

// vectors reads the answer to a request for embeddings, which is one JSON object:
//
//	{"data": [{"index": 0, "embedding": [0.1, …]}], "usage": {"prompt_tokens": 8}}
//
// An embedding is a list of numbers, or base64 of 32-bit numbers.
func (w *walker) vectors() error {
	return w.object(func(name []byte) error {
		switch string(name) {
		case "data":
			return w.array(func() error { return w.field("embedding", w.vector) })
		case "usage":
			return w.usage()
		case "error":
			return w.failure()
		}
		return w.skip()
	})
}

// vector counts an embedding that is not empty.
func (w *walker) vector() error {
	start := w.i
	if err := w.skip(); err != nil {
		return err
	}
	if n := w.i - start; n > 2 && (w.b[start] == '[' || w.b[start] == '"') {
		w.e.Vectors++
	}
	return nil
}

// vectorless explains why an answer is not the embeddings of a number of inputs; "" if it is.
func (e *Event) vectorless(inputs int) string {
	if e.Err != "" || e.Vectors == inputs {
		return ""
	}
	return fmt.Sprintf("the server sent %d embeddings for %d inputs", e.Vectors, inputs)
}

// field reads an object. It calls the function read at the value of the named member, which must
// read it, and skips all other members.
func (w *walker) field(wanted string, read func() error) error {
	return w.object(func(name []byte) error {
		if string(name) == wanted {
			return read()
		}
		return w.skip()
	})
}

// says counts text that was read, and sets *is if there is any.
func (w *walker) says(is *bool, v []byte) {
	if len(v) > 0 {
		*is = true
		w.e.Text += len(v)
		w.e.Raw = joined(w.e.Raw, v)
	}
}

// calls counts a part of a tool call that was read, and returns it.
func (w *walker) calls(v []byte) []byte {
	if len(v) > 0 {
		w.e.ToolCall = true
		w.e.Text += len(v)
	}
	return v
}

func (w *walker) part() *CallPart { return &w.e.Calls[len(w.e.Calls)-1] }
