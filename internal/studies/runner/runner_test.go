package runner

import (
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

func TestCommands(t *testing.T) {
	log := "text\n" +
		"::error title=a%3A b,file=p.hcl,line=3::100%25: x::y\n" +
		"  ::warning::w\n" + // the CI system ignores white space before a command
		"see ::error::no\n" +
		"::unknown::no\n" +
		"2026 ##[error]old%0Aform\n" +
		"::stop-commands::tok\n::error::no\n##[error]no\n::tok2::\n" +
		"::TOK::\n::Notice::n\n::tok::\n"
	list, text := Commands(log)
	want := []Command{
		{"error", map[string]string{"title": "a: b", "file": "p.hcl", "line": "3"}, "100%: x::y"},
		{"warning", map[string]string{}, "w"},
		{"error", map[string]string{}, "old\nform"},
		{"Notice", map[string]string{}, "n"},
	}
	must.Same(t, "commands (-want +got)", want, list)
	must.Same(t, "text (-want +got)", []string{"text", "see ::error::no", "::unknown::no", "::error::no", "##[error]no", "::tok2::", "::tok::"}, text)
}

func TestPairs(t *testing.T) {
	got := must.Get(Pairs("a=1\nb<<END\nx\ny=2\nEND\n\nc<<E\nE\na=3=4\n"))(t)
	must.Same(t, "(-want +got)", map[string]string{"a": "3=4", "b": "x\ny=2", "c": ""}, got)
	for _, bad := range []string{"a<<END\nx\n", "nothing\n", "<<END\nEND\n", "a<<\n"} {
		_, err := Pairs(bad)
		must.Hold(t, err != nil, "%q was read", bad)
	}
}
