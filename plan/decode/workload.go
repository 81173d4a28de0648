package decode

import (
	"math"
	"reflect"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/suggest"
)

const (
	maxCount   = 100_000_000 // of requests
	maxTokens  = 100_000_000 // of one prompt or answer
	maxInteger = 1 << 53     // exact in JSON everywhere
)

// serverType is a server as a value: server.vllm in an expression.
var serverType = cty.CapsuleWithOps("server", reflect.TypeFor[plan.Server](), &cty.CapsuleOps{
	TypeGoString: func(reflect.Type) string { return "server" },
	GoString:     func(v any) string { return v.(*plan.Server).Address() },
})

func (d *decoder) decodeWorkloads() {
	sc := scope{ctx: d.base, server: true}.child(map[string]cty.Value{"server": values(d.servers, serverType)})
	families(d, "workload", d.workloads, sc, &d.plan.Workloads, d.decodeWorkload)
}

func (d *decoder) decodeWorkload(name, key string, blk *hcl.Block, sc *scope) *plan.Workload {
	w := &plan.Workload{Name: name, Key: key, Range: blk.DefRange, Policy: d.plan.Gate.Policy}
	b := d.open(workloadBlock, blk, sc, "workload."+w.Address())
	p := b.preset()
	w.Description = b.text("description")
	w.Servers = b.servers()
	w.API = plan.API(b.oneOf("api", string(plan.Chat), string(plan.Completions)))
	b.tokens(w, p)
	w.Request = b.request()
	b.loads(w, p)
	if g := b.child("good"); g != nil {
		w.Good = g.bounds()
	}
	if g := b.child("gate"); g != nil {
		g.policy(&w.Policy)
	}
	w.Capacity = b.capacity(w, p)
	b.slas(w, p)
	d.checkContext(b, w)
	d.checkExtension(w)
	d.checkCapacity(w)
	return w
}

// servers are those the workload names, or all.
func (b *body) servers() []*plan.Server {
	if !b.given("server") {
		if len(b.d.plan.Servers) > 0 && !b.quiet {
			value := "every server"
			if len(b.d.plan.Servers) == 1 {
				value = "server." + b.d.plan.Servers[0].Address()
			}
			b.note("server", value, "the workload names none")
		}
		for _, f := range b.d.servers {
			f.used = true
		}
		return slices.Clone(b.d.plan.Servers)
	}
	var out []*plan.Server
	var add func(v cty.Value, rng hcl.Range)
	add = func(v cty.Value, rng hcl.Range) {
		switch {
		case v.IsNull():
			b.d.errorf(rng, sumServerReference, "Name a server: server.name.")
		case v.Type().Equals(serverType) && v.IsKnown():
			s := v.EncapsulatedValue().(*plan.Server)
			if slices.Contains(out, s) {
				b.d.errorf(rng, sumServerReference, "server.%s is named twice.", s.Address())
				return
			}
			out = append(out, s)
		case !v.IsKnown():
			// The server's own problem is reported.
			if v.Type() != cty.DynamicPseudoType {
				b.isUnknown(rng, "server", v)
			}
		case v.Type().IsObjectType() || v.Type().IsMapType():
			for it := v.ElementIterator(); it.Next(); {
				_, e := it.Element()
				add(e, rng)
			}
		case v.Type() == cty.String:
			b.d.errorf(rng, sumServerReference, "Write a reference, server.%s, not text.", nearestName(v.AsString(), b.d.servers))
		default:
			b.d.errorf(rng, sumServerReference, "server takes server.name or a list of them, not %s.", v.Type().FriendlyNameForConstraint())
		}
	}
	for _, e := range b.list("server") {
		add(e.value, e.rng)
	}
	return out
}

func nearestName[T any](given string, have map[string]*family[T]) string {
	var names []string
	for n := range have {
		names = append(names, n)
	}
	slices.Sort(names)
	if slices.Contains(names, given) {
		return given
	}
	if n := suggest.Nearest(given, names); n != "" {
		return n
	}
	return "name"
}

// tokens reads input_tokens and output_tokens, or takes the preset's.
func (b *body) tokens(w *plan.Workload, p *preset) {
	if n, ok := b.integer("input_tokens", 1, maxTokens); ok {
		w.Input = int(n)
	} else if b.unset("input_tokens") {
		if p != nil && p.input > 0 {
			w.Input = p.input
			b.note("input_tokens", itoa(p.input), p.why())
		} else {
			b.d.errorf(b.rng, sumMissing, "workload.%s needs input_tokens: the length of each prompt.", w.Address())
		}
	}
	if v, ok := b.value("output_tokens"); ok {
		w.Output = b.output(v)
	} else if b.unset("output_tokens") {
		if p != nil && p.output > 0 {
			w.Output = plan.Output{Mean: p.output}
			b.note("output_tokens", itoa(p.output), p.why())
		} else {
			b.d.errorf(b.rng, sumMissing, "workload.%s needs output_tokens: the length of each answer.", w.Address())
		}
	}
}

// unset says whether the attribute is not written, or null.
func (b *body) unset(name string) bool {
	attr := b.attrs[name]
	if attr == nil {
		return true
	}
	ctx, ok := b.d.context(attr.Expr, b.scope)
	if !ok {
		return false
	}
	v, diags := attr.Expr.Value(ctx)
	return !diags.HasErrors() && v.IsNull()
}

var outputKeys = []string{"mean", "jitter", "natural", "max"}

// output reads 1024, { mean = 1024, jitter = "5%" } and
// { natural = true, max = 600 }.
func (b *body) output(v cty.Value) plan.Output {
	const name = "output_tokens"
	rng := b.rangeOf(name)
	var out plan.Output
	if !v.Type().IsObjectType() && !v.Type().IsMapType() {
		if n, ok := b.asInteger(rng, name, v, 1, maxTokens); ok {
			out.Mean = int(n)
		}
		return out
	}
	if b.isUnknown(rng, name, v) {
		return out
	}
	set := map[string]cty.Value{}
	for it := v.ElementIterator(); it.Next(); {
		k, e := it.Element()
		key := k.AsString()
		if !slices.Contains(outputKeys, key) {
			b.d.errorf(rng, sumOneOf, "%s has %s, not %q.%s", name, choices(outputKeys), key, suggest.DidYouMean(key, outputKeys))
			continue
		}
		if !e.IsNull() {
			set[key] = e
		}
	}
	if e, ok := set["natural"]; ok {
		if e.Type() != cty.Bool {
			b.wrongType(rng, name+".natural", "true or false", e)
		} else {
			out.Natural = e.True()
		}
	}
	need, other := "mean", "max"
	if out.Natural {
		need, other = "max", "mean"
	}
	if _, ok := set[other]; ok {
		b.d.errorf(rng, sumConflict, `%s: max belongs to natural = true, mean to answers of a given length.`, name)
		return out
	}
	e, ok := set[need]
	if !ok {
		b.d.errorf(rng, sumMissing, "%s needs %s.", name, need)
		return out
	}
	if n, ok := b.asInteger(rng, name+"."+need, e, 1, maxTokens); ok {
		out.Mean = int(n)
	}
	if e, ok := set["jitter"]; ok {
		j, ok := b.asFraction(rng, name+".jitter", e)
		switch {
		case !ok:
		case out.Natural:
			b.d.errorf(rng, sumConflict, "%s: natural answers have no jitter: they end by themselves.", name)
		case j < 0 || j >= 1 || math.IsNaN(j):
			b.d.errorf(rng, sumOutOfRange, `%s.jitter must be at least "0%%" and below "100%%".`, name)
		default:
			out.Jitter = j
		}
	} else if !out.Natural {
		b.note(name+".jitter", `"0%"`, "")
	}
	return out
}

func (b *body) request() plan.Request {
	r := b.child("request")
	if r == nil {
		return plan.Request{}
	}
	out := plan.Request{Model: r.text("model")}
	if t, ok := r.number("temperature", 0, 2); ok {
		out.Temperature = &t
	}
	if r.given("stop") {
		out.Stop = r.texts("stop")
	}
	for _, attr := range sortedAttributes(r.attrs) {
		if r.spec.attr(attr.Name) != nil {
			continue
		}
		if owner := reservedFields[attr.Name]; owner != "" {
			b.d.errorf(attr.NameRange, sumConflict, "The request field %s is set by tokgate: %s.", attr.Name, owner)
			continue
		}
		if v, ok := b.d.eval(attr.Expr, r.scope); ok {
			if out.Extra == nil {
				out.Extra = map[string]cty.Value{}
			}
			out.Extra[attr.Name] = b.d.unmark(v)
		}
	}
	return out
}

// reservedFields of a request are part of the measurement.
var reservedFields = map[string]string{
	"messages":              "prompts are made from input_tokens",
	"prompt":                "prompts are made from input_tokens",
	"stream":                "every answer is streamed",
	"stream_options":        "usage is asked for",
	"max_tokens":            "use output_tokens",
	"max_completion_tokens": "use output_tokens",
	"min_tokens":            "use output_tokens",
	"ignore_eos":            "use output_tokens",
	"n":                     "one answer is measured for each request",
}
