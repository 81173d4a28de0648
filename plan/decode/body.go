package decode

import (
	"strconv"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/plan"
)

// body is a block while it is decoded. Its getters evaluate an attribute and check its value. If
// the plan does not set the attribute, the getters record and return the schema's default.
type body struct {
	d      *decoder
	spec   *Block
	parent *body // the block or object that it stands in; nil for one of the plan itself
	scope  *scope
	path   string // path of the block in the plan, in the form of Default.Path
	rng    hcl.Range
	labels []string
	attrs  hcl.Attributes
	blocks map[string][]*hcl.Block
	quiet  bool               // defaults are not noted
	stray  bool               // whether the block has an unknown name, which may be a misspelt setting or preset
	of     *item              // the object whose keys are the attributes; nil for a block
	bare   bool               // whether the value of the item stands for one key
	opened map[string][]*body // the blocks in it that were opened, by name
	nulls  map[string]bool    // what unset found, by attribute
}

func (b *body) label(name string) string {
	switch {
	case b.of == nil:
		return name
	case b.bare:
		return b.of.name
	}
	return b.of.name + "." + name
}

func (d *decoder) open(spec *Block, blk *hcl.Block, sc *scope, path string) *body {
	return d.openIn(nil, spec, blk, sc, path)
}

func (d *decoder) openIn(parent *body, spec *Block, blk *hcl.Block, sc *scope, path string) *body {
	b := &body{parent: parent, d: d, spec: spec, scope: sc, path: path, rng: blk.DefRange, labels: blk.Labels}
	content := &hcl.BodyContent{}
	var diags hcl.Diagnostics
	if spec.Free != "" {
		content.Attributes, diags = blk.Body.JustAttributes()
	} else {
		content, diags = blk.Body.Content(d.schema(spec))
	}
	b.stray = diags.HasErrors()
	diags = withoutMisspelt(diags)
	d.explainUnsupported(diags, spec)
	d.add(diags...)
	b.attrs = content.Attributes
	if len(content.Blocks) > 0 {
		b.blocks = map[string][]*hcl.Block{}
	}
	for _, c := range content.Blocks {
		child := spec.block(c.Type)
		switch {
		case child == nil:
		case !child.Repeat && len(b.blocks[c.Type]) > 0:
			d.errorf(c.DefRange, sumDuplicateBlock, "The `%s` block may contain only one `%s` block. The first is at %s.", spec.Name, c.Type, b.blocks[c.Type][0].DefRange)
		default:
			b.blocks[c.Type] = append(b.blocks[c.Type], c)
		}
	}
	b.checkTogether()
	return b
}

func (b *body) children(name string) []*body {
	if b.opened[name] == nil {
		if b.opened == nil {
			b.opened = map[string][]*body{}
		}
		for i, blk := range b.blocks[name] {
			path := b.path + "." + name
			if len(b.blocks[name]) > 1 {
				path += "[" + strconv.Itoa(i) + "]"
			}
			c := b.d.openIn(b, b.spec.block(name), blk, b.scope, path)
			c.quiet = b.quiet
			b.opened[name] = append(b.opened[name], c)
		}
	}
	return b.opened[name]
}

func (b *body) child(name string) *body {
	if all := b.children(name); len(all) > 0 {
		return all[0]
	}
	return nil
}

func (b *body) absent(name string) *body {
	return &body{d: b.d, spec: b.spec.block(name), scope: b.scope, path: b.path + "." + name, rng: b.rng, quiet: b.quiet}
}

func (b *body) isSet(name string) bool { return b.attrs[name] != nil }

// given reports whether the plan sets the attribute to a value other than null.
func (b *body) given(name string) bool { return b.isSet(name) && !b.unset(name) }

// If the plan does not set the attribute, it returns the range of the block.
func (b *body) rangeOf(name string) hcl.Range {
	if a := b.attrs[name]; a != nil {
		return a.Expr.Range()
	}
	return b.rng
}

func (b *body) note(name, value, why string) {
	if !b.quiet {
		b.d.out.Defaults = append(b.d.out.Defaults, plan.Default{Path: b.path + "." + name, Value: value, Why: why})
	}
}

// value returns the attribute's value, or its default if the plan sets none. ok is false if there
// is neither, or if value reported a problem. value removes the marks of secrets, and records the
// secrets.
func (b *body) value(name string) (v cty.Value, ok bool) {
	if attr := b.attrs[name]; attr != nil {
		v, ok := b.d.eval(attr.Expr, b.scope)
		if !ok {
			return v, false
		}
		if v, ok = b.plain(attr.Expr, name, v); !ok {
			return v, false
		}
		if !v.IsNull() {
			return v, true
		}
		if spec := b.spec.attr(name); spec != nil && spec.Required && !spec.conditional() {
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

// plain returns the value of an attribute without marks, and records its secrets. It refuses a
// value that is made of a secret, except for text that goes to a server: it is masked wherever it
// appears, but a mask finds no secret in a number, a name or a condition.
func (b *body) plain(expr hcl.Expression, name string, v cty.Value) (cty.Value, bool) {
	if hasMark(v, sensitive) && !(b.spec.takesSecrets(name) && secretsAreText(v)) {
		b.d.refuseSecret(expr, name)
		return cty.DynamicVal, false
	}
	return b.d.unmark(v), true
}

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

// checkName allows only names that a reference can contain.
func (d *decoder) checkName(name string, rng hcl.Range) bool {
	if hclsyntax.ValidIdentifier(name) && len(name) <= 64 {
		return true
	}
	d.errorf(rng, sumInvalidName, "A name starts with a letter. It has at most 64 characters: letters, digits, _ and -.")
	return false
}

// isNew refuses a second block with the same label.
func (d *decoder) isNew(blk *hcl.Block, seen map[string]hcl.Range) bool {
	name := blk.Labels[0]
	if first, ok := seen[name]; ok {
		d.errorf(blk.LabelRanges[0], sumDuplicateName, "%s %q is already declared at %s.", blk.Type, name, first)
		return false
	}
	seen[name] = blk.DefRange
	return true
}

func (b *body) unset(name string) bool {
	attr := b.attrs[name]
	if attr == nil {
		return true
	}
	null, ok := b.nulls[name]
	if !ok {
		if b.nulls == nil {
			b.nulls = map[string]bool{}
		}
		null = b.isNull(attr)
		b.nulls[name] = null
	}
	return null
}

func (b *body) isNull(attr *hcl.Attribute) bool {
	switch attr.Expr.(type) {
	case *hclsyntax.TupleConsExpr, *hclsyntax.ObjectConsExpr, *hclsyntax.TemplateExpr:
		return false // a list, an object or a text
	}
	ctx, ok := b.d.context(attr.Expr, b.scope)
	if !ok {
		return false
	}
	v, diags := attr.Expr.Value(ctx)
	if hasMark(v, sensitive) && !b.spec.takesSecrets(attr.Name) {
		return false // even whether it is null would tell something of the secret
	}
	return !diags.HasErrors() && v.IsNull()
}

func (b *body) anyMetric() bool {
	for name := range b.attrs {
		if _, ok := b.d.out.Metric(name); ok {
			return true
		}
	}
	return false
}

func (b *body) hasValue(name string) bool { return b.given(name) || b.spec.attr(name).Default != "" }
