package traffic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Talks returns the data set with its rows as conversations. A turn ends where the recording has an
// answer. If own is set, the recorded answers are left out, because the server's own take their place.
// The error names a row that cannot be sent, or says that no row has several turns.
func (d *Dataset) Talks(own bool) (*Dataset, error) {
	out := *d
	out.Rows = slices.Clone(d.Rows)
	several := false
	for i := range out.Rows {
		r := &out.Rows[i]
		if r.Messages == nil {
			continue
		}
		turns, err := turnsOf(r.Messages, own)
		if err == nil && own && r.Tools != nil && len(turns) > 1 {
			err = errors.New("has tools, and the server's calls of them would have no results")
		}
		if err != nil {
			return nil, fmt.Errorf("the row %s:%d %w", d.Path, r.Line, err)
		}
		r.Messages = list(turns[0])
		if len(turns) > 1 {
			r.Turns, several = turns, true
		}
	}
	if !several {
		return nil, fmt.Errorf("no row of %s has more than one turn", d.Path)
	}
	return &out, nil
}

// Turns returns how many turns the rows have.
func (d *Dataset) Turns() (t Turns) {
	for i := range d.Rows {
		n := max(len(d.Rows[i].Turns), 1)
		t.Mean, t.Max = t.Mean+float64(n)/float64(len(d.Rows)), max(t.Max, n)
	}
	return t
}

// list returns the JSON list of messages that stand in parts, one after the other.
func list(parts ...json.RawMessage) json.RawMessage {
	return slices.Concat([]byte("["), bytes.Join(raws(parts), []byte(",")), []byte("]"))
}

func raws(parts []json.RawMessage) (out [][]byte) {
	for _, p := range parts {
		out = append(out, p)
	}
	return out
}

func turnsOf(messages []byte, own bool) (turns []json.RawMessage, err error) {
	var now [][]byte // messages since the last turn
	asked := false   // one of them wants an answer
	end := func() {
		turns = append(turns, bytes.Join(now, []byte(",")))
		now, asked = nil, false
	}
	err = elements(messages, func(m []byte) error {
		switch role := roleIn(m); role {
		case "assistant":
			if asked {
				end()
			}
			if own && len(turns) > 0 {
				return nil
			}
		case "tool", "function":
			if own {
				return errors.New("has results of tools, which belong to the recorded calls")
			}
			asked = true
		case "system", "developer":
		default:
			asked = true
		}
		now = append(now, m)
		return nil
	})
	if asked {
		end()
	}
	if err == nil && len(turns) == 0 {
		err = errors.New("has no message of a user")
	}
	return turns, err
}

func roleIn(message []byte) (role string) {
	members(message, func(name, v []byte) {
		if string(name) == "role" {
			_ = json.Unmarshal(v, &role) // readRow accepts only texts
		}
	})
	return role
}

// Last returns the row as the request of its last turn, without the server's own answers.
func (r *Row) Last() *Row {
	if r.Turns == nil {
		return r
	}
	out := *r
	out.Messages = list(r.Turns...)
	return &out
}

// Adds returns the list of messages that turn n of a conversation adds to its prompt, from 2.
func (r *Row) Adds(n int) json.RawMessage { return list(r.Turns[n-1]) }

// Next returns the messages of turn n, from 2, which go on from those that were sent before. If own is
// not nil, it is what the server answered; otherwise the recorded answer is repeated.
func (r *Row) Next(n int, sent json.RawMessage, own *string) json.RawMessage {
	before := sent[1 : len(sent)-1]
	if own == nil {
		return list(before, r.Turns[n-1])
	}
	said, _ := json.Marshal(map[string]string{"role": "assistant", "content": *own}) // encoding texts cannot fail
	return list(before, said, r.Turns[n-1])
}

// talkOf returns a conversation of ShareGPT as the messages of a chat. What one speaker says in several
// parts is one message, because many chat templates want speakers to take turns. Whoever is neither a
// person nor the system counts as the assistant.
func talkOf(raw []byte) (json.RawMessage, error) {
	parts, err := partsOf(raw)
	if err != nil {
		return nil, err
	}
	var out []map[string]string
	speaks := false
	for _, p := range parts {
		role := "assistant"
		switch p.From {
		case "human", "user":
			role, speaks = "user", true
		case "system":
			role = "system"
		}
		switch n := len(out) - 1; {
		case role == "assistant" && !speaks: // an answer to nothing
		case n >= 0 && out[n]["role"] == role:
			out[n]["content"] += "\n\n" + p.Value
		default:
			out = append(out, map[string]string{"role": role, "content": p.Value})
		}
	}
	if !speaks {
		return nil, errSilent
	}
	return json.Marshal(out)
}

type part struct{ From, Value string }

// partsOf returns the parts of a conversation of ShareGPT that have text.
func partsOf(raw []byte) (out []part, err error) {
	if json.Unmarshal(raw, &out) != nil {
		return nil, errors.New(`its conversations are not a list of {"from", "value"}`)
	}
	return slices.DeleteFunc(out, func(p part) bool { return strings.TrimSpace(p.Value) == "" }), nil
}
