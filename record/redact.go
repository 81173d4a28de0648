package record

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

const redacted = "[redacted]"

// minSecret is the length, in bytes, of the shortest secret that is removed. A shorter secret also
// occurs inside ordinary words, and the gaps left there would reveal it.
const minSecret = 4

// Redactor removes secrets from foreign text. The zero Redactor removes nothing.
type Redactor struct {
	replacer *strings.Replacer
	forms    []string // forms in which the secrets may occur, the longest first
}

// NewRedactor returns a Redactor that recognises secrets in plain form, URL-encoded and as JSON.
func NewRedactor(secrets []string) Redactor {
	var forms []string
	for _, s := range slices.Concat(secrets, longLines(secrets)) {
		if len(s) >= minSecret {
			forms = append(forms, s, url.QueryEscape(s), url.PathEscape(s), quoted(s, true), quoted(s, false))
		}
	}
	// Remove longer forms first. A short secret may be a part of a long one, and the rest of the
	// long one would stay.
	slices.SortFunc(forms, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	forms = slices.Compact(forms)
	if len(forms) == 0 {
		return Redactor{}
	}
	pairs := make([]string, 0, 2*len(forms))
	for _, f := range forms {
		pairs = append(pairs, f, redacted)
	}
	return Redactor{strings.NewReplacer(pairs...), forms}
}

// minLine is how long a line of a secret must be, in bytes, to be removed on its own.
const minLine = 16

// longLines returns the long lines of secrets with several lines, because logs are searched line by
// line.
func longLines(secrets []string) []string {
	var out []string
	for _, s := range secrets {
		if !strings.Contains(s, "\n") {
			continue
		}
		for line := range strings.Lines(s) {
			if line = strings.TrimSpace(line); len(line) >= minLine {
				out = append(out, line)
			}
		}
	}
	return out
}

func quoted(s string, html bool) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	if e.Encode(s) != nil {
		return s // never happens, because JSON can encode every string
	}
	return b.String()[1 : b.Len()-len("\"\n")]
}

const cut = "…"

// Text returns s without the secrets. If s was cut in the middle of a secret, Text also removes the
// beginning of this secret.
func (r Redactor) Text(s string) string {
	if r.replacer == nil {
		return s
	}
	s = r.replacer.Replace(s)
	if !strings.Contains(s, cut) {
		return s
	}
	parts := strings.Split(s, cut)
	for i, p := range parts[:len(parts)-1] {
		whole := strings.TrimSuffix(p, " ")
		if n := r.Pending(whole); n >= minSecret {
			parts[i] = whole[:len(whole)-n] + redacted + p[len(whole):]
		}
	}
	return strings.Join(parts, cut)
}

// Pending returns how many bytes at the end of s may be the beginning of a secret. A caller that
// gets a text in pieces must wait with these bytes.
func (r Redactor) Pending(s string) int {
	most := 0
	for _, f := range r.forms {
		for n := min(len(f)-1, len(s)); n > most; n-- {
			if strings.HasSuffix(s, f[:n]) {
				most = n
			}
		}
	}
	return most
}
