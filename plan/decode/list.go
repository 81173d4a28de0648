package decode

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/plan/suggest"
)

func (b *body) item(name string) (x item, ok bool) {
	v, ok := b.value(name)
	return b.itemOf(name, v, b.rangeOf(name)), ok
}

func (b *body) itemOf(name string, v cty.Value, rng hcl.Range) item {
	return item{d: b.d, attr: b.spec.attr(name), name: b.label(name), value: v, rng: rng}
}

// A single value counts as a list of one element.
func (b *body) list(name string) []item {
	attr := b.attrs[name]
	if attr != nil {
		if exprs, diags := hcl.ExprList(attr.Expr); !diags.HasErrors() {
			out := b.notEmpty(name, len(exprs))
			for _, e := range exprs {
				v, ok := b.d.eval(e, b.scope)
				if !ok {
					continue
				}
				if v, ok = b.plain(e, name, v); ok {
					out = b.noNull(out, b.itemOf(name, v, e.Range()))
				}
			}
			return out
		}
	}
	x, ok := b.item(name)
	if !ok {
		return nil
	}
	ty := x.value.Type()
	if !x.value.IsKnown() || !(ty.IsTupleType() || ty.IsListType() || ty.IsSetType()) {
		return []item{x}
	}
	out := b.notEmpty(name, x.value.LengthInt())
	for it := x.value.ElementIterator(); it.Next(); {
		_, e := it.Element()
		out = b.noNull(out, b.itemOf(name, e, x.rng))
	}
	return out
}

// An empty list is an error if the schema has an example of the attribute.
func (b *body) notEmpty(name string, n int) []item {
	if a := b.spec.attr(name); n == 0 && a != nil && a.Example != "" {
		b.d.errorf(b.rangeOf(name), sumMissing, "%s is an empty list. Write at least one element, such as %s, or remove it.", name, a.example())
	}
	return make([]item, 0, n)
}

func (b *body) noNull(list []item, e item) []item {
	if e.value.IsNull() {
		e.errorf(sumWrongType, "%s must not hold null.", e.name)
		return list
	}
	return append(list, e)
}

func (b *body) texts(name string) []string {
	var out []string
	for _, e := range b.list(name) {
		read := e.words
		if e.attr.Type == "list of urls" {
			read = e.url
		}
		if s, ok := read(); ok {
			out = append(out, s)
		}
	}
	return out
}

func (b *body) textMap(name string) map[string]string {
	x, ok := b.item(name)
	if !ok {
		return nil
	}
	if !x.value.IsKnown() || !x.isObject() {
		x.wrongType(`a map of text: { NAME = "value" }`)
		return nil
	}
	out := map[string]string{}
	for it := x.value.ElementIterator(); it.Next(); {
		key, e := it.Element()
		if e.IsNull() {
			continue
		}
		k, one := key.AsString(), b.itemOf(name, e, x.rng)
		one.name = fmt.Sprintf("%s[%q]", name, k)
		if s, ok := one.words(); ok {
			out[k] = s
			one.checkName(k, s)
		}
	}
	return out
}

// checkName checks the name of a header or a variable. The values of headers and parameters that
// authenticate are secrets.
func (x item) checkName(name, value string) {
	switch kind := x.attr.Type; {
	case kind == "map of variables" && (name == "" || strings.ContainsAny(name, "=\x00") || strings.TrimSpace(name) != name):
		x.errorf(sumInvalidName, "%q is not a valid name of an environment variable.", name)
	case kind == "map of headers" && (!headerName.MatchString(name) || strings.ContainsAny(value, "\r\n\x00")):
		x.errorf(sumOutOfRange, "%q is not a valid HTTP header.", name)
	}
	if secretHeader.MatchString(name) && (x.attr.Type == "map of headers" || x.attr.Type == "map of parameters") {
		x.d.addSecret(value)
	}
}

// object opens an object as a block whose attributes are the keys of the attribute in the schema. A
// value that is no object stands for its key Bare. object returns nil if the attribute has no value,
// or a wrong one.
func (b *body) object(name string) *body {
	if x, ok := b.item(name); ok {
		return b.open(name, x)
	}
	return nil
}

// objects opens each object of a list; see object.
func (b *body) objects(name string) []*body {
	var out []*body
	for _, x := range b.list(name) {
		if o := b.open(name, x); o != nil {
			out = append(out, o)
		}
	}
	return out
}

func (b *body) open(name string, x item) *body {
	if x.unknown() {
		return nil
	}
	o := &body{
		d: b.d, spec: &Block{Name: x.name, Attrs: x.attr.Keys}, parent: b, scope: b.scope, path: b.path + "." + name,
		rng: x.rng, attrs: hcl.Attributes{}, of: &x, quiet: b.quiet,
	}
	set := func(key string, v cty.Value) {
		o.attrs[key] = &hcl.Attribute{Name: key, Expr: hcl.StaticExpr(v, x.rng), Range: x.rng, NameRange: x.rng}
	}
	switch {
	case x.isObject():
		for it := x.value.ElementIterator(); it.Next(); {
			k, e := it.Element()
			if key := k.AsString(); o.spec.attr(key) != nil {
				set(key, e)
			} else {
				o.stray = true
				x.errorf(sumOneOf, "%s has %s, not %q.%s", x.name, choices(names(x.attr.Keys)), key, suggest.DidYouMean(key, names(x.attr.Keys)))
			}
		}
		o.checkTogether()
	case x.attr.Bare == "":
		x.wrongType("an object: " + x.attr.Example)
		return nil
	default:
		o.bare = true
		set(x.attr.Bare, x.value)
	}
	return o
}

func names(attrs []*Attr) []string {
	out := make([]string, len(attrs))
	for i, a := range attrs {
		out[i] = a.Name
	}
	return out
}
