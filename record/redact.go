package record

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// Redacted stands where a secret was.
const Redacted = "[redacted]"

// minSecret is the shortest secret that is looked for, in bytes. Anything
// shorter occurs in ordinary words, and taking it out would tell what it is.
const minSecret = 4

// Redactor takes secrets out of foreign text. The zero Redactor knows none.
type Redactor struct {
	replacer *strings.Replacer
	forms    []string // in which secrets are looked for, the longest first
}

// NewRedactor returns a Redactor that knows secrets, plain, URL-encoded and as
// JSON writes them.
func NewRedactor(secrets []string) Redactor {
	var forms []string
	for _, s := range slices.Concat(secrets, longLines(secrets)) {
		if len(s) >= minSecret {
			forms = append(forms, s, url.QueryEscape(s), url.PathEscape(s), quoted(s, true), quoted(s, false))
		}
	}
	// The longest first, so that no secret leaves the rest of a longer one.
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
		pairs = append(pairs, f, Redacted)
	}
	return Redactor{strings.NewReplacer(pairs...), forms}
}

// minLine is the shortest line of a longer secret that is looked for by itself.
const minLine = 16

// longLines are the lines of secrets that have several: logs are read line by
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

// quoted is s within a JSON string, whose writer escapes <, > and & or not.
func quoted(s string, html bool) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	if e.Encode(s) != nil {
		return s // strings can be encoded
	}
	return b.String()[1 : b.Len()-len("\"\n")]
}

// cut is how a text ends that was cut before it came here.
const cut = "…"

// Text returns s without the secrets, and without the beginning of one at the
// end of a text that was cut.
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
			parts[i] = whole[:len(whole)-n] + Redacted + p[len(whole):]
		}
	}
	return strings.Join(parts, cut)
}

// Pending is how many bytes at the end of s may be the beginning of a secret:
// what is to be kept back when a text comes in pieces.
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
