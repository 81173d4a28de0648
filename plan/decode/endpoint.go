package decode

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/tokgate/tokgate/plan"
)

func (b *body) endpoint() *plan.Endpoint {
	e := b.child("endpoint")
	if e == nil {
		return nil
	}
	out := &plan.Endpoint{Range: e.rng}
	e.bind(out)
	if v, ok := e.value("url"); ok {
		if out.URL, ok = e.asText(e.rangeOf("url"), "url", v); ok {
			e.checkURL(out.URL)
		}
	}
	if attr := e.attrs["api_key"]; attr != nil {
		if v, ok := b.d.eval(attr.Expr, e.scope); ok && !v.IsNull() {
			e.d.secretsFromEnv(attr.Expr, v)
			out.APIKey, _ = e.asText(attr.Expr.Range(), "api_key", b.d.unmark(v))
			b.d.addSecret(out.APIKey)
		}
	}
	for name, value := range out.Headers {
		if !headerName.MatchString(name) || strings.ContainsAny(value, "\r\n\x00") {
			b.d.errorf(e.rangeOf("headers"), sumOutOfRange, "The header %q is no valid HTTP header.", name)
		}
		if secretHeader.MatchString(name) {
			b.d.addSecret(value)
		}
	}
	return out
}

var (
	headerName   = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	secretHeader = regexp.MustCompile(`(?i)auth|key|token|secret|cookie`)
)

func (b *body) checkURL(text string) { b.checkURLOf("url", text) }

func (b *body) checkURLOf(name, text string) {
	if text == unknownText {
		return
	}
	if problem := URLProblem(text); problem != "" {
		b.d.errorf(b.rangeOf(name), sumURL, "%s", problem)
	}
}

// URLProblem says in a sentence what is wrong with the base URL of a server; ""
// for nothing.
func URLProblem(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Sprintf(`%q is no URL: it starts with http:// or https://, such as "http://127.0.0.1:8000".`, text)
	case u.Scheme != "http" && u.Scheme != "https":
		return `The URL starts with http:// or https://, such as "http://127.0.0.1:8000".`
	case u.Host == "" || u.Hostname() == "":
		return "The URL names no host."
	case u.User != nil:
		return "Credentials do not belong in the URL, where logs show them: use api_key or headers."
	case u.RawQuery != "" || u.Fragment != "":
		return "The URL is a base to which paths are added: it has no ? and no #."
	}
	return ""
}

// address is a URL; "" when not set.
func (b *body) address(name string) string {
	text := b.text(name)
	if text == unknownText {
		return ""
	}
	if text != "" {
		b.checkURLOf(name, text)
	}
	return text
}
