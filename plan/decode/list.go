package decode

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/tokgate/tokgate/plan/suggest"
)

// element is one item of a list. Its place rng is that of the whole list if its own place is not
// known.
type element struct {
	value cty.Value
	rng   hcl.Range
}

// list returns the elements of a list attribute, or nil if the plan does not set it. A single value
// counts as a list of one element. A null element is an error.
func (b *body) list(name string) []element {
	attr := b.attrs[name]
	if attr == nil {
		v, ok := b.value(name)
		if !ok {
			return nil
		}
		return b.elements(v, b.rng, name)
	}
	if exprs, diags := hcl.ExprList(attr.Expr); !diags.HasErrors() {
		var out []element
		for _, e := range exprs {
			v, ok := b.d.eval(e, b.scope)
			if !ok {
				continue
			}
			if v, ok = b.plain(e, name, v); ok {
				out = b.noNull(out, element{v, e.Range()}, name)
			}
		}
		return out
	}
	v, ok := b.value(name)
	if !ok {
		return nil
	}
	return b.elements(v, attr.Expr.Range(), name)
}

func (b *body) elements(v cty.Value, rng hcl.Range, name string) []element {
	ty := v.Type()
	if !v.IsKnown() || !(ty.IsTupleType() || ty.IsListType() || ty.IsSetType()) {
		return []element{{v, rng}}
	}
	out := make([]element, 0, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		out = b.noNull(out, element{e, rng}, name)
	}
	return out
}

// noNull appends an element to a list. A null element is an error.
func (b *body) noNull(list []element, e element, name string) []element {
	if e.value.IsNull() {
		b.d.errorf(e.rng, sumWrongType, "%s must not hold null.", name)
		return list
	}
	return append(list, e)
}

// texts returns the strings of a list attribute.
func (b *body) texts(name string) []string {
	var out []string
	for _, e := range b.list(name) {
		v := e.value
		if v.IsKnown() && (v.Type() == cty.Number || v.Type() == cty.Bool) {
			v, _ = convert.Convert(v, cty.String)
		}
		if s, ok := b.asText(e.rng, name, v); ok {
			out = append(out, s)
		}
	}
	return out
}

// textMap returns the strings of a map attribute, or nil if the plan does not set it. It skips null
// elements.
func (b *body) textMap(name string) map[string]string {
	attr := b.attrs[name]
	if attr == nil {
		return nil
	}
	v, ok := b.d.eval(attr.Expr, b.scope)
	if !ok {
		return nil
	}
	if v, ok = b.plain(attr.Expr, name, v); !ok || v.IsNull() {
		return nil
	}
	if ty := v.Type(); !v.IsKnown() || !(ty.IsObjectType() || ty.IsMapType()) {
		b.wrongType(attr.Expr.Range(), name, "a map of text: { NAME = \"value\" }", v)
		return nil
	}
	out := map[string]string{}
	for it := v.ElementIterator(); it.Next(); {
		key, e := it.Element()
		if e.IsNull() {
			continue
		}
		if e.IsKnown() && (e.Type() == cty.Number || e.Type() == cty.Bool) {
			e, _ = convert.Convert(e, cty.String)
		}
		k := key.AsString()
		if s, ok := b.asText(attr.Expr.Range(), fmt.Sprintf("%s[%q]", name, k), e); ok {
			out[k] = s
		}
	}
	return out
}

// settings returns the settings in the object v. It skips those that are null.
func settings(b *body, name string, v cty.Value, keys []string) map[string]cty.Value {
	set := map[string]cty.Value{}
	for it := v.ElementIterator(); it.Next(); {
		k, e := it.Element()
		key := k.AsString()
		if !slices.Contains(keys, key) {
			b.d.errorf(b.rangeOf(name), sumOneOf, "%s has %s, not %q.%s", name, choices(keys), key, suggest.DidYouMean(key, keys))
		} else if !e.IsNull() {
			set[key] = e
		}
	}
	return set
}
