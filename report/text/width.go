package text

import (
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// cells measures the width of characters with fixed settings. By default the library takes some of
// them from the environment.
var cells = &runewidth.Condition{StrictEmojiNeutral: true}

// Width returns the number of terminal cells that s takes. s must not contain escape
// sequences.
func Width(s string) int { return cells.StringWidth(s) }

// Cut shortens s to at most width cells and marks a cut with "…". It never cuts a
// wide character in half.
func Cut(s string, width int) string {
	if width <= 0 {
		return ""
	}
	return cells.Truncate(s, width, "…")
}

// Pad adds spaces to s until it is width cells wide. They come after s, or before s if right is
// set.
func Pad(s string, width int, right bool) string {
	fill := strings.Repeat(" ", max(width-Width(s), 0))
	if right {
		return fill + s
	}
	return s + fill
}

// Wrap breaks s at spaces into lines of at most width cells (at least 1). A word
// wider than that is broken.
func Wrap(s string, width int) []string {
	width = max(width, 1)
	var lines []string
	line, used := "", 0
	for word := range strings.FieldsSeq(s) {
		w := Width(word)
		if line != "" && used+1+w <= width {
			line, used = line+" "+word, used+1+w
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		for w > width {
			part := cells.Truncate(word, width, "")
			if part == "" { // each line has at least one character
				_, n := utf8.DecodeRuneInString(word)
				part = word[:n]
			}
			lines = append(lines, part)
			word = word[len(part):]
			w = Width(word)
		}
		line, used = word, w
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}
