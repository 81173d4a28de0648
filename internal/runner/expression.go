package runner

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// contexts holds the names that an expression may use: github, inputs, steps, … A
// value is nil, a bool, a float64, a string, a []any or a map[string]any.
type contexts map[string]any

// status is the state of a job. An expression reads it by success(), failure() and cancelled().
type status struct{ failed, cancelled bool }

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
// function, such as always(), the job must also be neither failed nor cancelled so far.
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
	return truthy(v) && (asked || !st.failed && !st.cancelled), nil
}

// evaluate returns the value of an expression. asked reports whether the expression used a status
// function.
func evaluate(src string, c contexts, st status) (v any, asked bool, err error) {
	p := &parser{src: src, contexts: c, status: st}
	defer func() {
		if e, ok := recover().(syntax); ok {
			err = fmt.Errorf("expression %q: %s", strings.TrimSpace(src), string(e))
		} else if p.pos < len(p.src) {
			err = fmt.Errorf("expression %q: unexpected %q", strings.TrimSpace(src), p.src[p.pos:])
		}
	}()
	v = p.or()
	p.space()
	return v, p.asked, nil
}

// parser evaluates an expression while it parses it. This works because expressions have no side
// effects.
type parser struct {
	src      string
	pos      int
	contexts contexts
	status   status
	asked    bool
}

// syntax is the panic value of the parser for an invalid expression.
type syntax string

func (p *parser) space() {
	for p.pos < len(p.src) && strings.ContainsRune(" \t\r\n", rune(p.src[p.pos])) {
		p.pos++
	}
}

// take skips token if it comes next, and reports whether it did.
func (p *parser) take(token string) bool {
	p.space()
	if strings.HasPrefix(p.src[p.pos:], token) {
		p.pos += len(token)
		return true
	}
	return false
}

func (p *parser) must(token string) {
	if !p.take(token) {
		panic(syntax(fmt.Sprintf("%q is missing at %q", token, p.src[p.pos:])))
	}
}

func (p *parser) or() any {
	v := p.and()
	for p.take("||") {
		if w := p.and(); !truthy(v) {
			v = w
		}
	}
	return v
}

func (p *parser) and() any {
	v := p.compare()
	for p.take("&&") {
		if w := p.compare(); truthy(v) {
			v = w
		}
	}
	return v
}

func (p *parser) compare() any {
	v := p.not()
	switch {
	case p.take("=="):
		return equal(v, p.not())
	case p.take("!="):
		return !equal(v, p.not())
	}
	return v
}

func (p *parser) not() any {
	p.space()
	if strings.HasPrefix(p.src[p.pos:], "!") && !strings.HasPrefix(p.src[p.pos:], "!=") {
		p.pos++
		return !truthy(p.not())
	}
	return p.value()
}

func (p *parser) value() any {
	p.space()
	switch {
	case p.take("("):
		v := p.or()
		p.must(")")
		return v
	case p.take("'"):
		var b strings.Builder
		for {
			text, rest, ok := strings.Cut(p.src[p.pos:], "'")
			if !ok {
				panic(syntax("a string does not end"))
			}
			b.WriteString(text)
			p.pos = len(p.src) - len(rest)
			if !strings.HasPrefix(rest, "'") {
				return b.String()
			}
			b.WriteByte('\'') // two quotes stand for one quote
			p.pos++
		}
	}
	word := p.word()
	switch word {
	case "":
		panic(syntax(fmt.Sprintf("no value at %q", p.src[p.pos:])))
	case "true", "false":
		return word == "true"
	case "null":
		return nil
	}
	if n, err := strconv.ParseFloat(word, 64); err == nil {
		return n
	}
	var v any
	if p.take("(") {
		v = p.call(word)
	} else if context, ok := p.contexts[word]; ok {
		v = context
	} else {
		panic(syntax("there is no context " + word))
	}
	for {
		switch {
		case p.take("."):
			name := p.word()
			if name == "" {
				panic(syntax("a name is missing"))
			}
			v = property(v, name)
		case p.take("["):
			v = property(v, toString(p.or()))
			p.must("]")
		default:
			return v
		}
	}
}

// word reads a name or a number.
func (p *parser) word() string {
	p.space()
	begin := p.pos
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		number := begin < p.pos && p.src[begin] >= '0' && p.src[begin] <= '9'
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c != '.' || !number) {
			break
		}
		p.pos++
	}
	return p.src[begin:p.pos]
}

func (p *parser) call(name string) any {
	var args []any
	for !p.take(")") {
		if len(args) > 0 {
			p.must(",")
		}
		args = append(args, p.or())
	}
	want := func(n int) {
		if len(args) < n {
			panic(syntax(fmt.Sprintf("%s takes %d arguments", name, n)))
		}
	}
	switch strings.ToLower(name) {
	case "always":
		p.asked = true
		return true
	case "success":
		p.asked = true
		return !p.status.failed && !p.status.cancelled
	case "failure":
		p.asked = true
		return p.status.failed
	case "cancelled":
		p.asked = true
		return p.status.cancelled
	case "format":
		want(1)
		out := toString(args[0])
		for i, a := range args[1:] {
			out = strings.ReplaceAll(out, fmt.Sprintf("{%d}", i), toString(a))
		}
		return out
	case "contains":
		want(2)
		if list, ok := args[0].([]any); ok {
			return slices.ContainsFunc(list, func(v any) bool { return equal(v, args[1]) })
		}
		return strings.Contains(strings.ToLower(toString(args[0])), strings.ToLower(toString(args[1])))
	case "startswith":
		want(2)
		return strings.HasPrefix(strings.ToLower(toString(args[0])), strings.ToLower(toString(args[1])))
	case "tojson":
		want(1)
		b, _ := json.Marshal(args[0])
		return string(b)
	case "fromjson":
		want(1)
		var v any
		if err := json.Unmarshal([]byte(toString(args[0])), &v); err != nil {
			panic(syntax("fromJSON: " + err.Error()))
		}
		return v
	}
	panic(syntax("there is no function " + name))
}

// property returns the value of a property of v, or null if v has no such property.
func property(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		if x, ok := v[name]; ok {
			return x
		}
		for k, x := range v {
			if strings.EqualFold(k, name) {
				return x
			}
		}
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v) {
			return v[i]
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
