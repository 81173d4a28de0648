package markdown

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

func TestMarker(t *testing.T) {
	got := map[string]string{}
	for _, name := range []string{"gate", "pull-request", "a b", "--><b>", "", "---", "größe", strings.Repeat("x", 100)} {
		got[name] = marker(name)
	}
	want := map[string]string{
		"gate": "gate", "pull-request": "pull-request", "a b": "a-b", "--><b>": "b", "": "plan", "---": "plan", "größe": "gr-e",
		strings.Repeat("x", 100): strings.Repeat("x", 60),
	}
	must.Same(t, "(-want +got)", want, got)
}

func TestEscape(t *testing.T) {
	tests := []struct{ in, want string }{
		{"a|b", `a\|b`},
		{"`x`", "\\`x\\`"},
		{`a\|b`, `a\\\|b`}, // a backslash in the text does not cancel the escaping
		{"<script>", "&lt;script&gt;"},
		{"&lt;", "&amp;lt;"},
		{"**b** _i_ ~~s~~", `\*\*b\*\* \_i\_ \~\~s\~\~`},
		{"![x](https://evil)", `\!\[x\](https&#58;//evil)`},
		{"@everyone", "&#64;everyone"},
		{"#1#2 a/b#3", `\#<!-- -->1\#<!-- -->2 a/b\#<!-- -->3`},
		{"fixes GH-1, gh-2", "fixes GH-<!-- -->1, gh-<!-- -->2"},
		{"@1 #a GHz-1", `&#64;1 \#a GHz-1`},
		{"www.evil.example", "www&#46;evil.example"},
		{"a\nb", "a b"},
		{"::error::x", ": :error::x"},
		{"", " "},
	}
	for _, tt := range tests {
		must.Same(t, fmt.Sprintf("escaped(%q)", tt.in), tt.want, escaped(tt.in, 100))
	}
}
