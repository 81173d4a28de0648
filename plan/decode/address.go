package decode

import (
	"fmt"
	"net/url"
	"regexp"
)

var (
	headerName   = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	secretHeader = regexp.MustCompile(`(?i)auth|key|token|secret|cookie`)
)

// URLProblem describes what is wrong with the base URL of a server. It returns "" if the URL is
// valid.
func URLProblem(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Sprintf(`%q is not a valid URL. It must start with http:// or https://, such as "http://127.0.0.1:8000".`, text)
	case u.Scheme != "http" && u.Scheme != "https":
		return `The URL must start with http:// or https://, such as "http://127.0.0.1:8000".`
	case u.Host == "" || u.Hostname() == "":
		return "The URL names no host."
	case u.User != nil:
		return "The URL contains credentials, and logs show URLs. Use api_key or headers instead."
	case u.RawQuery != "" || u.Fragment != "":
		return "The URL must not contain ? or #, because tokgate appends paths to the URL."
	}
	return ""
}
