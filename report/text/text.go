// Package text makes foreign text safe to show and measures it in terminal cells.
// Foreign text is what a server, a model or a plan's author wrote: its log, its
// errors, its names. It may contain escape sequences, control characters, broken
// UTF-8, bidirectional overrides, and lines that a CI system would take for its own
// commands.
package text

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line makes s one line. It removes escape sequences. It replaces each run of white space, line
// breaks included, by one space. It drops other control and invisible format characters, and
// replaces invalid UTF-8 by U+FFFD.
func Line(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	space := false
	each(s, func(r rune) {
		if unicode.IsSpace(r) {
			space = b.Len() > 0
			return
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	})
	return b.String()
}

// plain reports whether s is words of printable ASCII with one space between them, which need no cleaning.
func plain(s string) bool {
	before := byte(' ')
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == ' ' && before == ' ' {
			return false
		}
		before = s[i]
	}
	return before != ' ' || s == ""
}

// Block cleans s as Line does but keeps its lines. CRLF and a lone CR end a line too,
// because progress bars overwrite themselves with CR. A tab becomes four spaces, and
// trailing white space is removed.
func Block(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	cr := false
	each(s, func(r rune) {
		switch {
		case r == '\n' && cr:
			cr = false
			return
		case r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029' || r == '\v' || r == '\f':
			b.WriteByte('\n')
		case r == '\t':
			b.WriteString("    ")
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
		cr = r == '\r'
	})
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// each calls f for every rune of s that may be shown, white space included.
func each(s string, f func(rune)) {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			f(utf8.RuneError)
		case r == 0x1b || r == 0x9b || r == 0x9d || r == 0x90:
			n = escape(s[i:])
		case unicode.IsSpace(r):
			f(r)
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r), r&0xfffe == 0xfffe:
			// The Unicode category Cf contains the bidirectional overrides and zero-width
			// characters, which can make one text look like another.
		default:
			f(r)
		}
		i += n
	}
}

// escape returns the length of the escape sequence (ECMA-48) at the start of s. A sequence
// without an end takes at most 64 bytes, so that a stray ESC cannot swallow a message.
func escape(s string) int {
	const most = 64
	kind, i := byte(0), 0
	switch {
	case s[0] == 0x1b && len(s) == 1:
		return 1
	case s[0] == 0x1b:
		kind, i = s[1], 2
	default: // the C1 form of ESC: two bytes in UTF-8
		kind, i = s[1]-0x40, 2
	}
	switch kind {
	case '[': // CSI sequence: parameter bytes, intermediate bytes, one final byte
		return final(s[:min(len(s), most)], i, 0x40)
	case ']', 'P', '_', '^', 'X': // control strings, which end with BEL or ST
		for ; i < len(s) && i < 4*most; i++ {
			switch {
			case s[i] == 0x07:
				return i + 1
			case s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\':
				return i + 2
			case s[i] == '\n':
				return i
			}
		}
		return 2
	}
	if kind >= 0x20 && kind <= 0x2f { // nF escape sequence: intermediate bytes, then a final byte
		return final(s[:min(len(s), most)], i, 0x30)
	}
	if kind >= 0x30 && kind <= 0x7e {
		return 2
	}
	return 1 // the byte after a stray ESC is ordinary text
}

// final returns the index after the final byte of an escape sequence. The final byte is the
// first byte from index i on that is not smaller than the parameter least. If an earlier byte
// cannot be part of a sequence, final returns the index of that byte. If there is no final byte,
// final returns the length of s.
func final(s string, i int, least byte) int {
	for ; i < len(s); i++ {
		if s[i] >= least && s[i] <= 0x7e {
			return i + 1
		}
		if s[i] < 0x20 || s[i] > 0x7e {
			return i
		}
	}
	return i
}

// Inert returns line with the smallest change that keeps CI systems from taking it
// for a command. GitHub's runner looks for "::" at the start of a line, after white
// space, and for "##[" anywhere in it (actions/runner,
// src/Runner.Common/ActionCommand.cs); Azure Pipelines for "##vso[" and TeamCity for
// "##teamcity[". The result looks the same except for a space inside the marker.
func Inert(line string) string {
	rest := strings.TrimLeftFunc(line, unicode.IsSpace)
	if strings.HasPrefix(rest, "::") {
		line = line[:len(line)-len(rest)] + ": :" + rest[2:]
	}
	if !strings.Contains(line, "##") {
		return line
	}
	for _, marker := range []string{"##[", "##vso[", "##teamcity["} {
		for {
			i := indexFold(line, marker)
			if i < 0 {
				break
			}
			line = line[:i] + "# " + line[i+1:]
		}
	}
	return line
}

// indexFold is like strings.Index but ignores the case of s. marker must be ASCII text in lower
// case.
func indexFold(s, marker string) int {
	for i := 0; i+len(marker) <= len(s); i++ {
		if strings.EqualFold(s[i:i+len(marker)], marker) {
			return i
		}
	}
	return -1
}

// XML removes from s what XML 1.0 cannot represent (section 2.2, Char) and replaces
// invalid UTF-8 by U+FFFD. Nothing else changes.
func XML(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd || r >= 0x10000 && r <= 0x10ffff {
			return r
		}
		return -1
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// Bytes cuts s to at most n bytes at a rune boundary and marks a cut with "…". n is
// at least 3.
func Bytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// Tail cuts s to its last n bytes, at a line boundary if there is one, and marks the
// cut.
func Tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const cut = "… (cut)\n"
	i := len(s) - max(n-len(cut), 0)
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	s = s[i:]
	if nl := strings.IndexByte(s, '\n'); nl >= 0 && nl < len(s)/2 {
		s = s[nl+1:]
	}
	return cut + s
}

// Clock formats seconds of a run, rounded to a second, as 42s, 3m05s or 2h03m.
func Clock(seconds float64) string {
	n := int64(math.Round(max(seconds, 0)))
	switch {
	case n < 60:
		return fmt.Sprintf("%ds", n)
	case n < 3600:
		return fmt.Sprintf("%dm%02ds", n/60, n%60)
	}
	return fmt.Sprintf("%dh%02dm", n/3600, n/60%60)
}
