package record

import (
	"fmt"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// If a text was cut, the last part of it may be the beginning of a secret.
func TestRedactCutText(t *testing.T) {
	r := NewRedactor([]string{"sk-verysecret"})
	for text, want := range map[string]string{
		"the key sk-verysec …":            "the key [redacted] …",
		"the key sk-verysec… (and so on)": "the key [redacted]… (and so on)",
		"the key sk-verysecret …":         "the key [redacted] …",
		"the key sk-…":                    "the key sk-…", // may be the beginning of any key
		"sk-very is no cut text":          "sk-very is no cut text",
		"… sk-very":                       "… sk-very",
		"…":                               "…",
	} {
		must.Same(t, fmt.Sprintf("%q became", text), want, r.Text(text))
	}
	for text, want := range map[string]int{"sk-very": 7, "x s": 1, "sk-verysecret": 0, "": 0, "sk-s": 1} {
		must.Same(t, fmt.Sprintf("Pending(%q)", text), want, r.Pending(text))
	}
}

// A log is read line by line. So each long line of a secret is removed on its own.
func TestRedactLines(t *testing.T) {
	r := NewRedactor([]string{"-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0\nab==\n-----END KEY-----"})
	must.Same(t, "", "read [redacted]", r.Text("read MIIEvQIBADANBgkqhkiG9w0"))
	must.Same(t, "", "ab== is short", r.Text("ab== is short"))
}
