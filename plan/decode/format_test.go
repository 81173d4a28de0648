package decode

import (
	"bytes"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/tokgate/tokgate/internal/must"
)

func TestFormat(t *testing.T) {
	for _, row := range []struct{ name, file, in, want string }{
		{"aligns", "p.hcl", "workload \"w\" {\ninput_tokens=1024\n  output_tokens  = 128\n load { concurrency=[1,8] }\n}\n",
			"workload \"w\" {\n  input_tokens  = 1024\n  output_tokens = 128\n  load { concurrency = [1, 8] }\n}\n"},
		{"keeps comments", "p.hcl", "# a\ngate{ // b\n}\n", "# a\ngate { // b\n}\n"},
		{"keeps text", "p.hcl", "locals {\nx = <<EOT\n  a   b\n\tc\nEOT\n}\n", "locals {\n  x = <<EOT\n  a   b\n\tc\nEOT\n}\n"},
		{"empty", "p.hcl", "", ""},
		{"JSON", "p.hcl.json", `{"gate":{"decide":"estimate","budget":"1  m"}}`, "{\n  \"gate\": {\n    \"decide\": \"estimate\",\n    \"budget\": \"1  m\"\n  }\n}\n"},
	} {
		got, diags := Format([]byte(row.in), row.file)
		must.Hold(t, !diags.HasErrors() && string(got) == row.want, "%s: Format(%q) = %q, %v; want %q", row.name, row.in, got, diags, row.want)
	}
}

func TestFormatRefusesWhatDoesNotParse(t *testing.T) {
	for _, row := range []struct{ file, in string }{
		{"p.hcl", "gate {\n"}, {"p.hcl", "x = \n"}, {"p.json", "{"}, {"p.hcl", "x = " + strings.Repeat("(", 1000) + "\n"},
	} {
		got, diags := Format([]byte(row.in), row.file)
		must.Hold(t, diags.HasErrors(), "Format(%q) = %q without an error", row.in, got)
	}
}

// For every plan, formatting twice is the same as formatting once, and does not change the meaning
// of the plan.
func TestLongFormatKeepsMeaning(t *testing.T) {
	for _, path := range fixtures(t, "testdata/ok/*.hcl", "testdata/ok/*.json", "testdata/bad/*.hcl") {
		src := must.Get(os.ReadFile(path))(t)
		out := checkFormat(t, src, path)
		if out == nil || !strings.Contains(path, "/ok/") {
			continue
		}
		opts := fixtureOptions(t, path)
		before, _ := File(opts)
		opts.Source = out
		after, _ := File(opts)
		a, b := withoutLines(describe(before)), withoutLines(describe(after))
		must.Hold(t, a == b, "%s means something else when it is formatted:\n%s\n%s", path, a, b)
	}
}

// checkFormat formats src and checks the result. It returns the formatted source, or nil if src
// does not parse.
func checkFormat(t *testing.T, src []byte, name string) []byte {
	t.Helper()
	once, diags := Format(src, name)
	if diags.HasErrors() {
		return nil
	}
	twice, diags := Format(once, name)
	must.Need(t, !diags.HasErrors(), "%s: what Format wrote does not parse: %v\n%q\n%q", name, diags, src, once)
	must.Hold(t, string(once) == string(twice), "%s: formatting twice is not formatting once:\n%q\n%q\n%q", name, src, once, twice)
	must.Hold(t, isJSON(name) || sameTokens(src, once, name), "%s: Format changed more than white space:\n%q\n%q", name, src, once)
	return once
}

var linePattern = regexp.MustCompile(`line \d+`)

func withoutLines(s string) string { return linePattern.ReplaceAllString(s, "line _") }

// The formatted source does not depend on the spaces and tabs between the tokens of the original
// source.
func TestFormatIsCanonical(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, path := range fixtures(t, "testdata/ok/*.hcl") {
		src := must.Get(os.ReadFile(path))(t)
		want, diags := Format(src, path)
		must.Need(t, !diags.HasErrors(), "%v", diags)
		for range 4 {
			typed := respace(random, src, path)
			got, diags := Format(typed, path)
			must.Need(t, !diags.HasErrors(), "%v\n%s", diags, typed)
			diff := gocmp.Diff(string(want), string(got))
			must.Need(t, diff == "", "%s: (-formatted +typed differently and formatted)\n%s", path, diff)
		}
	}
}

// respace changes the white space of a source, except inside strings.
func respace(random *rand.Rand, src []byte, name string) []byte {
	tokens, _ := hclsyntax.LexConfig(src, name, hcl.InitialPos)
	var out []byte
	at, quoted := 0, 0
	for _, tok := range tokens {
		gap := src[at:tok.Range.Start.Byte]
		if len(gap) > 0 && quoted == 0 {
			gap = bytes.Repeat([]byte(" "), 1+random.IntN(4))
		}
		switch tok.Type {
		case hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc:
			quoted++
		case hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc:
			quoted--
		}
		out = append(append(out, gap...), tok.Bytes...)
		at = tok.Range.End.Byte
	}
	return out
}
