package decode

import (
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/zclconf/go-cty/cty"
)

func TestFunctions(t *testing.T) {
	d := newDecoder(Options{Path: "p.hcl", ReadFile: func(string) ([]byte, error) { return nil, os.ErrNotExist }})
	d.base = &hcl.EvalContext{Functions: d.functions(), Variables: map[string]cty.Value{
		"unknown": cty.UnknownVal(cty.Bool), "text": cty.UnknownVal(cty.String),
	}}
	// want is a simpler expression for the value of expr, or "error: " and a part of the message.
	for _, row := range []struct{ expr, want string }{
		{`seconds("8s")`, `8`},
		{`seconds("250ms")`, `0.25`},
		{`seconds("1h30m")`, `5400`}, // 1.5 · 3600
		{`seconds("8")`, `error: is not a valid duration`},
		{`sum([1, 2, 3.5])`, `6.5`},
		{`sum([])`, `0`},
		{`sum(["2", 1])`, `3`}, // the text "2" becomes a number
		{`sum([null])`, `error: every element must be a number`},
		{`sum(["a"])`, `error: every element must be a number`},
		{`sum("a")`, `error: a list of numbers`},
		{`alltrue([true, true])`, `true`},
		{`alltrue([true, false])`, `false`},
		{`alltrue([])`, `true`},
		{`alltrue([false, unknown])`, `false`}, // false, whatever the unknown element is
		{`anytrue([false, true])`, `true`},
		{`anytrue([])`, `false`},
		{`anytrue([true, unknown])`, `true`},
		// null stands for a missing result, so it counts neither as true nor as false.
		{`alltrue([true, null])`, `error: an element is null`},
		{`anytrue([false, null])`, `error: an element is null`},
		{`yamldecode("a: [1, 2]").a[1]`, `2`},
		{`jsondecode("{\"a\": [1, 2]}").a[1]`, `2`},
		{`try(jsondecode("{").a, 7)`, `7`},
		{`can(tonumber("x"))`, `false`},
		{`format("%03d|%5.2f", 7, 1.5)`, `"007| 1.50"`},
		{`format("%1000d", 7)`, `error: at most three digits`},
		{`formatlist("%s!", ["a"])[0]`, `"a!"`},
		{`indent(2, "a\nb")`, `"a\n  b"`},
		{`indent(2000, "a\nb")`, `error: between -1000 and 1000`},
		{`pow(2, 10)`, `1024`},
		{`tonumber("1e3")`, `1000`},
		{`tonumber("1e99999")`, `error: exponent`},
		{`tonumber("` + strings.Repeat("9", 500) + `")`, `error: digits`},
		{`length(setproduct([1, 2], ["a", "b"]))`, `4`},
		{`merge({ a = 1 }, { b = 2 }).b`, `2`},
		{`file("nothing.txt")`, `error: could not read "nothing.txt"`},
		{`file("../../../../../../../../etc/passwd")`, `error: outside the repository`},
		{`file("")`, `error: the path is empty`},
	} {
		got, problem := evalText(t, row.expr, d.base)
		if want, ok := strings.CutPrefix(row.want, "error: "); ok {
			must.Hold(t, strings.Contains(problem, want), "%s: %#v, problem %q; want problem %q", row.expr, got, problem, want)
			continue
		}
		want, _ := evalText(t, row.want, d.base)
		must.Hold(t, problem == "" && got.IsKnown() && got.RawEquals(want), "%s = %#v, problem %q; want %s", row.expr, got, problem, row.want)
	}
	for _, expr := range []string{`alltrue([true, unknown])`, `anytrue([false, unknown])`, `yamldecode(text)`, `seconds(text)`, `format(text, 1)`} {
		if got, problem := evalText(t, expr, d.base); problem != "" || got.IsKnown() {
			t.Errorf("%s = %#v, problem %q; want unknown", expr, got, problem)
		}
	}
}

func evalText(t *testing.T, src string, ctx *hcl.EvalContext) (cty.Value, string) {
	t.Helper()
	expr, diags := hclsyntax.ParseExpression([]byte(src), "test", hcl.InitialPos)
	must.Need(t, !diags.HasErrors(), "%v", diags)
	v, diags := expr.Value(ctx)
	if diags.HasErrors() {
		return v, diags.Error()
	}
	return v, ""
}
