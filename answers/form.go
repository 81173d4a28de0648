package answers

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tokgate/tokgate/metric"
)

// Said is one answer in decoded form.
type Said = metric.Said

// Call is one call of a tool.
type Call = metric.ToolCall

// An answer repeats itself if too many of its 4-grams (four words in a row) occurred earlier: more
// than the share mostRepeated. Only the last lastWords words count. The share is at most 0.2 in
// ordinary language, and nearly 1 for words that are repeated again and again.
const (
	lastWords    = 256
	gram         = 4
	mostRepeated = 0.6
)

// form fills in what can be said about every natural answer: empty, repetition, invalid text.
func form(s Said, a *metric.Answer) {
	a.Empty = strings.TrimSpace(s.Text) == "" && len(s.Calls) == 0
	a.Repeats = repeated(s.Reasoning+"\n"+s.Text) > mostRepeated
	a.Invalid = invalid(s)
}

// invalid reports whether the text contains characters that a working tokenizer never produces. An
// incomplete last character is allowed if the token limit cut it.
func invalid(s Said) bool {
	parts := []string{s.Reasoning, s.Text}
	for _, c := range s.Calls {
		parts = append(parts, c.Name, c.Arguments)
	}
	for i := len(parts) - 1; i >= 0 && (s.Cut || s.AtLimit); i-- {
		if parts[i] != "" {
			parts[i] = strings.TrimRight(parts[i], string(utf8.RuneError))
			break
		}
	}
	for _, p := range parts {
		if strings.ContainsRune(p, 0) || strings.ContainsRune(p, utf8.RuneError) || !utf8.ValidString(p) {
			return true
		}
	}
	return false
}

// repeated returns the share of 4-grams (four words in a row) that occurred earlier. Only the last
// 256 words of the text count. The share is 0 for fewer than four words. A word is a run of letters
// and digits, or any other single character except white space; each Chinese or Japanese character
// is a word.
func repeated(text string) float64 {
	words := tail(text)
	if len(words) < gram {
		return 0
	}
	seen := map[[gram]string]bool{}
	all := len(words) - gram + 1
	for i := range all {
		seen[[gram]string(words[i:i+gram])] = true
	}
	return 1 - float64(len(seen))/float64(all)
}

func tail(text string) []string {
	var out []string
	for end := len(text); end > 0 && len(out) < lastWords; {
		r, size := utf8.DecodeLastRuneInString(text[:end])
		start := end - size
		for inWord(r) && start > 0 {
			before, size := utf8.DecodeLastRuneInString(text[:start])
			if !inWord(before) {
				break
			}
			start -= size
		}
		if !unicode.IsSpace(r) {
			out = append(out, text[start:end])
		}
		end = start
	}
	return out
}

// inWord reports whether a character joins its neighbours to a word. Chinese and Japanese
// characters do not.
func inWord(r rune) bool {
	return (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)) &&
		!unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}
