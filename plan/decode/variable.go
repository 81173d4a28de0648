package decode

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/tokgate/tokgate/plan/suggest"
)

const envPrefix = "TOKGATE_VAR_"

type variable struct {
	*named
	name       string
	typ        cty.Type
	defaults   *typeexpr.Defaults // defaults of optional() attributes; nil if the type has none
	sensitive  bool
	hasDefault bool
	fallback   cty.Value
	content    *body
}

// The default comes first, then TOKGATE_VAR_name, then --var and --var-file in the order of the
// command line. A later value replaces an earlier one.
func (d *decoder) decodeVariables() {
	d.base.Variables = map[string]cty.Value{}
	var order []*variable
	for _, blk := range d.blocks["variable"] {
		if v := d.decodeVariable(blk); v != nil {
			order = append(order, v)
		}
	}
	given := d.givenValues()
	for _, v := range order {
		value := d.variableValue(v, given[v.name])
		if v.sensitive {
			d.addSecrets(value)
			value = value.Mark(sensitive)
		} else {
			d.hash.add("var", v.name, []byte(plainText(value)))
		}
		d.values[v.name] = value
	}
	d.base.Variables["var"] = cty.ObjectVal(d.values)
	for _, v := range order {
		d.validateVariable(v)
	}
}

func (d *decoder) decodeVariable(blk *hcl.Block) *variable {
	name := blk.Labels[0]
	if !d.checkName(name, blk.LabelRanges[0]) {
		return nil
	}
	if first := d.names["var"][name]; first != nil {
		d.errorf(blk.LabelRanges[0], sumDuplicateName, "variable %q is already declared at %s.", name, first.rng)
		return nil
	}
	v := &variable{named: &named{rng: blk.DefRange}, name: name, typ: cty.DynamicPseudoType}
	d.names["var"][name] = v.named
	v.content = d.open(variableBlock, blk, &scope{ctx: d.base}, "variable."+name)
	v.content.quiet = true
	if attr := v.content.attrs["type"]; attr != nil {
		ty, defaults, diags := typeexpr.TypeConstraintWithDefaults(attr.Expr)
		d.add(diags...)
		if !diags.HasErrors() {
			v.typ, v.defaults = ty, defaults
		}
	}
	v.sensitive = v.content.boolean("sensitive")
	v.content.text("description")
	if attr := v.content.attrs["default"]; attr != nil {
		v.hasDefault, v.fallback = true, cty.DynamicVal
		// A default must not contain references.
		if value, ok := d.eval(attr.Expr, &scope{ctx: d.base, root: noReference}); ok {
			v.fallback = d.convertVariable(v, value, attr.Expr.Range(), "the default")
		}
	}
	return v
}

func (d *decoder) convertVariable(v *variable, value cty.Value, rng hcl.Range, what string) cty.Value {
	if v.defaults != nil && !value.IsNull() && value.IsKnown() {
		value = v.defaults.Apply(value)
	}
	out, err := convert.Convert(value, v.typ)
	if err != nil {
		d.errorf(rng, sumVariableValue, "var.%s: %s does not have the type %s: %v.", v.name, what, typeexpr.TypeString(v.typ), err)
		return cty.DynamicVal
	}
	return out
}

type assigned struct {
	from string // where the value comes from, such as "--var", "TOKGATE_VAR_x" or a file's name
	text *string
	expr hcl.Expression // a value from a variable file; otherwise nil
}

// If a variable was set more than once, the last value counts.
func (d *decoder) givenValues() map[string]*assigned {
	given := map[string]*assigned{}
	for _, name := range slices.Sorted(maps.Keys(d.environ)) {
		// The environment may contain TOKGATE_VAR_ names of other plans.
		if v, ok := strings.CutPrefix(name, envPrefix); ok && d.names["var"][v] != nil {
			text := d.environ[name]
			given[v] = &assigned{from: name, text: &text}
		}
	}
	for _, a := range d.opts.Inputs {
		if a.Var == "" {
			d.readVarFile(a.File, given)
			continue
		}
		name, text, ok := strings.Cut(a.Var, "=")
		switch {
		case !ok:
			d.errorf(commandLine, sumVariableValue, "--var %q is not valid. Write it as name=value.", a.Var)
		case d.names["var"][name] == nil:
			d.unknownVariable(commandLine, name, "--var")
		default:
			given[name] = &assigned{from: "--var", text: &text}
		}
	}
	return given
}

func (d *decoder) unknownVariable(rng hcl.Range, name, from string) {
	if d.enoughErrors() || d.opts.lenient {
		return
	}
	names := slices.Sorted(maps.Keys(d.names["var"]))
	hint := suggest.DidYouMean(name, names)
	if hint == "" {
		hint = " The plan declares " + choices(names) + "."
	}
	d.errorf(rng, sumVariableUnknown, "%s sets %q, which the plan does not declare.%s", from, name, hint)
}

func (d *decoder) readVarFile(path string, given map[string]*assigned) {
	src, err := d.readGiven(path)
	if err != nil {
		d.errorf(commandLine, sumVariableFile, "%s.", readError(path, err))
		return
	}
	file, diags := parse(src, path)
	d.out.Files[path] = file
	d.add(diags...)
	if diags.HasErrors() {
		return
	}
	attrs, diags := file.Body.JustAttributes()
	if diags.HasErrors() {
		for _, diag := range diags {
			d.errorf(*diag.Subject, sumVariableFile, "A variable file contains only lines of the form name = value. Move blocks to the plan.")
		}
		return
	}
	for _, attr := range sortedAttributes(attrs) {
		if d.names["var"][attr.Name] == nil {
			d.unknownVariable(attr.NameRange, attr.Name, filepath.ToSlash(path))
			continue
		}
		given[attr.Name] = &assigned{from: path, expr: attr.Expr}
	}
}

func (d *decoder) variableValue(v *variable, a *assigned) cty.Value {
	rng := v.rng
	switch {
	case a != nil && a.expr != nil:
		value, ok := d.eval(a.expr, &scope{ctx: d.base, root: noReference})
		if !ok {
			return cty.DynamicVal
		}
		return d.convertVariable(v, value, a.expr.Range(), "the value")
	case a != nil:
		value, ok := d.readText(v, a)
		if !ok {
			return cty.DynamicVal
		}
		return d.convertVariable(v, value, rng, "the value from "+a.from)
	case v.hasDefault:
		return v.fallback
	case v.sensitive && !d.opts.RequireEnv:
		return cty.UnknownVal(v.typ)
	}
	d.errorf(rng, sumVariableUnset, "var.%s has no value. Set it with --var %s=…, with --var-file, or with the environment variable %s%s.", v.name, v.name, envPrefix, v.name)
	return cty.DynamicVal
}

// A string, number or bool is read literally, and any other type as an expression. Without a type,
// text that looks like a number or bool becomes one.
func (d *decoder) readText(v *variable, a *assigned) (cty.Value, bool) {
	if v.typ.IsPrimitiveType() || v.typ == cty.DynamicPseudoType {
		text, number := cty.StringVal(*a.text), checkNumber(*a.text, v.rng)
		switch {
		case v.typ == cty.Number && number != nil:
			d.add(number)
			return cty.DynamicVal, false
		case v.typ != cty.DynamicPseudoType || v.sensitive || number != nil:
			return text, true
		}
		return plainest(text), true
	}
	name := "<" + a.from + " " + v.name + ">"
	src := []byte(*a.text)
	if v.sensitive {
		src = nil // keep a secret value out of the diagnostics
	}
	d.out.Files[name] = &hcl.File{Bytes: src, Body: hcl.EmptyBody()}
	if diags := checkComplexity([]byte(*a.text), name, hcl.InitialPos); diags.HasErrors() {
		d.add(diags...)
		return cty.DynamicVal, false
	}
	expr, diags := hclsyntax.ParseExpression([]byte(*a.text), name, hcl.InitialPos)
	d.add(diags...)
	if diags.HasErrors() {
		return cty.DynamicVal, false
	}
	return d.eval(expr, &scope{ctx: d.base, root: noReference})
}

// plainest converts a text to a number or bool if a plan would write that value in the same way.
// "08" and "1e3" stay text.
func plainest(text cty.Value) cty.Value {
	for _, ty := range []cty.Type{cty.Number, cty.Bool} {
		if value, err := convert.Convert(text, ty); err == nil {
			if back, err := convert.Convert(value, cty.String); err == nil && back.RawEquals(text) {
				return value
			}
		}
	}
	return text
}

func (d *decoder) validateVariable(v *variable) {
	for _, blk := range v.content.blocks["validation"] {
		b := d.open(variableBlock.block("validation"), blk, &scope{ctx: d.base, root: "var", own: v.name}, "")
		text, result := cty.DynamicVal, cty.DynamicVal
		textOK, ok := false, false
		if message := b.attrs["error_message"]; message != nil {
			text, textOK = d.eval(message.Expr, b.scope)
			if textOK && text.Type() != cty.String && text.Type() != cty.DynamicPseudoType {
				b.itemOf("error_message", text, message.Expr.Range()).wrongType("text")
			}
		}
		condition := b.attrs["condition"]
		if condition != nil {
			result, ok = d.eval(condition.Expr, b.scope)
		}
		if !ok {
			continue
		}
		result, _ = result.Unmark()
		if result.IsNull() || result.Type() != cty.Bool && result.Type() != cty.DynamicPseudoType {
			d.errorf(condition.Expr.Range(), sumAssertType, "The condition must be true or false.")
			continue
		}
		if !textOK {
			continue
		}
		if result.IsKnown() && result.False() {
			why := "The value does not fit."
			if text, marks := text.Unmark(); len(marks) == 0 && text.Type() == cty.String && text.IsKnown() && !text.IsNull() {
				why = text.AsString()
			}
			d.errorf(v.rng, sumVariableValue, "var.%s: %s", v.name, why)
		}
	}
}
