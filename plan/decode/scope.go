package decode

import (
	"iter"
	"maps"
	"regexp"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/suggest"
)

type scope struct {
	ctx    *hcl.EvalContext
	each   bool     // each.key and each.value exist
	server bool     // server.name exists
	work   bool     // workload.name exists
	result cty.Type // type of the reference named result in an assert; otherwise cty.NilType
	root   string   // the only name with which a reference may begin; "" allows every name
	own    string   // variable that a validation checks, which does not count as a use of it
}

// noReference is the value of the field root that allows only constants. An expression then may not
// refer to anything.
const noReference = "nothing"

var roots = []string{"var", "local", "env", "each", "server", "result", "workload", "base"}

func (d *decoder) eval(expr hcl.Expression, sc *scope) (v cty.Value, ok bool) {
	ctx, ok := d.context(expr, sc)
	if !ok {
		return cty.DynamicVal, false
	}
	v, diags := expr.Value(ctx)
	for _, diag := range d.quoting(expr, ctx, diags) {
		if diag.Summary == "Ambiguous attribute key" {
			diag.Summary = sumAmbiguousKey
			diag.Detail = ambiguousKey
		}
		d.add(diag)
	}
	if diags.HasErrors() {
		return cty.DynamicVal, false
	}
	if valueSize(v, 0, 0) > maxValueBytes {
		d.errorf(expr.Range(), sumValueTooLarge, "The value is too large. A value may have at most %d bytes, and at most %d levels of nesting.", maxValueBytes, maxDepth)
		return cty.DynamicVal, false
	}
	return v, true
}

func (d *decoder) context(expr hcl.Expression, sc *scope) (*hcl.EvalContext, bool) {
	ok := true
	var env map[string]cty.Value
	for _, t := range expr.Variables() {
		if !d.checkReference(t, sc) {
			ok = false
			continue
		}
		if t.RootName() != "env" {
			continue
		}
		name := plan.StepName(t, 1)
		if read := (plan.Read{Name: name, Range: t.SourceRange()}); !slices.Contains(d.out.Reads, read) {
			d.out.Reads = append(d.out.Reads, read)
		}
		if env == nil {
			env = map[string]cty.Value{}
		}
		switch value, set := d.environ[name]; {
		case set:
			d.addSecret(value)
			env[name] = cty.StringVal(value).Mark(sensitive)
		case !d.opts.RequireEnv:
			env[name] = cty.UnknownVal(cty.String).Mark(sensitive)
		default:
			d.errorf(t.SourceRange(), sumEnvUnset, "A run needs the environment variable %s, but it is not set.", name)
			ok = false
		}
	}
	if env == nil {
		return sc.ctx, ok
	}
	ctx := sc.ctx.NewChild()
	ctx.Variables = map[string]cty.Value{"env": cty.ObjectVal(env)}
	return ctx, ok
}

var looksLikeStat = regexp.MustCompile(`^(p\d+|mean|min|max|every|rate|share|observed)$`)

func (d *decoder) checkReference(t hcl.Traversal, sc *scope) bool {
	root, name, rng := t.RootName(), plan.StepName(t, 1), t.SourceRange()
	if sc.root != "" && root != sc.root && slices.Contains(roots, root) {
		if sc.root == noReference {
			d.errorf(rng, sumNotHere, "Only a constant is allowed here. Write the value itself, not a reference.")
		} else {
			d.errorf(rng, sumNotHere, "Only a reference to %s.name is allowed here.", sc.root)
		}
		return false
	}
	switch root {
	case "env":
		if name == "" {
			d.errorf(rng, sumUnknownRoot, "Name one environment variable: env.NAME.")
		}
		return name != ""
	case "each":
		if !sc.each {
			d.errorf(rng, sumNotHere, "each.key and each.value exist only in a block with for_each.")
			return false
		}
		if name != "key" && name != "value" {
			d.errorf(rng, sumUndeclared, "each has key and value.")
			return false
		}
		return true
	case "result":
		if sc.result == cty.NilType {
			d.errorf(rng, sumNotHere, "`result` may be used only in an assert block.")
			return false
		}
		return d.checkResult(t, sc.result)
	case "server":
		if !sc.server {
			d.errorf(rng, sumNotHere, "server.name may be used only in a workload or a compare block.")
			return false
		}
	case "workload":
		if !sc.work {
			d.errorf(rng, sumNotHere, "workload.name may be used only in the tolerate and improve blocks of a compare block.")
			return false
		}
	case "base":
		d.errorf(rng, sumNotHere, "base.server.name may be used only as the control of a compare block.")
		return false
	}
	if d.names[root] == nil {
		d.unknownRoot(rng, root)
		return false
	}
	return d.checkNamed(t, sc)
}

func (d *decoder) checkNamed(t hcl.Traversal, sc *scope) bool {
	root, name, rng := t.RootName(), plan.StepName(t, 1), t.SourceRange()
	kind := map[string]string{"var": "variable", "local": "local value"}[root]
	if kind == "" {
		kind = root
	}
	n := d.names[root][name]
	if n == nil {
		return d.undeclared(rng, kind, name, maps.Keys(d.names[root]))
	}
	// A variable is unused if only its own validation refers to it.
	n.used = n.used || root != "var" || sc.own != name
	if key := plan.StepName(t, 2); n.each && key != "" && !slices.Contains(n.keys, key) {
		return d.undeclared(rng, "instance of "+kind+" "+name, key, slices.Values(n.keys))
	}
	return true
}

func (d *decoder) unknownRoot(rng hcl.Range, root string) {
	hint := suggest.DidYouMean(root, roots[:6])
	if looksLikeStat.MatchString(root) {
		hint = ` Write a threshold as text: "` + root + ` < 8s".`
	} else if hint == "" {
		hint = " If it is text, put it in quotes. If it is a reference, write var.name, local.name or env.NAME."
	}
	d.errorf(rng, sumUnknownRoot, "Nothing is named %q here.%s", root, hint)
}

func (d *decoder) undeclared(rng hcl.Range, what, name string, have iter.Seq[string]) bool {
	if d.enoughErrors() {
		return false
	}
	names := slices.Sorted(have)
	if name == "" {
		d.errorf(rng, sumUndeclared, "Write which %s you mean. The plan has %s.", what, choices(names))
		return false
	}
	hint := suggest.DidYouMean(name, names)
	if hint == "" && len(names) > 0 {
		hint = " The plan has " + choices(names) + "."
	}
	d.errorf(rng, sumUndeclared, "The plan has no %s %q.%s", what, name, hint)
	return false
}

func (sc scope) child(vars map[string]cty.Value) *scope {
	sc.ctx = sc.ctx.NewChild()
	sc.ctx.Variables = vars
	return &sc
}

// valueSize estimates the size of a value in bytes, and adds it to n. It stops soon after the sum
// exceeds maxValueBytes. A value that is nested too deeply counts as too large.
func valueSize(v cty.Value, n, depth int) int {
	v, _ = v.Unmark()
	n += 16
	if depth > maxDepth {
		return maxValueBytes + 1
	}
	if n > maxValueBytes || v.IsNull() || !v.IsKnown() {
		return n
	}
	ty := v.Type()
	switch {
	case ty == cty.String:
		return n + len(v.AsString())
	case ty.IsCollectionType() || ty.IsTupleType() || ty.IsObjectType():
		for it := v.ElementIterator(); it.Next() && n <= maxValueBytes; {
			key, elem := it.Element()
			if key.Type() == cty.String {
				n = valueSize(key, n, depth+1)
			}
			n = valueSize(elem, n, depth+1)
		}
	}
	return n
}

// ambiguousKey is the advice for a key that HCL can read in two ways, such as a.b in { a.b = … }.
const ambiguousKey = `If the key is a name that contains a dot, put it in quotes: { "a.b" = … }. If it is a reference, put it in parentheses: { (var.x) = … }.`
