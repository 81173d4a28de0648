package client

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/bits"
	"strconv"
)

// maxDepth bounds the nesting of an event's JSON; real ones need about eight.
const maxDepth = 200

var (
	errJSON = errors.New("not JSON")
	errDeep = errors.New("JSON nested too deeply")
)

// walk reads one event's JSON into e, and into u what e.Usage then points to.
// It accepts exactly what encoding/json accepts (up to maxDepth), keys in any
// order, and takes what the chunks of chat and text completions have:
//
//	choices[].delta.{content, reasoning, reasoning_content}
//	choices[].delta.tool_calls[].function.{name, arguments}, delta.function_call
//	choices[].text, choices[].finish_reason, choices[].token_ids, choices[].index
//	usage.{prompt_tokens, completion_tokens}, usage.prompt_tokens_details.cached_tokens
//	timings.predicted_n
//	error: a string or an object; {"object": "error", "message": …}
//
// What has another type than expected is skipped: null, an empty string and
// junk all mean "none". It allocates only for an error's message or a
// finish_reason that nobody has heard of.
func walk(data []byte, e *Event, u *Usage) error {
	*e = Event{}
	*u = Usage{Cached: -1}
	w := walker{b: data, e: e, u: u}
	w.space()
	if err := w.top(); err != nil {
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

// walker is a position in b. Each method that reads a value leaves it behind
// that value; each that reads a member stands at the member's value.
type walker struct {
	b     []byte
	i     int
	depth int
	e     *Event
	u     *Usage

	isError bool   // "object": "error"
	message []byte // top-level message, raw
}

func (w *walker) space() {
	if w.i < len(w.b) && w.b[w.i] <= ' ' { // hardly ever: servers write compact JSON
		w.spaces()
	}
}

func (w *walker) spaces() {
	for w.i < len(w.b) {
		switch w.b[w.i] {
		case ' ', '\t', '\n', '\r':
			w.i++
		default:
			return
		}
	}
}

func (w *walker) peek() byte {
	if w.i < len(w.b) {
		return w.b[w.i]
	}
	return 0
}

// enter steps into an object or array, whose opening byte is open. more is
// false when it is empty and already left.
func (w *walker) enter(last byte) (more bool, err error) {
	if w.depth++; w.depth > maxDepth {
		return false, errDeep
	}
	w.i++
	w.space()
	if w.peek() == last {
		w.i++
		w.depth--
		return false, nil
	}
	return true, nil
}

// next steps behind the comma, or out behind last.
func (w *walker) next(last byte) (more bool, err error) {
	w.space()
	switch w.peek() {
	case ',':
		w.i++
		w.space()
		return true, nil
	case last:
		w.i++
		w.depth--
		return false, nil
	}
	return false, errJSON
}

// key reads a member's name and its colon. The bytes are raw when the name
// has no escape, else unescaped.
func (w *walker) key() ([]byte, error) {
	raw, escaped, err := w.string()
	if err != nil {
		return nil, err
	}
	w.space()
	if w.peek() != ':' {
		return nil, errJSON
	}
	w.i++
	w.space()
	if escaped { // legal, and never seen: worth an allocation
		return []byte(unquote(raw)), nil
	}
	return raw, nil
}

// object reads an object, giving each member's name to read, which reads the
// value. What is no object is skipped. read must not outlive the call: then
// neither it nor the walker lives on the heap.
func (w *walker) object(read func(name []byte) error) error {
	if w.peek() != '{' {
		return w.skip()
	}
	more, err := w.enter('}')
	for more && err == nil {
		var name []byte
		if name, err = w.key(); err != nil {
			return err
		}
		if err = read(name); err == nil {
			more, err = w.next('}')
		}
	}
	return err
}

// array reads an array, each element by read. What is no array is skipped.
func (w *walker) array(read func() error) error {
	if w.peek() != '[' {
		return w.skip()
	}
	more, err := w.enter(']')
	for more && err == nil {
		if err = read(); err == nil {
			more, err = w.next(']')
		}
	}
	return err
}

func (w *walker) top() error {
	return w.object(func(name []byte) error {
		switch string(name) {
		case "choices":
			return w.array(func() error { return w.choice() })
		case "usage":
			return w.usage()
		case "timings": // llama.cpp's
			return w.object(func(name []byte) error { return w.only(name, "predicted_n", &w.e.Made) })
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
			return w.text(&w.e.Content)
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
			return w.text(&w.e.Content)
		case "reasoning", "reasoning_content":
			return w.text(&w.e.Reasoning)
		case "tool_calls":
			return w.array(func() error { return w.toolCall() })
		case "function_call":
			return w.function()
		}
		return w.skip()
	})
}

func (w *walker) toolCall() error {
	return w.object(func(name []byte) error {
		if string(name) == "function" {
			return w.function()
		}
		return w.skip()
	})
}

func (w *walker) function() error {
	return w.object(func(name []byte) error {
		if string(name) == "name" || string(name) == "arguments" {
			return w.text(&w.e.ToolCall)
		}
		return w.skip()
	})
}

func (w *walker) usage() error {
	return w.object(func(name []byte) error {
		switch string(name) {
		case "prompt_tokens":
			return w.count(&w.u.Input)
		case "completion_tokens":
			return w.count(&w.u.Output)
		case "prompt_tokens_details":
			return w.object(func(name []byte) error { return w.only(name, "cached_tokens", &w.u.Cached) })
		}
		return w.skip()
	})
}

// only counts the member of that name and skips the others.
func (w *walker) only(name []byte, wanted string, n *int) error {
	if string(name) == wanted {
		return w.count(n)
	}
	return w.skip()
}

// failure reads the value of "error".
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

// message turns the value of an error into words: "" when it says that there
// is none.
func message(raw []byte) string {
	switch string(raw) {
	case "null", "false", `""`:
		return ""
	case "":
		return "an error without a message"
	}
	return wordsOf(raw)
}

// wordsOf is a string's text, and any other value as it is written.
func wordsOf(raw []byte) string {
	if len(raw) > 1 && raw[0] == '"' {
		return bounded(unquote(raw[1 : len(raw)-1]))
	}
	if string(raw) == "null" {
		return ""
	}
	return bounded(string(raw))
}

// unquote decodes a string's raw inside, which was checked before.
func unquote(raw []byte) string {
	var s string
	quoted := append(append([]byte{'"'}, raw...), '"')
	if json.Unmarshal(quoted, &s) != nil {
		return string(raw)
	}
	return s
}

// finish is v as a string, without an allocation for the usual reasons.
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

// text sets *is when the value is a string that is not empty.
func (w *walker) text(is *bool) error {
	v, err := w.stringOr()
	if err == nil && len(v) > 0 {
		*is = true
		w.e.Text += len(v)
	}
	return err
}

// stringOr reads a string and returns its raw inside, or skips a value of
// another type.
func (w *walker) stringOr() (raw []byte, err error) {
	if w.peek() != '"' {
		return nil, w.skip()
	}
	raw, _, err = w.string()
	return raw, err
}

// string reads a string and returns its raw inside.
func (w *walker) string() (raw []byte, escaped bool, err error) {
	if w.peek() != '"' {
		return nil, false, errJSON
	}
	b, i := w.b, w.i+1
	start := i
	for i < len(b) {
		// Eight bytes at a time: most of an event is strings that nobody reads.
		if i+8 <= len(b) {
			special := special(binary.LittleEndian.Uint64(b[i:]))
			if special == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(special) / 8
		}
		switch c := b[i]; {
		case c == '"':
			w.i = i + 1
			return b[start:i], escaped, nil
		case c == '\\':
			escaped = true
			if i++; i >= len(b) {
				return nil, false, errJSON
			}
			switch b[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if i+4 >= len(b) || !isHex(b[i+1]) || !isHex(b[i+2]) || !isHex(b[i+3]) || !isHex(b[i+4]) {
					return nil, false, errJSON
				}
				i += 4
			default:
				return nil, false, errJSON
			}
		case c < ' ':
			return nil, false, errJSON
		}
		i++
	}
	return nil, false, errJSON
}

// special has the top bit set of x's lowest byte that is a quote, a backslash
// or a control character, and is zero when there is none. Bits above that one
// mean nothing: subtracting from each byte what it is compared with borrows
// upwards only (Mycroft's test; Warren, Hacker's Delight, 6-1).
func special(x uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	quote, slash := x^ones*'"', x^ones*'\\'
	return ((x-ones*' ')&^x | (quote-ones)&^quote | (slash-ones)&^slash) & tops
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// count reads a number of tokens. What is not a number, or none that counts
// something, leaves *n alone.
func (w *walker) count(n *int) error {
	start := w.i
	if c := w.peek(); c != '-' && (c < '0' || c > '9') {
		return w.skip()
	}
	if err := w.number(); err != nil {
		return err
	}
	raw := w.b[start:w.i]
	v := 0
	for _, c := range raw {
		if c < '0' || c > '9' || v > 1e15 { // 12.0 and 1e3 are numbers too
			f, err := strconv.ParseFloat(string(raw), 64)
			if err != nil || f < 0 || f > 1e15 || f != math.Trunc(f) {
				return nil
			}
			*n = int(f)
			return nil
		}
		v = v*10 + int(c-'0')
	}
	if v <= 1e15 {
		*n = v
	}
	return nil
}

// number reads a number by JSON's grammar.
func (w *walker) number() error {
	if w.peek() == '-' {
		w.i++
	}
	switch c := w.peek(); {
	case c == '0':
		w.i++
	case '1' <= c && c <= '9':
		w.digits()
	default:
		return errJSON
	}
	if w.peek() == '.' {
		w.i++
		if !w.digits() {
			return errJSON
		}
	}
	if c := w.peek(); c == 'e' || c == 'E' {
		w.i++
		if c := w.peek(); c == '+' || c == '-' {
			w.i++
		}
		if !w.digits() {
			return errJSON
		}
	}
	return nil
}

func (w *walker) digits() bool {
	start := w.i
	for w.i < len(w.b) && '0' <= w.b[w.i] && w.b[w.i] <= '9' {
		w.i++
	}
	return w.i > start
}

// skip reads a value of any type.
func (w *walker) skip() error {
	switch c := w.peek(); c {
	case '"':
		_, _, err := w.string()
		return err
	case '{':
		return w.object(func([]byte) error { return w.skip() })
	case '[':
		return w.array(func() error { return w.skip() })
	case 't':
		return w.literal("true")
	case 'f':
		return w.literal("false")
	case 'n':
		return w.literal("null")
	}
	return w.number()
}

func (w *walker) literal(want string) error {
	if len(w.b)-w.i < len(want) || string(w.b[w.i:w.i+len(want)]) != want {
		return errJSON
	}
	w.i += len(want)
	return nil
}
