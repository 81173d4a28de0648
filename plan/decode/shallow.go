package decode

import (
	"bytes"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// shallow reports whether a source in native syntax is certainly within the bounds b. If so, it
// also returns where the source may be cut into parts of about size bytes. Each part has only whole
// blocks and arguments. shallow looks at each byte once, which is cheaper than HCL's lexer. It
// returns false for sources that only the lexer can check, such as those with heredocs, comments
// inside a line, $${, exponents, unpaired brackets or broken UTF-8.
func shallow(src []byte, b bounds, size int) (ends []int, ok bool) {
	s := scan{src: src, bounds: b, frames: []opened{{by: '{'}}}
	from := 0
	// Refuse a byte order mark inside the source. HCL accepts one at the start of what it parses,
	// and the source is parsed in parts.
	if !utf8.Valid(src) || bytes.LastIndex(src, []byte("\ufeff")) > 0 {
		return nil, false
	}
	for s.at < len(src) {
		next := s.scanChar
		if s.top().by == '"' {
			next = s.quoted
		}
		if !next() {
			return nil, false
		}
		if len(s.frames) == 1 && src[s.at-1] == '\n' && s.at-from >= size {
			ends = append(ends, s.at)
			from = s.at
		}
	}
	if from < len(src) || len(ends) == 0 {
		ends = append(ends, len(src))
	}
	return ends, true
}

// parseParts parses a source part by part. This takes less memory, because HCL's parser keeps all
// tokens of what it parses. It returns nil for a source with a mistake: the parser explains
// mistakes better if it sees the whole source.
func parseParts(src []byte, filename string, ends []int) *hcl.File {
	var whole *hcl.File
	var body *hclsyntax.Body
	start := hcl.InitialPos
	for _, end := range ends {
		f, diags := hclsyntax.ParseConfig(src[start.Byte:end], filename, start)
		if diags.HasErrors() {
			return nil
		}
		part := f.Body.(*hclsyntax.Body)
		if whole == nil {
			whole, body = f, part
		} else {
			for name, attribute := range part.Attributes {
				if body.Attributes[name] != nil {
					return nil
				}
				body.Attributes[name] = attribute
			}
			body.Blocks = append(body.Blocks, part.Blocks...)
			body.SrcRange.End, body.EndRange = part.SrcRange.End, part.EndRange
		}
		start.Line += bytes.Count(src[start.Byte:end], []byte{'\n'})
		start.Byte = end
	}
	whole.Bytes = src
	return whole
}

// scan is the state of a scan through a source.
type scan struct {
	bounds
	src    []byte
	at     int
	frames []opened // open brackets and quotes, from the outermost
}

// opened is a bracket, a quote or an expression of a template that was opened. The field by is its
// first byte, or '$' for an expression of a template.
type opened struct {
	by        byte
	operators int // number of operators since the last comma or line; never too low
}

func (s *scan) top() *opened { return &s.frames[len(s.frames)-1] }

// peek returns the next byte. It returns 0 at the end of the source.
func (s *scan) peek() byte {
	if s.at < len(s.src) {
		return s.src[s.at]
	}
	return 0
}

// skip passes over bytes.
func (s *scan) skip(while func(byte) bool) {
	for s.at < len(s.src) && while(s.src[s.at]) {
		s.at++
	}
}

func (s *scan) operator() bool {
	s.top().operators++
	return s.top().operators <= s.operators
}

func (s *scan) open(by byte) bool {
	if !s.operator() || len(s.frames) > s.depth {
		return false
	}
	s.frames = append(s.frames, opened{by: by})
	return true
}

func (s *scan) shut(by ...byte) bool {
	if len(s.frames) == 1 || bytes.IndexByte(by, s.top().by) < 0 {
		return false
	}
	s.frames = s.frames[:len(s.frames)-1]
	return true
}

// scanChar scans the next character outside quotes. It returns false if a limit is exceeded, or if
// a bracket does not match.
func (s *scan) scanChar() bool {
	c := s.src[s.at]
	s.at++
	switch c {
	case '{', '[', '(', '"':
		return s.open(c)
	case '}':
		return s.shut('{', '$')
	case ']':
		return s.shut('[')
	case ')':
		return s.shut('(')
	case ',':
		s.top().operators = 0
	case '\n':
		if s.top().by == '{' {
			s.top().operators = 0
		}
	case '#':
		s.comment()
	case '/':
		if s.peek() == '/' {
			s.comment()
			return true
		}
		return s.peek() != '*' && s.operator()
	case '<':
		return s.peek() != '<' && s.operator()
	case '+', '-', '*', '%', '!', '&', '|', '?', '=', '>', '.', ':':
		return s.operator()
	default:
		switch {
		case digit(c):
			return s.literal()
		case letter(c):
			s.skip(func(c byte) bool { return letter(c) || digit(c) || c == '-' })
		}
	}
	return true
}

// comment skips a comment with the end of its line.
func (s *scan) comment() {
	s.skip(func(c byte) bool { return c != '\n' })
	s.at = min(s.at+1, len(s.src))
}

// literal skips a number. A dot in it may be an operator, so each dot counts towards the limit on
// operators.
func (s *scan) literal() bool {
	from := s.at - 1
	for digit(s.peek()) || s.peek() == '.' {
		if s.peek() == '.' && !s.operator() {
			return false
		}
		s.at++
	}
	return s.peek()|0x20 != 'e' && s.at-from <= s.digits
}

// quoted scans the next character of a source inside quotes. It returns false if the source is
// difficult; see shallow.
func (s *scan) quoted() bool {
	c := s.src[s.at]
	s.at++
	switch c {
	case '"':
		return s.shut('"')
	case '\n', '\r':
		return false
	case '\\':
		s.at++
		return s.at <= len(s.src) && s.src[s.at-1] >= ' ' && s.src[s.at-1] < 0x80
	case '$', '%':
		switch next := s.peek(); next {
		case '{':
			s.at++
			return s.open('$')
		case c, '\\':
			return false
		}
	}
	return true
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }
