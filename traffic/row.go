package traffic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Row is one request of a data set.
type Row struct {
	Line int // line in the file at which the row begins, from 1
	// Messages are the messages of a chat, as they were written: an array of objects,
	// each with a role. nil if Prompt is the user's only message.
	Messages json.RawMessage
	Prompt   string
	// MaxTokens is the length of the answer in tokens; 0 for the workload's length.
	MaxTokens int
	// Tools and ResponseFormat are sent as they are; nil if not sent.
	Tools, ResponseFormat json.RawMessage
	// Answer is the right answer, as JSON; nil if the row has none. It is compared with the
	// server's answer, and never sent.
	Answer json.RawMessage
}

// Fields returns the fields that the row adds to the body of its request. It returns nil if the row
// adds no field.
func (r *Row) Fields() map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, v := range map[string]json.RawMessage{"tools": r.Tools, "response_format": r.ResponseFormat} {
		if v != nil {
			out[name] = v
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// Text returns the text of the row's prompt or messages. It leaves out images and tools.
func (r *Row) Text() string {
	if r.Messages == nil {
		return r.Prompt
	}
	var b strings.Builder
	var messages []struct{ Content json.RawMessage }
	_ = json.Unmarshal(r.Messages, &messages) // readRow accepts only valid messages
	for _, m := range messages {
		var text string
		var parts []struct{ Text string }
		if json.Unmarshal(m.Content, &text) != nil {
			_ = json.Unmarshal(m.Content, &parts)
		}
		b.WriteString(text)
		for _, p := range parts {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

const maxTokens = 100_000_000

// readRow reads the JSON of one row, and keeps no part of the slice raw. It ignores members that
// Row does not have.
func readRow(raw []byte, line int) (Row, error) {
	if !json.Valid(raw) {
		return Row{}, badJSON(raw)
	}
	if raw[0] != '{' {
		return Row{}, fmt.Errorf("it is %s, not an object", kindOf(raw))
	}
	found := map[string][]byte{}
	members(raw, func(name, v []byte) {
		switch name := string(name); name {
		case "messages", "prompt", "max_tokens", "tools", "response_format", "answer", "conversations":
			if delete(found, name); v[0] != 'n' {
				found[name] = v
			}
		}
	})
	row := Row{Line: line}
	messages := found["messages"]
	var err error
	if row.Prompt, err = asked(messages, found["prompt"], found["conversations"]); err != nil {
		return Row{}, err
	}
	if v := found["tools"]; v != nil && v[0] != '[' {
		return Row{}, errors.New("its tools are no list")
	}
	if v := found["response_format"]; v != nil && v[0] != '{' {
		return Row{}, errors.New("its response_format is not an object")
	}
	if n := found["max_tokens"]; n != nil {
		if json.Unmarshal(n, &row.MaxTokens) != nil || row.MaxTokens < 1 || row.MaxTokens > maxTokens {
			return Row{}, fmt.Errorf("its max_tokens is %s, but not a whole number from 1 to %d", kindOf(n), maxTokens)
		}
	}
	row.Messages, row.Tools = bytes.Clone(messages), bytes.Clone(found["tools"])
	row.ResponseFormat, row.Answer = bytes.Clone(found["response_format"]), bytes.Clone(found["answer"])
	return row, nil
}

// asked returns the text of a row that has no messages: of exactly one of a prompt and conversations.
func asked(messages, prompt, conversations []byte) (text string, err error) {
	switch {
	case messages != nil && prompt != nil:
		return "", errors.New("it has both messages and a prompt")
	case messages != nil:
		return "", checkMessages(messages)
	case prompt == nil && conversations != nil:
		return firstTurn(conversations)
	case prompt == nil:
		return "", errors.New(`it has neither "messages" nor a "prompt"`)
	case json.Unmarshal(prompt, &text) != nil:
		return "", errors.New("its prompt is no text")
	case strings.TrimSpace(text) == "":
		return "", errors.New("its prompt is empty")
	}
	return text, nil
}

// errSilent means that nobody asks anything in a conversation of ShareGPT, so the row is left out.
var errSilent = errors.New("no person speaks in any of its conversations")

// firstTurn returns what a person says first in a conversation of ShareGPT, a list of objects with
// the members from and value.
func firstTurn(raw []byte) (string, error) {
	var turns []struct{ From, Value string }
	if json.Unmarshal(raw, &turns) != nil {
		return "", errors.New(`its conversations are not a list of {"from", "value"}`)
	}
	for _, t := range turns {
		if (t.From == "human" || t.From == "user") && strings.TrimSpace(t.Value) != "" {
			return t.Value, nil
		}
	}
	return "", errSilent
}

func badJSON(raw []byte) error {
	if bytes.IndexByte(raw, 0) >= 0 {
		return errors.New("it holds a NUL byte")
	}
	var all json.RawMessage
	err := json.Unmarshal(raw, &all)
	if bad, ok := errors.AsType[*json.SyntaxError](err); ok && bad.Offset >= int64(len(raw)) {
		return errors.New("it is not valid JSON: it ends too early")
	}
	return notJSON(err)
}

// It names the place and never quotes the file, which may hold private data or not be meant for
// tokgate at all.
func notJSON(err error) error {
	if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("it is not valid JSON: unexpected character at byte %d", bad.Offset)
	}
	if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		kind, _, _ := strings.Cut(bad.Value, " ")
		return fmt.Errorf("its %s is of the JSON type %s, which is not expected", bad.Field, kind)
	}
	return errors.New("it is not valid JSON")
}

func kindOf(raw []byte) string {
	text := bytes.TrimSpace(raw)
	if len(text) == 0 {
		return "empty"
	}
	if _, err := strconv.ParseFloat(string(text), 64); err == nil {
		return "a number"
	}
	switch text[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		text = bytes.Trim(text, `"`)
	}
	return fmt.Sprintf("a text of %d bytes", len(text))
}
