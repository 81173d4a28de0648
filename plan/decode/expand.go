package decode

import (
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

func (d *decoder) expand(blk *hcl.Block, sc *scope, use func(key string, each bool, sc *scope)) {
	content, _, _ := blk.Body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "for_each"}}})
	attr := content.Attributes["for_each"]
	if attr == nil {
		if d.countInstances(blk.DefRange) {
			use("", false, sc)
		}
		return
	}
	rng := attr.Expr.Range()
	raw, ok := d.eval(attr.Expr, sc)
	if !ok {
		return
	}
	if hasMark(raw, sensitive) {
		d.errorf(rng, sumForEach, "for_each must not use sensitive values or env.NAME, because tokgate prints its keys.")
		return
	}
	v := d.unmark(raw)
	if !d.checkForEach(v, rng) {
		return
	}
	if v.LengthInt() == 0 {
		// An empty for_each may be intended. But it may also come from a variable that was not set,
		// and then the gate checks nothing.
		d.warnf(rng, sumForEachEmpty, "for_each is empty: this %s block creates nothing, and none of its thresholds are checked.", blk.Type)
	}
	for it := v.ElementIterator(); it.Next(); {
		key, value := it.Element()
		if key.IsNull() || !validKey(key.AsString()) {
			d.errorf(rng, sumForEach, "A key of for_each must have 1 to 64 printable characters, and no quotes or backslashes.")
			continue
		}
		if !d.countInstances(blk.DefRange) {
			return
		}
		each := sc.child(map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": key, "value": value})})
		each.each = true
		use(key.AsString(), true, each)
	}
}

func (d *decoder) checkForEach(v cty.Value, rng hcl.Range) bool {
	ty := v.Type()
	switch {
	case v.IsNull() || !(ty.IsObjectType() || ty.IsMapType() || ty.IsSetType()):
		hint := ""
		if ty.IsTupleType() || ty.IsListType() {
			hint = " Turn a list into a set with toset([…])."
		}
		d.errorf(rng, sumForEach, "for_each takes a map or a set of strings, not %s.%s", ty.FriendlyNameForConstraint(), hint)
		return false
	case !v.IsKnown() || ty.IsSetType() && !v.IsWhollyKnown():
		d.errorf(rng, sumUnknownValue, "for_each depends on an environment variable or a sensitive variable that is not set. It must not use such values.")
		return false
	case ty.IsSetType() && ty.ElementType() != cty.String:
		d.errorf(rng, sumForEach, "for_each takes a set of strings, but the elements of this set are %s.", ty.ElementType().FriendlyNameForConstraint())
		return false
	}
	return true
}

func (d *decoder) countInstances(rng hcl.Range) bool {
	if d.instances++; d.instances > maxInstances {
		d.errorf(rng, sumTooManyInstances, "A plan has at most %d servers and workloads, including those that for_each declares.", maxInstances)
		return false
	}
	return true
}

func validKey(key string) bool {
	return key != "" && len(key) <= 64 && !strings.ContainsFunc(key, func(r rune) bool {
		return !unicode.IsPrint(r) || r == '"' || r == '\\' || r == '\''
	})
}

func families[T any](d *decoder, kind string, have map[string]*family[T], sc *scope, all *[]*T,
	decode func(name, key string, blk *hcl.Block, sc *scope) *T) {
	for _, blk := range d.blocks[kind] {
		name := blk.Labels[0]
		if !d.checkName(name, blk.LabelRanges[0]) {
			continue
		}
		if first := have[name]; first != nil {
			d.errorf(blk.LabelRanges[0], sumDuplicateName, "%s %q is already declared at %s.", kind, name, first.rng)
			continue
		}
		f := &family[T]{named: &named{rng: blk.DefRange}}
		have[name], d.names[kind][name] = f, f.named
		d.expand(blk, sc, func(key string, each bool, sc *scope) {
			one := decode(name, key, blk, sc)
			f.each = each
			f.keys = append(f.keys, key)
			f.members = append(f.members, one)
			*all = append(*all, one)
		})
	}
}
