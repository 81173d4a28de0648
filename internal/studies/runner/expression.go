package runner

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// contexts holds the names that an expression may use: github, inputs, steps, … A
// value is nil, a bool, a float64, a string, a []any or a map[string]any.
type contexts map[string]any

// status is the state of a job. An expression reads it by success() and failure().
type status struct{ failed bool }

// interpolate replaces each ${{ EXPRESSION }} in s by its value.
func interpolate(s string, c contexts, st status) (string, error) {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "${{")
		b.WriteString(before)
		if !ok {
			return b.String(), nil
		}
		src, after, ok := strings.Cut(rest, "}}")
		if !ok {
			return "", fmt.Errorf("%q does not end", "${{"+rest)
		}
		v, _, err := evaluate(src, c, st)
		if err != nil {
			return "", err
		}
		b.WriteString(toString(v))
		s = after
	}
}

// condition evaluates the condition of an if; "" means success(). If the condition uses no status
// function, such as always(), the job must also not have failed so far.
func condition(src string, c contexts, st status) (bool, error) {
	src = strings.TrimSpace(src)
	if inner, ok := strings.CutPrefix(src, "${{"); ok && strings.HasSuffix(inner, "}}") {
		src = strings.TrimSuffix(inner, "}}")
	}
	if strings.TrimSpace(src) == "" {
		src = "success()"
	}
	v, asked, err := evaluate(src, c, st)
	if err != nil {
		return false, err
	}
	return truthy(v) && (asked || !st.failed), nil
}

// evaluate returns the value of an expression. asked reports whether the expression used a status
// function. The operators of expressions and their order are those of Go, so Go's parser reads
// them. It finds no lists, and of the functions only format and those of a job's status: our
// workflows use no others.
func evaluate(src string, c contexts, st status) (v any, asked bool, err error) {
	tree, err := parser.ParseExpr(terms.ReplaceAllStringFunc(src, inGo))
	e := &evaluation{contexts: c, status: st}
	if err == nil {
		v, err = e.value(tree)
	}
	if err != nil {
		return nil, false, fmt.Errorf("expression %q: %w", strings.TrimSpace(src), err)
	}
	return v, e.asked, nil
}

// terms are the strings and names of expressions, which differ from those of Go: two quotes in a
// string stand for one, a name may have hyphens, and no name is a keyword.
var terms = regexp.MustCompile(`'(?:[^']|'')*'|[A-Za-z_][\w-]*`)

const hyphen = "ǁ" // a letter in Go

func inGo(term string) string {
	if text, ok := strings.CutPrefix(term, "'"); ok {
		return strconv.Quote(strings.ReplaceAll(strings.TrimSuffix(text, "'"), "''", "'"))
	}
	return "_" + strings.ReplaceAll(term, "-", hyphen)
}

func nameOf(id *ast.Ident) string { return strings.ReplaceAll(id.Name[1:], hyphen, "-") }

type evaluation struct {
	contexts contexts
	status   status
	asked    bool
}

func (e *evaluation) value(x ast.Expr) (any, error) {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return e.value(x.X)
	case *ast.BasicLit:
		if x.Kind == token.STRING {
			return strconv.Unquote(x.Value)
		}
		return strconv.ParseFloat(x.Value, 64)
	case *ast.Ident:
		return e.named(nameOf(x))
	case *ast.SelectorExpr:
		v, err := e.value(x.X)
		return property(v, nameOf(x.Sel)), err
	case *ast.UnaryExpr:
		v, err := e.value(x.X)
		if x.Op == token.NOT {
			return !truthy(v), err
		}
	case *ast.BinaryExpr:
		return e.binary(x)
	case *ast.CallExpr:
		if id, ok := x.Fun.(*ast.Ident); ok && nameOf(id) == "format" {
			return e.format(x.Args)
		} else if ok && len(x.Args) == 0 {
			return e.call(nameOf(id))
		}
	}
	return nil, fmt.Errorf("%T is not supported here", x)
}

func (e *evaluation) binary(x *ast.BinaryExpr) (any, error) {
	v, err := e.value(x.X)
	w, err2 := e.value(x.Y)
	if err = cmp.Or(err, err2); err != nil {
		return nil, err
	}
	switch {
	case x.Op == token.EQL:
		return equal(v, w), nil
	case x.Op == token.NEQ:
		return !equal(v, w), nil
	case x.Op == token.LAND && truthy(v), x.Op == token.LOR && !truthy(v):
		return w, nil
	case x.Op == token.LAND, x.Op == token.LOR:
		return v, nil
	}
	return nil, fmt.Errorf("%s is not supported here", x.Op)
}

func (e *evaluation) named(name string) (any, error) {
	switch name {
	case "true", "false":
		return name == "true", nil
	case "null":
		return nil, nil
	}
	v, ok := e.contexts[name]
	if !ok {
		return nil, fmt.Errorf("there is no context %s", name)
	}
	return v, nil
}

func (e *evaluation) call(name string) (any, error) {
	e.asked = true
	switch name {
	case "always":
		return true, nil
	case "success":
		return !e.status.failed, nil
	case "failure":
		return e.status.failed, nil
	}
	return nil, fmt.Errorf("there is no function %s", name)
}

// format returns the first argument with {0}, {1} and so on replaced by the arguments after it.
func (e *evaluation) format(args []ast.Expr) (any, error) {
	out := ""
	for i, arg := range args {
		v, err := e.value(arg)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			out = toString(v)
		} else {
			out = strings.ReplaceAll(out, fmt.Sprintf("{%d}", i-1), toString(v))
		}
	}
	return out, nil
}

// property returns the value of a property of v, or null if v has no such property.
func property(v any, name string) any {
	m, _ := v.(map[string]any)
	for k, x := range m {
		if strings.EqualFold(k, name) {
			return x
		}
	}
	return nil
}

func truthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case float64:
		return v != 0 && !math.IsNaN(v)
	case string:
		return v != ""
	}
	return true
}

// equal compares two values as GitHub does. Strings are equal even if their letters differ in case.
// Values of different types are compared as numbers.
func equal(a, b any) bool {
	x, ok := a.(string)
	y, ok2 := b.(string)
	if ok && ok2 {
		return strings.EqualFold(x, y)
	}
	return toNumber(a) == toNumber(b)
}

func toNumber(v any) float64 {
	switch v := v.(type) {
	case nil:
		return 0
	case bool:
		if v {
			return 1
		}
		return 0
	case float64:
		return v
	case string:
		if v == "" {
			return 0
		}
		if n, err := strconv.ParseFloat(v, 64); err == nil {
			return n
		}
	}
	return math.NaN()
}

func toString(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case string:
		return v
	case []any:
		return "Array"
	}
	return "Object"
}
