package client

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"strconv"
)

// maxDepth bounds the nesting of an event's JSON. Real events need about eight
// levels.
const maxDepth = 200

var (
	errJSON = errors.New("not JSON")
	errDeep = errors.New("JSON nested too deeply")
)

// scanner reads the JSON in b from the position i. A method that reads a value moves to the
// position after the value. A method that reads a member's name moves to the member's value.
type scanner struct {
	b     []byte
	i     int
	depth int
}

func (s *scanner) space() {
	if s.i < len(s.b) && s.b[s.i] <= ' ' { // rarely true: servers write compact JSON
		s.spaces()
	}
}

func (s *scanner) spaces() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// enter steps into an object or array, which ends with the given byte. If the object or array is
// empty, enter moves past it and returns false.
func (s *scanner) enter(last byte) (more bool, err error) {
	if s.depth++; s.depth > maxDepth {
		return false, errDeep
	}
	s.i++
	s.space()
	if s.peek() == last {
		s.i++
		s.depth--
		return false, nil
	}
	return true, nil
}

// next moves past a comma, or past the given byte, which ends an object or array. It returns true
// after a comma.
func (s *scanner) next(last byte) (more bool, err error) {
	s.space()
	switch s.peek() {
	case ',':
		s.i++
		s.space()
		return true, nil
	case last:
		s.i++
		s.depth--
		return false, nil
	}
	return false, errJSON
}

// key reads the name of a member and the colon after it. The name is returned without escapes.
func (s *scanner) key() ([]byte, error) {
	raw, escaped, err := s.string()
	if err != nil {
		return nil, err
	}
	s.space()
	if s.peek() != ':' {
		return nil, errJSON
	}
	s.i++
	s.space()
	if escaped { // a name with escapes is so rare that an allocation does not matter
		return []byte(unquote(raw)), nil
	}
	return raw, nil
}

// object reads an object. For each member it calls the function read with the member's name, and
// that function must read the value. A value that is not an object is skipped. object must not keep
// the function, because the function and the scanner would then be allocated on the heap.
func (s *scanner) object(read func(name []byte) error) error {
	if s.peek() != '{' {
		return s.skip()
	}
	more, err := s.enter('}')
	for more && err == nil {
		var name []byte
		if name, err = s.key(); err != nil {
			return err
		}
		if err = read(name); err == nil {
			more, err = s.next('}')
		}
	}
	return err
}

// array reads an array. For each element it calls the function read, which must read the element. A
// value that is not an array is skipped.
func (s *scanner) array(read func() error) error {
	if s.peek() != '[' {
		return s.skip()
	}
	more, err := s.enter(']')
	for more && err == nil {
		if err = read(); err == nil {
			more, err = s.next(']')
		}
	}
	return err
}

// stringOr reads a string and returns its raw content, or skips a value of another
// type.
func (s *scanner) stringOr() (raw []byte, err error) {
	if s.peek() != '"' {
		return nil, s.skip()
	}
	raw, _, err = s.string()
	return raw, err
}

// string reads a string and returns the raw bytes between its quotes.
func (s *scanner) string() (raw []byte, escaped bool, err error) {
	if s.peek() != '"' {
		return nil, false, errJSON
	}
	b, i := s.b, s.i+1
	start := i
	for i < len(b) {
		// Skip eight bytes at a time: most of an event is strings whose content is not needed.
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
			s.i = i + 1
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

// special sets the top bit of x's lowest byte that is a quote, a backslash or a
// control character. It returns zero if there is none. Bits above that one are
// meaningless, because the subtraction for each comparison borrows upwards only
// (Mycroft's test; Warren, Hacker's Delight, 6-1).
func special(x uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	quote, slash := x^ones*'"', x^ones*'\\'
	return ((x-ones*' ')&^x | (quote-ones)&^quote | (slash-ones)&^slash) & tops
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

// count reads a number of tokens. A value that is not a number, or is not a valid
// count, leaves *n unchanged.
func (s *scanner) count(n *int) error {
	start := s.i
	if c := s.peek(); c != '-' && (c < '0' || c > '9') {
		return s.skip()
	}
	if err := s.number(); err != nil {
		return err
	}
	raw := s.b[start:s.i]
	v := 0
	for _, c := range raw {
		if c < '0' || c > '9' || v > 1e15 { // ParseFloat also reads 12.0 and 1e3
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
func (s *scanner) number() error {
	if s.peek() == '-' {
		s.i++
	}
	switch c := s.peek(); {
	case c == '0':
		s.i++
	case '1' <= c && c <= '9':
		s.digits()
	default:
		return errJSON
	}
	if s.peek() == '.' {
		s.i++
		if !s.digits() {
			return errJSON
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.i++
		if c := s.peek(); c == '+' || c == '-' {
			s.i++
		}
		if !s.digits() {
			return errJSON
		}
	}
	return nil
}

func (s *scanner) digits() bool {
	i := s.i
	for i < len(s.b) && s.b[i]-'0' <= 9 {
		i++
	}
	some := i > s.i
	s.i = i
	return some
}

// skip moves past a value of any type.
func (s *scanner) skip() error {
	switch c := s.peek(); c {
	case '"':
		_, _, err := s.string()
		return err
	case '{':
		return s.object(func([]byte) error { return s.skip() })
	case '[':
		return s.array(func() error { return s.skip() })
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.number()
}

func (s *scanner) literal(want string) error {
	if len(s.b)-s.i < len(want) || string(s.b[s.i:s.i+len(want)]) != want {
		return errJSON
	}
	s.i += len(want)
	return nil
}
