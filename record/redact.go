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
}

// NewRedactor returns a Redactor that knows secrets, plain, URL-encoded and as
// JSON writes them.
func NewRedactor(secrets []string) Redactor {
	var forms []string
	for _, s := range secrets {
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
	return Redactor{strings.NewReplacer(pairs...)}
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

// Text returns s without the secrets.
func (r Redactor) Text(s string) string {
	if r.replacer == nil {
		return s
	}
	return r.replacer.Replace(s)
}
