package client

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Said is the text of an answer. It may be cut if the answer is long.
type Said struct {
	Whole   string `json:",omitempty"` // text with the reasoning
	Visible string `json:",omitempty"` // text without the reasoning
	Calls   []Call `json:",omitempty"` // tool calls, in order of their index
	Cut     bool   `json:",omitempty"` // the answer was longer than what was kept

	Vectors [][]float32 `json:",omitempty"` // embeddings, one for each input
}

// Call is one call of a tool, assembled from its parts.
type Call struct{ Name, Arguments string }

// String returns the whole text, followed by the tool calls.
func (s Said) String() string {
	all := s.Whole
	for _, c := range s.Calls {
		all += c.Name + c.Arguments
	}
	return all
}

// mostCalls is the largest number of tool calls that are kept of an answer.
const mostCalls = 128

// kept collects the parts of a Said while they arrive. Its texts are still encoded as JSON.
type kept struct {
	on             bool
	whole, visible []byte
	calls          []keptCall
	vectors        [][]float32
	cut            bool
}

type keptCall struct {
	index           int
	name, arguments []byte
}

// add keeps the text of an event. The parameter room is the number of bytes that may still be kept.
// The result is the room that remains.
func (k *kept) add(e *Event, room int) int {
	take := func(to *[]byte, part []byte) {
		n := min(len(part), room)
		*to = append(*to, part[:n]...)
		k.cut = k.cut || n < len(part)
	}
	take(&k.visible, e.Visible)
	take(&k.whole, e.Raw)
	room -= min(len(e.Raw), room)
	for _, part := range e.Calls {
		call := k.call(part.Index)
		if call == nil {
			k.cut = true
			break
		}
		take(&call.name, part.Name)
		room -= min(len(part.Name), room)
		take(&call.arguments, part.Arguments)
		room -= min(len(part.Arguments), room)
	}
	return room
}

// call returns the kept tool call with the given index, and adds it if it is new; nil if the answer
// has too many calls.
func (k *kept) call(index int) *keptCall {
	i := slices.IndexFunc(k.calls, func(c keptCall) bool { return c.index == index })
	switch {
	case i >= 0:
		return &k.calls[i]
	case len(k.calls) >= mostCalls:
		return nil
	}
	k.calls = append(k.calls, keptCall{index: index})
	return &k.calls[len(k.calls)-1]
}

func (k *kept) said() Said {
	out := Said{Whole: k.decoded(k.whole), Visible: k.decoded(k.visible), Cut: k.cut, Vectors: k.vectors}
	for _, c := range k.calls {
		out.Calls = append(out.Calls, Call{k.decoded(c.name), k.decoded(c.arguments)})
	}
	return out
}

// decoded returns the text of the JSON string raw. If the string was cut in the middle of a
// character, that character is left out.
func (k *kept) decoded(raw []byte) string {
	if !k.cut {
		return unquote(raw)
	}
	// If the text was cut inside a character, leave out the first part of that character: at most
	// 11 bytes. The longest character in JSON has 12 bytes, an escaped surrogate pair such as
	// \ud83d\ude00.
	for back := 0; back < 12 && back < len(raw); back++ {
		part := raw[:len(raw)-back]
		if text, ok := decode(part); ok {
			return strings.TrimRight(text, string(utf8.RuneError))
		}
	}
	return ""
}
