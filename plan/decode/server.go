package decode

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/suggest"
)

// How long a server may take to get ready when the plan does not say.
const (
	readyProcess   = 10 * time.Minute
	readyContainer = 20 * time.Minute
	readyEndpoint  = 30 * time.Second
)

func (d *decoder) decodeServers() {
	families(d, "server", d.servers, &scope{ctx: d.base}, &d.plan.Servers, d.decodeServer)
}

func (d *decoder) decodeServer(name, key string, blk *hcl.Block, sc *scope) *plan.Server {
	s := &plan.Server{Name: name, Key: key, Range: blk.DefRange}
	b := d.open(serverBlock, blk, sc, "server."+s.Address())
	s.Engine = b.oneOf("engine", plan.Engines...)
	s.Model = b.text("model")
	s.Flags = b.flags()
	s.Args = b.texts("args")
	_, diags := plan.CommandLine(s.Engine, s.Flags, s.Args)
	d.add(diags...)

	s.Endpoint = b.endpoint()
	s.Process = b.process(s)
	s.Container = b.container(s)
	if sim := b.child("simulator"); sim != nil {
		s.Simulator = &plan.Simulator{Profile: sim.text("profile"), Range: sim.rng}
		if n, ok := sim.integer("seed", -maxInteger, maxInteger); ok {
			s.Simulator.Seed = n
		}
	}
	d.checkTarget(s, blk.DefRange, b.stray)
	s.Ready = b.ready(s)
	s.Telemetry = b.telemetry()
	s.Expect = b.expect()
	d.namedSecrets(s)
	return s
}

// checkTarget refuses a server with several ways to reach it, or none; but one
// that has none where something stray stands may have meant that.
func (d *decoder) checkTarget(s *plan.Server, rng hcl.Range, stray bool) {
	type target struct {
		name string
		rng  hcl.Range
	}
	var found []target
	if s.Endpoint != nil {
		found = append(found, target{"an endpoint", s.Endpoint.Range})
	}
	if s.Process != nil {
		found = append(found, target{"a process", s.Process.Range})
	}
	if s.Container != nil {
		found = append(found, target{"a container", s.Container.Range})
	}
	if len(found) == 0 && s.Simulator == nil && !stray {
		d.errorf(rng, sumServerTarget, "%s needs an endpoint, a process, a container, or a simulator alone.", s.Address())
	}
	for _, t := range found[min(1, len(found)):] {
		d.errorf(t.rng, sumServerTargets, "%s has %s (%s) and %s: keep one.", s.Address(), found[0].name, found[0].rng, t.name)
	}
}

func (b *body) endpoint() *plan.Endpoint {
	e := b.child("endpoint")
	if e == nil {
		return nil
	}
	out := &plan.Endpoint{
		Headers:  e.textMap("headers", true),
		CAFile:   e.file("ca_file"),
		ServedAs: e.text("served_as"),
		Range:    e.rng,
	}
	if v, ok := e.value("url"); ok {
		if out.URL, ok = e.asText(e.rangeOf("url"), "url", v); ok {
			e.checkURL(out.URL)
		}
	}
	if attr := e.attrs["api_key"]; attr != nil {
		if v, ok := b.d.eval(attr.Expr, e.scope); ok && !v.IsNull() {
			e.secretsFromEnv(attr.Expr, v)
			out.APIKey, _ = e.asText(attr.Expr.Range(), "api_key", b.d.unmark(v))
			b.d.addSecret(out.APIKey)
		}
	}
	for name, value := range out.Headers {
		if !headerName.MatchString(name) || strings.ContainsAny(value, "\r\n\x00") {
			b.d.errorf(e.rangeOf("headers"), sumOutOfRange, "The header %q is no valid HTTP header.", name)
		}
		if secretHeader.MatchString(name) {
			b.d.addSecret(value)
		}
	}
	return out
}

var (
	headerName   = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	secretHeader = regexp.MustCompile(`(?i)auth|key|token|secret|cookie`)
)

func (b *body) checkURL(text string) { b.checkURLOf("url", text) }

func (b *body) checkURLOf(name, text string) {
	if text == unknownText {
		return
	}
	if problem := URLProblem(text); problem != "" {
		b.d.errorf(b.rangeOf(name), sumURL, "%s", problem)
	}
}

// URLProblem says in a sentence what is wrong with the base URL of a server; ""
// for nothing.
func URLProblem(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Sprintf(`%q is no URL: it starts with http:// or https://, such as "http://127.0.0.1:8000".`, text)
	case u.Scheme != "http" && u.Scheme != "https":
		return `The URL starts with http:// or https://, such as "http://127.0.0.1:8000".`
	case u.Host == "" || u.Hostname() == "":
		return "The URL names no host."
	case u.User != nil:
		return "Credentials do not belong in the URL, where logs show them: use api_key or headers."
	case u.RawQuery != "" || u.Fragment != "":
		return "The URL is a base to which paths are added: it has no ? and no #."
	}
	return ""
}

// file is a path resolved against the plan's folder; "" when not set.
func (b *body) file(name string) string {
	p := b.text(name)
	if p == "" || p == unknownText || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(b.d.dir, filepath.FromSlash(p))
}

func (b *body) process(s *plan.Server) *plan.Process {
	p := b.child("process")
	if p == nil {
		return nil
	}
	out := &plan.Process{Command: p.command(s), Env: p.environment(), Dir: p.file("dir"), GPUs: p.gpus(), ServedAs: p.text("served_as"), Range: p.rng}
	if n, ok := p.integer("port", 1, 65535); ok {
		out.Port = int(n)
	} else if !p.given("port") {
		p.note("port", p.spec.attr("port").Computed, "")
		if len(out.Command) > 0 && !mentionsPort(out.Command, s) {
			b.d.errorf(p.rangeOf("command"), sumPort, `Nothing tells the program its port: write "--port", "%s" in command, or set port to the one it uses.`, plan.PortPlaceholder)
		}
	}
	return out
}

// command is the program to start; without one the engine's own is.
func (b *body) command(s *plan.Server) []string {
	words := b.texts("command")
	e := plan.EngineOf(s.Engine)
	switch inContainer := b.spec.Name == "container"; {
	case b.given("command"):
		if len(words) == 0 || words[0] == "" {
			b.d.errorf(b.rangeOf("command"), sumMissing, `command names a program: ["vllm", "serve", "Qwen/Qwen3-8B"].`)
		}
	case len(e.Program) > 0:
		if s.Model == "" && !s.HasFlag(e.Models...) {
			b.d.errorf(b.rng, sumMissing, "%s is told no model: set model of the server, or command.", e.Name)
		}
		b.note("command", strings.Join(e.Program, " "), "engine = "+strconv.Quote(e.Name))
	case !inContainer:
		b.d.errorf(b.rng, sumMissing, `Nothing says what to start: set command, or engine to one that tokgate knows how to start (%s).`, choices(startable()))
	}
	return words
}

// startable are the engines with a launcher.
func startable() []string {
	var names []string
	for _, name := range plan.Engines {
		if len(plan.EngineOf(name).Program) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// environment is the env of a process or container.
func (b *body) environment() map[string]string {
	env := b.textMap("env", true)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.TrimSpace(name) != name {
			b.d.errorf(b.rangeOf("env"), sumInvalidName, "%q is no name of an environment variable.", name)
		}
	}
	return env
}

func mentionsPort(command []string, s *plan.Server) bool {
	has := func(text string) bool { return strings.Contains(text, plan.PortPlaceholder) }
	return slices.ContainsFunc(command, has) || slices.ContainsFunc(s.Args, has) ||
		slices.ContainsFunc(s.Flags, func(f plan.Flag) bool {
			return f.Name == "port" || f.Value.Type() == cty.String && f.Value.IsKnown() && !f.Value.IsNull() && has(f.Value.AsString())
		})
}

func (b *body) ready(s *plan.Server) plan.Ready {
	r := b.child("ready")
	if r == nil {
		r = b.absent("ready")
	}
	out := plan.Ready{}
	if len(b.blocks["ready"]) > 0 {
		out.Range = r.rng
	}
	if t, ok := r.duration("timeout", time.Millisecond, 24*time.Hour); ok {
		out.Timeout = t
		return out
	}
	out.Timeout = readyEndpoint
	why := "it runs already"
	switch {
	case s.Process != nil:
		out.Timeout, why = readyProcess, "it is started"
	case s.Container != nil:
		out.Timeout, why = readyContainer, "it is started, once its image is there"
	}
	if !r.given("timeout") {
		r.note("timeout", fmt.Sprintf("%q", plan.PlainDuration(out.Timeout)), why)
	}
	return out
}

func (b *body) expect() map[string]string {
	e := b.child("expect")
	if e == nil {
		return nil
	}
	out := map[string]string{}
	var known []string
	for _, f := range metric.Facts {
		known = append(known, f.Key)
	}
	for _, attr := range sortedAttributes(e.attrs) {
		if !slices.Contains(known, attr.Name) {
			b.d.errorf(attr.NameRange, sumOneOf, "Nothing that is found of a server is called %s.%s", attr.Name, suggest.DidYouMean(attr.Name, known))
			continue
		}
		v, ok := e.value(attr.Name)
		if !ok {
			continue
		}
		if v.IsKnown() && (v.Type() == cty.Number || v.Type() == cty.Bool) {
			v, _ = convert.Convert(v, cty.String)
		}
		if s, ok := e.asText(attr.Expr.Range(), attr.Name, v); ok {
			out[attr.Name] = s
		}
	}
	return out
}

// flags reads the engine's command line. Written as a literal object it keeps
// the order and place of each flag; computed, the flags are sorted by name.
func (b *body) flags() []plan.Flag {
	attr := b.attrs["flags"]
	if attr == nil {
		return nil
	}
	var out []plan.Flag
	add := func(name string, v cty.Value, rng hcl.Range) {
		if slices.ContainsFunc(out, func(f plan.Flag) bool { return f.Name == name }) {
			b.d.errorf(rng, sumDuplicateName, "The flag %s is set twice.", name)
			return
		}
		out = append(out, plan.Flag{Name: name, Value: b.d.unmark(v), Range: rng})
	}
	if pairs, diags := hcl.ExprMap(attr.Expr); !diags.HasErrors() {
		for _, p := range pairs {
			if dottedKey(p.Key) {
				b.d.errorf(p.Key.Range(), sumAmbiguousKey, ambiguousKey)
				continue
			}
			key, ok := b.d.eval(p.Key, b.scope)
			if !ok {
				continue
			}
			v, ok := b.d.eval(p.Value, b.scope)
			if !ok {
				continue
			}
			key, err := convert.Convert(b.d.unmark(key), cty.String)
			if err != nil || key.IsNull() || !key.IsKnown() {
				b.d.errorf(p.Key.Range(), sumFlagName, "A flag's name is text that is known.")
				continue
			}
			add(key.AsString(), v, hcl.RangeBetween(p.Key.Range(), p.Value.Range()))
		}
	} else {
		v, ok := b.d.eval(attr.Expr, b.scope)
		if !ok {
			return nil
		}
		v = b.d.unmark(v)
		if v.IsNull() {
			return nil
		}
		if ty := v.Type(); !v.IsKnown() || !(ty.IsObjectType() || ty.IsMapType()) {
			b.wrongType(attr.Expr.Range(), "flags", "an object: { max-model-len = 32768 }", v)
			return nil
		}
		for it := v.ElementIterator(); it.Next(); {
			key, e := it.Element()
			add(key.AsString(), e, attr.Expr.Range())
		}
	}
	return out
}

// ambiguousKey explains what { a.b = … } may mean.
const ambiguousKey = `Quote a name that contains a dot, { "a.b" = … }; put a reference in parentheses, { (var.x) = … }.`

// dottedKey says whether an object's key is written a.b, which HCL refuses
// because it could be a name or a reference.
func dottedKey(key hcl.Expression) bool {
	k, ok := key.(*hclsyntax.ObjectConsKeyExpr)
	if !ok || k.ForceNonLiteral {
		return false
	}
	t, diags := hcl.AbsTraversalForExpr(k.Wrapped)
	return !diags.HasErrors() && len(t) > 1
}
