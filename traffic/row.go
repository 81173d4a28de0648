package traffic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	// Turns is what each turn of a conversation adds to its prompt, in the order of time: messages, one after
	// the other. Messages then are those of the first turn. nil if the row is a single request.
	Turns []json.RawMessage
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

// After returns the data set with a system message of the given text before each row. It returns an error
// if a row has a system message of its own.
func (d *Dataset) After(system string) (*Dataset, error) {
	out := *d
	out.Rows = slices.Clone(d.Rows)
	first, _ := json.Marshal(map[string]string{"role": "system", "content": system}) // encoding texts cannot fail
	for i := range out.Rows {
		r := &out.Rows[i]
		rest := r.Messages
		if rest == nil {
			rest, _ = json.Marshal([]map[string]string{{"role": "user", "content": r.Prompt}})
		} else if roleOf(rest) == "system" {
			return nil, fmt.Errorf("the row %s:%d has a system message of its own", d.Path, r.Line)
		}
		r.Prompt, r.Messages = "", slices.Concat([]byte("["), first, []byte(","), bytes.TrimLeft(rest, "[ \t\r\n"))
	}
	return &out, nil
}

// roleOf returns the role of the first message.
func roleOf(messages json.RawMessage) string {
	var list []struct{ Role string }
	if json.Unmarshal(messages, &list) != nil || len(list) == 0 {
		return ""
	}
	return list[0].Role
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
func readRow(raw []byte, line int, o Options) (Row, error) {
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
	if talk := found["conversations"]; talk != nil && o.Talks && messages == nil && found["prompt"] == nil {
		messages, err = talkOf(talk)
	}
	if err != nil {
		return Row{}, err
	}
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
	parts, err := partsOf(raw)
	if err != nil {
		return "", err
	}
	for _, p := range parts {
		if p.From == "human" || p.From == "user" {
			return p.Value, nil
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

// Question returns the text of a row that may be made shorter or longer. This is the prompt, or the
// last message of the user. It returns an error if this message is not text, or if it has images,
// because no tokenizer counts the tokens of an image.
func (r *Row) Question() (string, error) {
	if r.Messages == nil {
		return r.Prompt, nil
	}
	c, err := r.chat()
	return c.question, err
}

// Asking returns a copy of the row whose question is replaced by the given text.
func (r *Row) Asking(text string) Row {
	out := *r
	if r.Messages == nil {
		out.Prompt = text
		return out
	}
	c, err := r.chat()
	if err != nil {
		return out
	}
	said, _ := json.Marshal(text) // encoding a string cannot fail
	if n := len(c.parts); n > 0 {
		c.parts[n-1]["text"] = said
		said, _ = json.Marshal(c.parts)
	}
	c.messages[c.last]["content"] = said
	out.Messages, _ = json.Marshal(c.messages) // cannot fail: the messages come from JSON
	return out
}

// chat holds the messages of a row. The question is the user's last message, at index last.
type chat struct {
	messages []map[string]json.RawMessage
	last     int
	parts    []map[string]json.RawMessage // parts of the last message; nil if its content is text
	question string
}

func (r *Row) chat() (c chat, err error) {
	if err := json.Unmarshal(r.Messages, &c.messages); err != nil {
		return c, err
	}
	c.last = -1
	for i, m := range c.messages {
		var role string
		// This cannot fail, because a row with a message without a role was refused.
		_ = json.Unmarshal(m["role"], &role)
		text, parts, err := contentOf(m["content"])
		if err != nil {
			return c, fmt.Errorf("message %d %w", i+1, err)
		}
		if role == "user" {
			c.last, c.question, c.parts = i, text, parts
		}
	}
	if c.last < 0 {
		return c, errors.New("it has no message of a user")
	}
	return c, nil
}

func contentOf(content json.RawMessage) (text string, parts []map[string]json.RawMessage, err error) {
	if content == nil || json.Unmarshal(content, &text) == nil {
		return text, nil, nil
	}
	if err := json.Unmarshal(content, &parts); err != nil || len(parts) == 0 {
		return "", nil, errors.New("holds parts that are no objects")
	}
	for _, p := range parts {
		var kind string
		if _ = json.Unmarshal(p["type"], &kind); kind != "text" || json.Unmarshal(p["text"], &text) != nil {
			return "", nil, errors.New("holds a part that is not text, whose tokens cannot be counted")
		}
	}
	return text, parts, nil
}
