package telemetry

import (
	"errors"
	"strings"
)

// cutLabels splits a line after its name. It returns the text between the braces, and the text
// after them.
func cutLabels(s string) (labels, rest string, err error) {
	s = trim(s, ' ')
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

// trim removes spaces, tabs and the given byte from both ends. strings.Trim would make a table of them.
func trim(s string, too byte) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t' || s[0] == too) {
		s = s[1:]
	}
	for n := len(s) - 1; n >= 0 && (s[n] == ' ' || s[n] == '\t' || s[n] == too); n-- {
		s = s[:n]
	}
	return s
}

// labels holds the labels of a line of metrics, as the page writes them.
type labels []struct{ name, value string }

func (l labels) read(text string) (labels, error) {
	for len(text) > 0 {
		is := strings.IndexByte(text, '=')
		rest := trim(text[is+1:], ' ')
		if is < 0 || len(rest) == 0 || rest[0] != '"' {
			if len(trim(text, ',')) == 0 {
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
		l = append(l, struct{ name, value string }{trim(text[:is], ','), rest[1:end]})
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
