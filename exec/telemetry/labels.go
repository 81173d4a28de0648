package telemetry

import (
	"errors"
	"strings"
)

// cutLabels splits a line after its name. It returns the text between the braces, and the text
// after them.
func cutLabels(s string) (labels, rest string, err error) {
	s = trim(s, " \t")
	if len(s) == 0 || s[0] != '{' {
		return "", s, nil
	}
	if end := strings.IndexByte(s, '}'); end > 0 && strings.IndexByte(s[:end], '\\') < 0 && strings.Count(s[:end], `"`)%2 == 0 {
		return s[1:end], s[end+1:], nil
	}
	quoted := false
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == '}' && !quoted:
			return s[1:i], s[i+1:], nil
		}
	}
	return "", "", errors.New("its labels do not end")
}

// trim is strings.Trim, which would make a table of the few bytes in the cutset.
func trim(s, cutset string) string {
	for s != "" && strings.IndexByte(cutset, s[0]) >= 0 {
		s = s[1:]
	}
	for s != "" && strings.IndexByte(cutset, s[len(s)-1]) >= 0 {
		s = s[:len(s)-1]
	}
	return s
}

// labels holds the labels of a line of metrics, as the page writes them.
type labels []struct{ name, value string }

func (l labels) read(text string) (labels, error) {
	for len(text) > 0 {
		name, rest, found := strings.Cut(text, "=")
		rest = trim(rest, " \t")
		if !found || len(rest) == 0 || rest[0] != '"' {
			if len(trim(text, ", \t")) == 0 {
				break
			}
			return l, errors.New("its labels cannot be read")
		}
		end := 1
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(rest) {
			return l, errors.New("its labels cannot be read")
		}
		l = append(l, struct{ name, value string }{trim(name, ", \t"), rest[1:end]})
		text = rest[end+1:]
	}
	return l, nil
}

func (l labels) value(name string) string {
	for _, x := range l {
		if x.name == name {
			if strings.IndexByte(x.value, '\\') < 0 {
				return x.value // Replace would allocate
			}
			return unescape.Replace(x.value)
		}
	}
	return ""
}

var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func escapeLabel(s string) string { return escapes.Replace(s) }
