package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// body is one block while it is decoded: its getters evaluate an attribute,
// check it, and fill in and note the schema's default when it is not set.
type body struct {
	d      *decoder
	spec   *Block
	scope  *scope
	path   string // of the block, in Default.Path
	rng    hcl.Range
	attrs  hcl.Attributes
	blocks map[string][]*hcl.Block
	quiet  bool // defaults are not noted
	later  bool // something in it is not supported yet
	stray  bool // something in it is not of the language: what was meant is missing only because of that
}

// open reads the content of a block by its schema.
func (d *decoder) open(spec *Block, blk *hcl.Block, sc *scope, path string) *body {
	b := &body{d: d, spec: spec, scope: sc, path: path, rng: blk.DefRange, attrs: hcl.Attributes{}, blocks: map[string][]*hcl.Block{}}
	content := &hcl.BodyContent{}
	var diags hcl.Diagnostics
	if spec.Free != "" {
		content.Attributes, diags = blk.Body.JustAttributes()
	} else {
		content, diags = blk.Body.Content(spec.bodySchema())
	}
	b.stray = diags.HasErrors()
	d.explainUnsupported(diags, spec)
	d.add(diags...)
	for _, attr := range sortedAttributes(content.Attributes) {
		if a := spec.attr(attr.Name); a != nil && a.Later {
			b.later = true
			d.later(attr.NameRange, attr.Name)
			continue
		}
		b.attrs[attr.Name] = attr
	}
	for _, c := range content.Blocks {
		child := spec.block(c.Type)
		switch {
		case child == nil:
		case child.Later:
			d.later(c.DefRange, "The block "+c.Type)
		case !child.Repeat && len(b.blocks[c.Type]) > 0:
			d.errorf(c.DefRange, sumDuplicateBlock, "%s may be written once; it is already at %s.", c.Type, b.blocks[c.Type][0].DefRange)
		default:
			b.blocks[c.Type] = append(b.blocks[c.Type], c)
		}
	}
	return b
}

func (b *body) blocksOf(name string) []*hcl.Block { return b.blocks[name] }

// child opens the only block of that name; nil when there is none.
func (b *body) child(name string) *body {
	if len(b.blocks[name]) == 0 {
		return nil
	}
	c := b.d.open(b.spec.block(name), b.blocks[name][0], b.scope, b.path+"."+name)
	c.quiet = b.quiet
	return c
}

// absent is a child that the plan does not have: only defaults.
func (b *body) absent(name string) *body {
	return &body{d: b.d, spec: b.spec.block(name), scope: b.scope, path: b.path + "." + name, rng: b.rng, quiet: b.quiet}
}

// isSet says whether the plan sets the attribute, null included.
func (b *body) isSet(name string) bool { return b.attrs[name] != nil }

// given says whether the plan sets the attribute to anything but null.
func (b *body) given(name string) bool { return b.isSet(name) && !b.unset(name) }

// rangeOf is where the attribute's value stands, or the block when it is not
// set.
func (b *body) rangeOf(name string) hcl.Range {
	if a := b.attrs[name]; a != nil {
		return a.Expr.Range()
	}
	return b.rng
}

// note records a default.
func (b *body) note(name, value, why string) {
	if !b.quiet {
		b.d.plan.Defaults = append(b.d.plan.Defaults, Default{Path: b.path + "." + name, Value: value, Why: why})
	}
}

// value is the attribute's value, or its default's; ok is false when it has
// neither, or a problem was reported. Null counts as not set. Marks are
// removed, secrets among them noted.
func (b *body) value(name string) (v cty.Value, ok bool) {
	if attr := b.attrs[name]; attr != nil {
		v, ok := b.d.eval(attr.Expr, b.scope)
		if !ok {
			return v, false
		}
		v = b.d.unmark(v)
		if !v.IsNull() {
			return v, true
		}
		if spec := b.spec.attr(name); spec != nil && spec.Required {
			b.d.errorf(attr.Expr.Range(), sumMissing, "%s is required and must not be null.", name)
			return v, false
		}
	}
	spec := b.spec.attr(name)
	if spec == nil || spec.Default == "" {
		return cty.NilVal, false
	}
	b.note(name, spec.Default, "")
	return b.d.constant(spec.Default), true
}

// constant evaluates a default of the schema, each once.
func (d *decoder) constant(src string) cty.Value {
	if v, ok := d.constants[src]; ok {
		return v
	}
	expr, diags := hclsyntax.ParseExpression([]byte(src), "default", hcl.InitialPos)
	if diags.HasErrors() {
		panic("plan: bad default in the schema: " + src)
	}
	v, diags := expr.Value(nil)
	if diags.HasErrors() {
		panic("plan: bad default in the schema: " + src)
	}
	d.constants[src] = v
	return v
}

// unmark removes marks and notes the secrets among the strings: what comes
// from a sensitive variable, unless it only holds a secret that is known
// already.
func (d *decoder) unmark(v cty.Value) cty.Value {
	if !v.ContainsMarked() {
		return v
	}
	out, paths := v.UnmarkDeepWithPaths()
	for _, p := range paths {
		if _, ok := p.Marks[sensitive]; !ok {
			continue
		}
		if part, err := p.Path.Apply(out); err == nil {
			d.addSecrets(part)
		}
	}
	return out
}

// addSecrets notes every text in v as one that must not be printed.
func (d *decoder) addSecrets(v cty.Value) {
	v, _ = v.UnmarkDeep()
	_ = cty.Walk(v, func(_ cty.Path, e cty.Value) (bool, error) {
		if e.IsKnown() && !e.IsNull() && (e.Type() == cty.String || e.Type() == cty.Number) {
			if s, err := convert.Convert(e, cty.String); err == nil {
				d.addSecret(s.AsString())
			}
		}
		return true, nil
	})
}

func (d *decoder) addSecret(s string) {
	if s == "" || s == unknownText {
		return
	}
	d.secrets[s] = true
}

// wrongType reports a value of another type than the attribute's.
func (b *body) wrongType(rng hcl.Range, name, want string, got cty.Value) {
	hint := ""
	if got.Type() == cty.String && got.IsKnown() && !got.IsNull() && strings.HasSuffix(want, "number") {
		s, _ := got.Unmark()
		switch text := strings.TrimSpace(s.AsString()); {
		case thousands.MatchString(text):
			hint = " " + inThousands(text)
		case text != "" && strings.Trim(text, "0123456789") == "":
			hint = " Write it without quotes: " + text + "."
		}
	}
	b.d.errorf(rng, sumWrongType, "%s must be %s, not %s.%s", name, want, got.Type().FriendlyNameForConstraint(), hint)
}

// isUnknown reports values on which the plan's shape depends and which are not
// known without the secrets of a run.
func (b *body) isUnknown(rng hcl.Range, name string, v cty.Value) bool {
	if v.IsWhollyKnown() {
		return false
	}
	if b.d.diags.HasErrors() && hasUntyped(v) {
		return true // what has no value because of a problem has no type either
	}
	b.d.errorf(rng, sumUnknownValue, "%s depends on an environment variable or sensitive variable that is not set. Only names, addresses, secrets and other text of a server or request may: the plan is checked without them.", name)
	return true
}

// hasUntyped says whether a part of v is unknown to its very type.
func hasUntyped(v cty.Value) bool {
	found := false
	_ = cty.Walk(v, func(_ cty.Path, e cty.Value) (bool, error) {
		found = found || !e.IsKnown() && e.Type() == cty.DynamicPseudoType
		return !found, nil
	})
	return found
}

// text is a string; "" when not set. A text that is not known yet reads
// "(unknown)".
func (b *body) text(name string) string {
	v, ok := b.value(name)
	if !ok {
		return ""
	}
	s, _ := b.asText(b.rangeOf(name), name, v)
	return s
}

func (b *body) asText(rng hcl.Range, name string, v cty.Value) (string, bool) {
	if v.IsNull() {
		b.wrongType(rng, name, "text", v)
		return "", false
	}
	if v.Type() != cty.String && v.Type() != cty.DynamicPseudoType {
		b.wrongType(rng, name, "text", v)
		return "", false
	}
	if !v.IsKnown() {
		return unknownText, true
	}
	return v.AsString(), true
}

// oneOf is a string out of a fixed set.
func (b *body) oneOf(name string, names ...string) string {
	v, ok := b.value(name)
	if !ok || b.isUnknown(b.rangeOf(name), name, v) {
		return names[0]
	}
	s, ok := b.asText(b.rangeOf(name), name, v)
	if ok && !slices.Contains(names, s) {
		b.d.errorf(b.rangeOf(name), sumOneOf, "%s is %s, not %q.%s", name, choices(names), s, didYouMean(s, names))
		ok = false
	}
	if !ok {
		return names[0]
	}
	return s
}

// boolean is false when not set.
func (b *body) boolean(name string) bool {
	v, ok := b.value(name)
	if !ok || b.isUnknown(b.rangeOf(name), name, v) {
		return false
	}
	if v.Type() != cty.Bool {
		b.wrongType(b.rangeOf(name), name, "true or false", v)
		return false
	}
	return v.True()
}

// integer is a whole number between low and high; ok is false when it is not
// set or wrong.
func (b *body) integer(name string, low, high int64) (int64, bool) {
	v, ok := b.value(name)
	if !ok {
		return 0, false
	}
	return b.asInteger(b.rangeOf(name), name, v, low, high)
}

func (b *body) asInteger(rng hcl.Range, name string, v cty.Value, low, high int64) (int64, bool) {
	if b.isUnknown(rng, name, v) {
		return 0, false
	}
	if v.IsNull() || v.Type() != cty.Number {
		b.wrongType(rng, name, "a whole number", v)
		return 0, false
	}
	n, whole := wholeNumber(v)
	if !whole || n < low || n > high {
		b.d.errorf(rng, sumOutOfRange, "%s must be a whole number from %d to %d.", name, low, high)
		return 0, false
	}
	return n, true
}

// number is any finite number between low and high.
func (b *body) number(name string, low, high float64) (float64, bool) {
	v, ok := b.value(name)
	if !ok || b.isUnknown(b.rangeOf(name), name, v) {
		return 0, false
	}
	if v.Type() != cty.Number {
		b.wrongType(b.rangeOf(name), name, "a number", v)
		return 0, false
	}
	f, _ := v.AsBigFloat().Float64()
	if f < low || f > high || math.IsInf(f, 0) {
		hint := ""
		if high == 1 && f > 1 && f <= 100 {
			hint = fmt.Sprintf(" %v%% is %v.", f, f/100)
		}
		b.d.errorf(b.rangeOf(name), sumOutOfRange, "%s must be from %v to %v.%s", name, low, high, hint)
		return 0, false
	}
	return f, true
}

// fraction is a share: 0.05 or "5%".
func (b *body) asFraction(rng hcl.Range, name string, v cty.Value) (float64, bool) {
	if b.isUnknown(rng, name, v) {
		return 0, false
	}
	switch {
	case v.IsNull():
	case v.Type() == cty.Number:
		f, _ := v.AsBigFloat().Float64()
		return f, true
	case v.Type() == cty.String:
		if digits, ok := strings.CutSuffix(v.AsString(), "%"); ok {
			if f, err := parseDecimal(strings.TrimSpace(digits), -2); err == nil {
				return f, true
			}
		}
	}
	b.wrongType(rng, name, `a share such as "5%" or 0.05`, v)
	return 0, false
}

// duration is between low and high; ok is false when it is not set or wrong.
func (b *body) duration(name string, low, high time.Duration) (time.Duration, bool) {
	v, ok := b.value(name)
	if !ok {
		return 0, false
	}
	return b.asDuration(b.rangeOf(name), name, v, low, high)
}

func (b *body) asDuration(rng hcl.Range, name string, v cty.Value, low, high time.Duration) (time.Duration, bool) {
	if b.isUnknown(rng, name, v) {
		return 0, false
	}
	if v.Type() == cty.Number {
		n, _ := v.AsBigFloat().Float64()
		text := strconv.FormatFloat(n, 'f', -1, 64)
		b.d.errorf(rng, sumMissingUnit, `%s needs a unit: "%ss", "%sms" or "%sm".`, name, text, text, text)
		return 0, false
	}
	if v.IsNull() || v.Type() != cty.String {
		b.wrongType(rng, name, `a duration such as "90s"`, v)
		return 0, false
	}
	dur, err := time.ParseDuration(v.AsString())
	if err != nil {
		b.d.errorf(rng, sumDuration, `%s: %q is no duration; write one such as "90s", "250ms" or "1h30m".`, name, v.AsString())
		return 0, false
	}
	if dur < low || dur > high {
		b.d.errorf(rng, sumOutOfRange, "%s must be from %s to %s.", name, PlainDuration(low), PlainDuration(high))
		return 0, false
	}
	return dur, true
}

// PlainDuration writes a duration as a plan would: 24h, not 24h0m0s.
func PlainDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// element is one item of a list with the tightest range that is known.
type element struct {
	value cty.Value
	rng   hcl.Range
}

// list is a list, or one value for a list of one; nil when not set. Nulls in
// it are refused.
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
			if v, ok := b.d.eval(e, b.scope); ok {
				out = append(out, b.noNull(element{b.d.unmark(v), e.Range()}, name)...)
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
	var out []element
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		out = append(out, b.noNull(element{e, rng}, name)...)
	}
	return out
}

func (b *body) noNull(e element, name string) []element {
	if e.value.IsNull() {
		b.d.errorf(e.rng, sumWrongType, "%s must not hold null.", name)
		return nil
	}
	return []element{e}
}

// texts is a list of strings.
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

// textMap is a map of strings; nil when not set. Null values leave their key
// out. With secret, every value that came from the environment is one.
func (b *body) textMap(name string, secret bool) map[string]string {
	attr := b.attrs[name]
	if attr == nil {
		return nil
	}
	raw, ok := b.d.eval(attr.Expr, b.scope)
	if !ok {
		return nil
	}
	if secret {
		b.secretsFromEnv(attr.Expr, raw)
	}
	v := b.d.unmark(raw)
	if v.IsNull() {
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

// secretsFromEnv notes what env.NAME put into a value that holds secrets: the
// variables themselves and every text made from them.
func (b *body) secretsFromEnv(expr hcl.Expression, v cty.Value) {
	for _, t := range expr.Variables() {
		if t.RootName() == "env" {
			b.d.addSecret(b.d.environ[stepName(t, 1)])
		}
	}
	out, paths := v.UnmarkDeepWithPaths()
	for _, p := range paths {
		if _, ok := p.Marks[fromEnv]; !ok {
			continue
		}
		if part, err := p.Path.Apply(out); err == nil {
			b.d.addSecrets(part)
		}
	}
}

// parseDecimal reads plain digits, times ten to the power.
func parseDecimal(s string, power int) (float64, error) {
	if s == "" || strings.Trim(s, "0123456789.") != "" || len(s) > 32 {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(s+"e"+strconv.Itoa(power), 64)
}

// checkName refuses names that a reference could not write.
func (d *decoder) checkName(name string, rng hcl.Range) bool {
	if hclsyntax.ValidIdentifier(name) && len(name) <= 64 {
		return true
	}
	d.errorf(rng, sumInvalidName, "A name starts with a letter and holds letters, digits, _ and -, at most 64 of them.")
	return false
}
