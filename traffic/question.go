package traffic

import (
	"encoding/json"
	"errors"
	"fmt"
)

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
