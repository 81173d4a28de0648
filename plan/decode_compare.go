package plan

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/metric"
)

var compareBlock = &Block{
	Name: "compare", Labels: []string{"name"}, Repeat: true,
	Doc: "A candidate against a control, on the same prompts and in turns. Every workload that both run on is compared; its sla is judged on the candidate only. With requests left at their default, each leg (one round on one server) gets as many as a level has otherwise.",
	Attrs: []*Attr{
		{Name: "control", Type: "server", Required: true, Doc: "What the candidate is compared with: server.name; base.server.name, the server of the same plan on the base branch (--base DIR); or baseline(\"FOLDER\"), a recorded run, with the server's address in it as second argument where that is not the candidate's."},
		{Name: "candidate", Type: "server", Required: true, Doc: "The server under test: server.name."},
		{Name: "rounds", Type: "number", Computed: "8, or 16 under restart = \"order\" and side_by_side", Doc: "Rounds on each server, at least 5, in turns: A B B A … At least 10, and even, where two are one observation."},
		{Name: "restart", Type: "string", Computed: "`leg`, or `never` where a server is an endpoint", Doc: "When a server is started anew: `leg` (for each round), `order` (for each turn, so that the legs of B in A B B A share one start, and four legs are one observation) or `never` (both run side by side all the time; the verdict then speaks of these two starts alone)."},
		{Name: "side_by_side", Type: "bool", Default: "false", Doc: "Run both legs of a round at the same time, each server on GPUs of its own that the two swap from round to round, so that a faster card does not decide. Two rounds are then one observation. Both servers list as many `gpus`, by index or UUID, and none twice; only under restart = \"leg\"."},
		{Name: "changed", Type: "list of strings", Computed: "nothing", Doc: "What may differ between the two: keys of what is declared and observed, such as `flags`, `flags.max-model-len`, `image`, `version`. Anything else that differs is an error."},
	},
	Blocks: []*Block{
		{Name: "tolerate", Repeat: true, Doc: "How much worse the candidate may be, as a share of the control's value (\"p95 +10%\"), or in percentage points where the metric is a share itself (\"rate -1pp\").", Attrs: claimAttrs()},
		{Name: "improve", Repeat: true, Doc: "How much better the candidate must be, written likewise.", Attrs: claimAttrs()},
	},
}

// capacityDef is the capacity as a comparison knows it.
var capacityDef = metric.Def{
	Name: "capacity", Title: "Capacity", Unit: metric.Requests, Better: metric.HigherIsBetter, Scope: metric.PerLevel,
	Doc: "The largest load at which the thresholds still hold, by the search of the capacity block.",
}

// comparable says whether a comparison may bound the metric: not the generator's
// own lateness, nor what may well be zero or has no zero, of which there are no
// shares.
func comparable(d metric.Def) bool {
	switch d.Unit {
	case metric.Count, metric.Requests, metric.Celsius:
		return false
	}
	return d.Better != metric.Neutral && d.Name != "lag"
}

func claimAttrs() []*Attr {
	attrs := []*Attr{
		{Name: "workloads", Type: "workload or list of workloads", Computed: "every workload that is compared", Doc: "Which workloads it speaks of: workload.name."},
		{Name: "at", Type: "level or list of levels", Computed: "every level", Doc: "The levels at which it must hold, by number or name."},
		{Name: "severity", Type: "string", Default: `"error"`, Doc: "`error` fails the gate; `warn` is shown only."},
		{Name: "capacity", Type: "change", Doc: "The candidate is certified at the control's capacity less what is tolerated: \"-15%\"."},
	}
	return append(attrs, metricAttrs(comparable)...)
}

// workloadType is a workload as a value: workload.chat in an expression.
var workloadType = cty.CapsuleWithOps("workload", reflect.TypeFor[Workload](), &cty.CapsuleOps{
	TypeGoString: func(reflect.Type) string { return "workload" },
	GoString:     func(v any) string { return v.(*Workload).Address() },
})

// What a comparison has when the plan does not say, and at least. Five rounds
// are what an interval needs; two of restart = "order" make one observation.
const (
	compareRounds      = 8
	compareOrderRounds = 16
	leastRounds        = 5
	leastOrderRounds   = 10
	mostRounds         = 1000
)

func (d *decoder) decodeCompares() {
	if d.opts.lenient {
		return // of the base branch only the servers are wanted
	}
	seen := map[string]hcl.Range{}
	sc := scope{ctx: d.base, server: true, work: true}.child(map[string]cty.Value{
		"server": values(d.servers, serverType), "workload": values(d.workloads, workloadType),
	})
	for _, blk := range d.blocks["compare"] {
		name := blk.Labels[0]
		if !d.checkName(name, blk.LabelRanges[0]) {
			continue
		}
		if first, ok := seen[name]; ok {
			d.errorf(blk.LabelRanges[0], sumDuplicateName, "compare %q is already declared at %s.", name, first)
			continue
		}
		seen[name] = blk.DefRange
		d.decodeCompare(name, blk, sc)
	}
	d.takeTurns()
}

// values is what server, or workload, is in an expression.
func values[T any](families map[string]*family[T], ty cty.Type) cty.Value {
	out := map[string]cty.Value{}
	for name, f := range families {
		if !f.each {
			out[name] = cty.DynamicVal
			if len(f.members) == 1 {
				out[name] = cty.CapsuleVal(ty, f.members[0])
			}
			continue
		}
		instances := map[string]cty.Value{}
		for i, m := range f.members {
			instances[f.keys[i]] = cty.CapsuleVal(ty, m)
		}
		out[name] = cty.ObjectVal(instances)
	}
	return cty.ObjectVal(out)
}

func (d *decoder) decodeCompare(name string, blk *hcl.Block, sc *scope) {
	b := d.open(compareBlock, blk, sc, "compare."+name)
	c := &Compare{Name: name, Policy: d.plan.Gate.Policy, Range: blk.DefRange}
	before := len(d.diags)
	c.Candidate = b.one("candidate")
	c.Control = b.control(c)
	c.Changed = b.texts("changed")
	if !b.given("changed") {
		b.note("changed", "[]", "")
	}
	b.restart(c)
	b.sideBySide(c)
	b.rounds(c)
	var work []*Workload
	switch {
	case c.Candidate == nil || len(d.diags) > before && d.diags[before:].HasErrors():
	case c.Control.Server == c.Candidate:
		d.errorf(b.rangeOf("candidate"), sumCompare, `The candidate is its own control. To see what chance alone does, declare the server twice: for_each = toset(["a", "b"]).`)
	default:
		if work = c.Workloads(d.plan); len(work) == 0 && c.Skip == "" {
			d.errorf(blk.DefRange, sumCompare, "No workload runs on both servers: name both in its server, or leave that out.")
			break
		}
		d.plan.Compares = append(d.plan.Compares, c)
		b.sameServers(c)
	}
	for _, kind := range []string{"tolerate", "improve"} {
		for i, claim := range b.blocksOf(kind) {
			path := b.path + "." + kind
			if len(b.blocksOf(kind)) > 1 {
				path += "[" + itoa(i) + "]"
			}
			o := d.open(compareBlock.block(kind), claim, sc, path)
			if out := o.claim(c, work, kind == "improve"); out != nil {
				c.Claims = append(c.Claims, out)
			}
		}
	}
	slices.SortStableFunc(c.Claims, func(x, y *Claim) int { return x.Range.Start.Byte - y.Range.Start.Byte })
}

// one is a server of the plan.
func (b *body) one(name string) *Server {
	v, ok := b.value(name)
	if !ok {
		return nil
	}
	rng := b.rangeOf(name)
	switch {
	case v.Type().Equals(serverType) && v.IsKnown():
		return v.EncapsulatedValue().(*Server)
	case v.Type() == cty.String && v.IsKnown():
		b.d.errorf(rng, sumServerReference, "Write a reference, server.%s, not text.", nearestName(v.AsString(), b.d.servers))
	case v.Type().IsObjectType() && v.IsKnown():
		b.d.errorf(rng, sumServerReference, `%s takes one server; this one has instances: server.name["key"].`, name)
	case v.Type() != cty.DynamicPseudoType:
		b.d.errorf(rng, sumServerReference, "%s takes server.name, not %s.", name, v.Type().FriendlyNameForConstraint())
	}
	return nil
}

// control reads server.name, base.server.name and baseline("FOLDER").
func (b *body) control(c *Compare) Control {
	out := Control{Range: b.rangeOf("control")}
	attr := b.attrs["control"]
	if attr == nil {
		return out
	}
	if t, diags := hcl.AbsTraversalForExpr(attr.Expr); !diags.HasErrors() && t.RootName() == "base" {
		b.base(c, &out, t)
		return out
	}
	if call, diags := hcl.ExprCall(attr.Expr); !diags.HasErrors() && call.Name == "baseline" {
		var words []string
		for _, arg := range call.Arguments {
			v, ok := b.d.eval(arg, b.scope)
			if !ok {
				return out
			}
			text, ok := b.asText(arg.Range(), "baseline", b.d.unmark(v))
			if !ok {
				return out
			}
			words = append(words, text)
		}
		if len(words) < 1 || len(words) > 2 || words[0] == "" {
			b.d.errorf(out.Range, sumMissing, `baseline names the folder of a recorded run: baseline("perf/2026-11-19"), or baseline("perf/2026-11-19", "vllm") where the server has another address there.`)
			return out
		}
		out.Baseline = words[0]
		if !filepath.IsAbs(out.Baseline) {
			out.Baseline = filepath.Join(b.d.dir, filepath.FromSlash(out.Baseline))
		}
		if len(words) == 2 {
			out.BaselineServer = words[1]
		}
		return out
	}
	out.Server = b.one("control")
	return out
}

// base resolves base.server.name: the server of the same plan on the base
// branch.
func (b *body) base(c *Compare, out *Control, t hcl.Traversal) {
	d := b.d
	out.Base = true
	if len(t) < 3 || len(t) > 4 || stepName(t, 1) != "server" || stepName(t, 2) == "" {
		d.errorf(out.Range, sumServerReference, `Write base.server.name, or base.server.name["key"].`)
		return
	}
	address := address(stepName(t, 2), stepName(t, 3))
	switch {
	case d.opts.Base == "" && d.opts.RequireEnv:
		d.errorf(out.Range, sumBase, "A run that compares with the base branch needs a checkout of it: --base DIR.")
	case d.opts.Base == "":
		c.Skip = SkipNoBase
	default:
		base, why := d.basePlan(out.Range)
		if base == nil {
			c.Skip = why
			return
		}
		i := slices.IndexFunc(base.Servers, func(s *Server) bool { return s.Address() == address })
		if i < 0 {
			c.Skip = "the plan on the base branch has no server." + address
			return
		}
		s := *base.Servers[i]
		s.Base, s.Range = true, out.Range
		out.Server = &s
		if c.Candidate == nil {
			return
		}
		if unchanged(&s, c.Candidate, d) {
			c.Skip, c.Unchanged, out.Server = "nothing changed: server."+address+" is the same on the base branch", true, nil
			return
		}
		d.addBase(&s, c.Candidate, out)
	}
}

// addBase has every workload of the candidate run on the server of the base
// branch too.
func (d *decoder) addBase(s, candidate *Server, out *Control) {
	if i := slices.IndexFunc(d.plan.Servers, func(x *Server) bool { return x.Address() == s.Address() }); i >= 0 {
		out.Server = d.plan.Servers[i] // another comparison has it too
		s = out.Server
	} else {
		d.plan.Servers = append(d.plan.Servers, s)
	}
	for _, w := range d.plan.Workloads {
		if slices.Contains(w.Servers, candidate) && !slices.Contains(w.Servers, s) {
			w.Servers = append(w.Servers, s)
		}
	}
}

// baseInputs are the inputs of the plan on the base branch: a variable file of
// the repository is that branch's own, else what a change of it changes would
// be on both sides. One that is new has nothing to say there.
func (d *decoder) baseInputs() []Input {
	var list []Input
	for _, in := range d.opts.Inputs {
		if in.File != "" {
			file, err := filepath.Abs(in.File)
			if err == nil {
				file, err = filepath.Rel(realPath(d.root), realPath(file))
			}
			if err == nil && filepath.IsLocal(file) {
				in.File = filepath.Join(d.opts.Base, file)
				if _, err := d.opts.ReadFile(in.File); errors.Is(err, fs.ErrNotExist) {
					continue
				}
			}
		}
		list = append(list, in)
	}
	return list
}

// basePlan loads the plan of the base branch once; nil with the reason when
// that branch has none.
func (d *decoder) basePlan(rng hcl.Range) (*Plan, string) {
	if d.baseLoaded {
		return d.baseBranch, d.baseWhy
	}
	d.baseLoaded = true
	path, err := filepath.Abs(d.opts.Path)
	if err == nil {
		path, err = filepath.Rel(d.root, path)
	}
	if err != nil || strings.HasPrefix(path, "..") {
		d.errorf(rng, sumBase, "The plan lies outside its repository, so that its place on the base branch is not known.")
		return nil, "its place on the base branch is not known"
	}
	opts := LoadOptions{
		Path: filepath.Join(d.opts.Base, path), Inputs: d.baseInputs(), Environ: d.opts.Environ, RequireEnv: d.opts.RequireEnv,
		ReadFile: d.opts.ReadFile, Root: d.opts.Base, lenient: true,
	}
	if _, err := d.opts.ReadFile(opts.Path); err != nil {
		d.baseWhy = fmt.Sprintf("the base branch has no plan %s", filepath.ToSlash(path))
		return nil, d.baseWhy
	}
	p, diags := LoadFile(opts)
	if diags.HasErrors() {
		for _, diag := range diags {
			if diag.Severity == hcl.DiagError {
				d.errorf(rng, sumBase, "The plan on the base branch is wrong: %s", diag.Error())
				break
			}
		}
		d.baseWhy = "the plan on the base branch is wrong"
		return nil, d.baseWhy
	}
	for _, s := range p.Secrets {
		d.addSecret(s)
	}
	d.hash.add("base", path, []byte(p.Hash))
	d.baseBranch = p
	return p, ""
}

// unchanged says whether nothing that a server is made of differs. What lies in
// the repository itself (a program, a profile) may differ without a word of the
// plan, so that such a server is never known to be unchanged.
func unchanged(a, b *Server, d *decoder) bool {
	relative := func(path string) bool {
		return path != "" && !filepath.IsAbs(path) && strings.ContainsAny(path, `/\`)
	}
	switch {
	case len(Differences(a.Declared(), b.Declared())) > 0 || a.Simulator != nil && (b.Simulator == nil || a.Simulator.Seed != b.Simulator.Seed):
		return false
	case (a.Endpoint == nil) != (b.Endpoint == nil) || (a.Process == nil) != (b.Process == nil) ||
		(a.Container == nil) != (b.Container == nil) || (a.Simulator == nil) != (b.Simulator == nil):
		return false
	case a.Container != nil && slices.ContainsFunc(a.Container.Volumes, func(v string) bool { return strings.HasPrefix(v, ".") }):
		return false
	case a.ServedAs() != b.ServedAs() || a.Endpoint != nil && a.Endpoint.URL != b.Endpoint.URL:
		return false
	case a.Simulator != nil && (relative(a.Simulator.Profile) || strings.HasSuffix(a.Simulator.Profile, ".json")):
		return false
	case a.Process != nil && (len(a.Process.Command) == 0 || slices.ContainsFunc(append(a.Process.Command[:len(a.Process.Command):len(a.Process.Command)], a.Args...), relative)):
		return false
	}
	return true
}

// restart reads when servers are started anew.
func (b *body) restart(c *Compare) {
	endpoint := c.Candidate != nil && c.Candidate.Endpoint != nil || c.Control.Server != nil && c.Control.Server.Endpoint != nil
	if !b.given("restart") {
		c.Restart = RestartLeg
		switch {
		case c.Control.Baseline != "":
		case endpoint:
			c.Restart = RestartNever
			b.note("restart", `"never"`, "an endpoint is not started")
		default:
			b.note("restart", `"leg"`, "")
		}
		return
	}
	c.Restart = Restart(b.oneOf("restart", string(RestartLeg), string(RestartOrder), string(RestartNever)))
	switch control := c.Control.Server; {
	case c.Control.Baseline != "":
		b.d.errorf(b.attrs["restart"].NameRange, sumConflict, "Against a recorded run nothing takes turns: restart does not apply.")
	case endpoint && c.Restart != RestartNever:
		b.d.errorf(b.rangeOf("restart"), sumConflict, `An endpoint is not started, so it cannot be started anew: restart = "never".`)
	case c.Restart == RestartNever && control != nil && c.Candidate != nil && sharesGPU(control, c.Candidate):
		b.d.errorf(b.rangeOf("restart"), sumConflict, `Under restart = "never" both servers run at the same time, and both want the same GPU: give them different ones, or leave restart out.`)
	case c.Restart == RestartNever && control != nil && c.Candidate != nil && control.Process != nil && c.Candidate.Process != nil &&
		control.Process.Port != 0 && control.Process.Port == c.Candidate.Process.Port:
		b.d.errorf(b.rangeOf("restart"), sumConflict, `Under restart = "never" both servers run at the same time, and both use port %d: leave it out and write {port} in command.`, control.Process.Port)
	}
}

// sideBySide reads whether both servers run at the same time on GPUs that they
// swap, and checks that they can.
func (b *body) sideBySide(c *Compare) {
	if c.SideBySide = b.boolean("side_by_side"); !c.SideBySide {
		return
	}
	rng := b.rangeOf("side_by_side")
	refuse := func(format string, args ...any) {
		c.SideBySide = false
		b.d.errorf(rng, sumConflict, format, args...)
	}
	control := c.Control.Server
	switch {
	case c.Control.Baseline != "":
		refuse("Against a recorded run nothing runs at the same time: side_by_side does not apply.")
		return
	case control == nil || c.Candidate == nil:
		return
	}
	for _, s := range []*Server{control, c.Candidate} {
		switch g := s.GPUs(); {
		case !s.Local():
			refuse("server.%s is not started on GPUs by tokgate, so that they cannot be swapped: side_by_side takes servers with a process or container block.", s.Address())
			return
		case g == nil || len(g.IDs) == 0:
			refuse(`The servers swap their GPUs from round to round, so server.%s must list its own: gpus = ["0"].`, s.Address())
			return
		}
	}
	if c.Restart != RestartLeg {
		refuse(`A server that swaps its GPUs is started anew for each round: side_by_side takes restart = "leg".`)
		return
	}
	x, y := control.GPUs().IDs, c.Candidate.GPUs().IDs
	port := control.fixedPort()
	switch {
	case sharesGPU(control, c.Candidate):
		refuse("Side by side both servers run at the same time, and both list the same GPU: give them different ones.")
	case len(x) != len(y):
		refuse("The servers swap their GPUs from round to round, so both need as many: server.%s lists %d, and server.%s %d.", control.Address(), len(x), c.Candidate.Address(), len(y))
	case port != 0 && port == c.Candidate.fixedPort():
		refuse("Side by side both servers run at the same time, and both use port %d: leave it out for a free one.", port)
	}
	// Each runs on the GPUs of both.
	if !c.Allows("gpus") {
		c.Changed = append(c.Changed, "gpus")
	}
}

// fixedPort is the port of this machine that the plan gives a process or
// container; 0: none.
func (s *Server) fixedPort() int {
	switch {
	case s.Process != nil && s.Process.Port != 0:
		return s.Process.Port
	case s.Container != nil && (s.Container.Port != 0 || s.Container.Network != "host"):
		return s.Container.Port
	}
	n, _ := s.FlagNumber("port")
	return n
}

// sharesGPU says whether both servers name a GPU that only one of them can have.
func sharesGPU(a, b *Server) bool {
	x, y := a.GPUs(), b.GPUs()
	if x == nil || y == nil {
		return false
	}
	return x.All || y.All || slices.ContainsFunc(x.IDs, func(id string) bool { return slices.Contains(y.IDs, id) })
}

func (b *body) rounds(c *Compare) {
	c.Rounds = compareRounds
	least := int64(leastRounds)
	pairs := ""
	switch {
	case c.SideBySide:
		pairs = "Side by side"
	case c.Restart == RestartOrder:
		pairs = `Under restart = "order"`
	}
	if pairs != "" {
		c.Rounds, least = compareOrderRounds, leastOrderRounds
	}
	n, ok := b.integer("rounds", least, mostRounds)
	switch {
	case ok && pairs != "" && n%2 == 1:
		b.d.errorf(b.rangeOf("rounds"), sumOutOfRange, `%s two rounds on each server are one observation: rounds must be even.`, pairs)
	case ok:
		c.Rounds = int(n)
	case !b.given("rounds"):
		b.note("rounds", itoa(c.Rounds), "")
	}
}

// sameServers refuses declarations that differ in more than the plan says may.
func (b *body) sameServers(c *Compare) {
	if c.Control.Server == nil {
		return
	}
	var more, keys []string
	for _, key := range Differences(c.Control.Server.Declared(), c.Candidate.Declared()) {
		if !c.Allows(key) {
			more = append(more, key)
			root, _, _ := strings.Cut(key, ".")
			if !slices.Contains(keys, `"`+root+`"`) {
				keys = append(keys, `"`+root+`"`)
			}
		}
	}
	if len(more) > 0 {
		for _, k := range c.Changed {
			keys = append(keys, `"`+k+`"`)
		}
		slices.Sort(keys)
		b.d.errorf(b.rangeOf("changed"), sumCompareSame, "server.%s and %s differ in %s. If that is what is compared, say so: changed = [%s].",
			c.Candidate.Address(), c.Control.Server.Address(), strings.Join(more, ", "), strings.Join(slices.Compact(keys), ", "))
	}
}

// claim reads one tolerate or improve block; nil when there is nothing in it.
func (b *body) claim(c *Compare, work []*Workload, improve bool) *Claim {
	out := &Claim{Improve: improve, Range: b.rng, Workloads: work}
	if b.given("workloads") {
		out.Workloads = b.workloads(work, c)
	}
	out.At = b.claimAt(out)
	out.Severity = Severity(b.oneOf("severity", string(SeverityError), string(SeverityWarn)))
	out.Changes = b.changes(out)
	if len(out.Changes) == 0 {
		if !b.later && !b.stray && !b.anyMetric() && !b.isSet("capacity") {
			b.d.errorf(b.rng, sumEmptySLA, `The block needs a change, such as ttft = "p95 %s10%%".`, map[bool]string{true: "-", false: "+"}[improve])
		}
		return nil
	}
	return out
}

// workloads are those that a claim names.
func (b *body) workloads(work []*Workload, c *Compare) []*Workload {
	var out []*Workload
	var add func(v cty.Value, rng hcl.Range)
	add = func(v cty.Value, rng hcl.Range) {
		switch {
		case v.IsNull():
			b.d.errorf(rng, sumServerReference, "Name a workload: workload.name.")
		case v.Type().Equals(workloadType) && v.IsKnown():
			w := v.EncapsulatedValue().(*Workload)
			switch {
			case slices.Contains(out, w):
				b.d.errorf(rng, sumDuplicateName, "workload.%s is named twice.", w.Address())
			case !slices.Contains(work, w) && c.Skip == "" && len(work) > 0:
				b.d.errorf(rng, sumCompare, "workload.%s does not run on both servers, so it is not compared.", w.Address())
			default:
				out = append(out, w)
			}
		case !v.IsKnown():
		case v.Type().IsObjectType() || v.Type().IsMapType():
			for it := v.ElementIterator(); it.Next(); {
				_, e := it.Element()
				add(e, rng)
			}
		default:
			b.wrongType(rng, "workloads", "workload.name or a list of them", v)
		}
	}
	for _, e := range b.list("workloads") {
		add(e.value, e.rng)
	}
	return out
}

// claimAt are the levels of a claim. Named ones must be levels of each workload
// that the claim names, or of one at least where it names none.
func (b *body) claimAt(c *Claim) []string {
	all := levelSet{have: map[string]bool{}}
	for _, w := range c.Workloads {
		for _, name := range levelIndex(w).names {
			if !all.have[name] {
				all.have[name] = true
				all.names = append(all.names, name)
			}
		}
	}
	if !b.given("at") {
		if len(all.names) > 0 {
			b.note("at", "every level", "")
		}
		return all.names
	}
	var out []string
	for _, e := range b.list("at") {
		name, ok := b.levelName(e)
		if !ok {
			continue
		}
		lacks := slices.IndexFunc(c.Workloads, func(w *Workload) bool { return !levelIndex(w).have[name] })
		switch {
		case name == "capacity":
			b.d.errorf(e.rng, sumUnknownLevel, `The capacity is no level here: bound it with capacity = "-15%%".`)
		case slices.Contains(out, name):
			b.d.errorf(e.rng, sumDuplicateLevel, "The level %s is named twice.", name)
		case !all.have[name]:
			b.d.unknownLevel(e.rng, name, all)
		case lacks >= 0 && b.given("workloads"):
			b.d.errorf(e.rng, sumUnknownLevel, "workload.%s has no level %q; it has %s.", c.Workloads[lacks].Address(), name, choices(levelIndex(c.Workloads[lacks]).names))
		default:
			out = append(out, name)
		}
	}
	if len(out) == 0 && !b.d.diags.HasErrors() {
		b.d.errorf(b.rangeOf("at"), sumMissing, "at names at least one level; leave it out for all of them.")
	}
	return out
}

// changes reads every metric of a claim, in order of the source.
func (b *body) changes(c *Claim) []*Change {
	var out []*Change
	for _, attr := range sortedAttributes(b.attrs) {
		def, ok := metric.Lookup(attr.Name)
		if attr.Name == "capacity" {
			def, ok = capacityDef, true
		}
		if !ok {
			continue
		}
		seen := map[string]bool{}
		for _, e := range b.list(attr.Name) {
			if b.isUnknown(e.rng, attr.Name, e.value) {
				continue
			}
			if e.value.Type() == cty.Number {
				b.d.errorf(e.rng, sumMissingUnit, "%s needs a sign and a unit: write %s.", attr.Name, exampleChange(def, c.Improve))
				continue
			}
			text, ok := b.asText(e.rng, attr.Name, e.value)
			if !ok {
				continue
			}
			ch, p := parseChange(def, text, c.Improve)
			if p != nil {
				b.d.errorf(e.rng, p.summary, "%s", p.detail)
				continue
			}
			if seen[ch.Stat.String()] {
				b.d.errorf(e.rng, sumDuplicateBound, "%s is bounded twice by %s: keep the stricter one.", attr.Name, cmp.Or(ch.Stat.String(), "its value"))
				continue
			}
			seen[ch.Stat.String()] = true
			ch.Range = e.rng
			if b.applies(c, &ch, e.rng) {
				out = append(out, &ch)
			}
		}
	}
	return out
}

// applies says whether the workloads of a claim have what it bounds.
func (b *body) applies(c *Claim, ch *Change, rng hcl.Range) bool {
	need := func(has func(*Workload) bool, summary, format string) bool {
		i := slices.IndexFunc(c.Workloads, func(w *Workload) bool { return !has(w) })
		some := slices.ContainsFunc(c.Workloads, has)
		if i < 0 || some && !b.given("workloads") || len(c.Workloads) == 0 {
			return true
		}
		b.d.errorf(rng, summary, format, c.Workloads[i].Address())
		return false
	}
	switch ch.Metric.Name {
	case "capacity":
		return need(func(w *Workload) bool { return w.Capacity != nil }, sumNoCapacity, "workload.%s has no capacity block that would search its capacity: capacity { up_to = 64 }.")
	case "goodput":
		return need(func(w *Workload) bool { return len(w.Good) > 0 }, sumNoGood, "goodput counts good requests; workload.%s has no good block that says what one is.")
	case "scaling_efficiency":
		return need(func(w *Workload) bool { return levelIndex(w).have["1"] }, sumNoLevelOne, "scaling_efficiency compares with concurrency 1, which workload.%s does not run.")
	}
	return true
}

// parseChange reads one bound on a change: [statistic] sign number unit.
func parseChange(def metric.Def, text string, improve bool) (Change, *problem) {
	c := Change{Metric: def, Text: text}
	at := strings.IndexAny(text, "+-−±<>=")
	if at < 0 {
		return c, problemf(sumChange, "%s = %q has no sign. Write %s.", def.Name, text, exampleChange(def, improve))
	}
	sign, rest := text[at:], ""
	switch {
	case strings.HasPrefix(sign, "+"), strings.HasPrefix(sign, "-"):
		rest = strings.TrimSpace(sign[1:])
	default:
		return c, problemf(sumChange, "%s = %q: a change is written with + or -, such as %s.", def.Name, text, exampleChange(def, improve))
	}
	stat, p := thresholdStat(def, strings.TrimSpace(text[:at]), false)
	if p != nil {
		if p.summary == sumMissingStat {
			p.detail = fmt.Sprintf("%s: say which statistic is compared, such as %s.", def.Name, exampleChange(def, improve))
		}
		return c, p
	}
	if stat.Exact() {
		return c, problemf(sumStatNotAllowed, "%s: the extremes of a round are chance; compare the mean or a percentile, such as %s.", def.Name, exampleChange(def, improve))
	}
	c.Stat = stat
	c.Points = def.UnitOf(stat) == metric.Ratio
	unit, other, means := "%", "pp", "a share of the control's value"
	if c.Points {
		unit, other, means = "pp", "%", "percentage points, since it is a share itself"
	}
	digits, ok := strings.CutSuffix(rest, unit)
	if !ok {
		if strings.HasSuffix(rest, other) {
			return c, problemf(sumWrongUnit, "A change of %s is in %s: write %s.", def.Name, means, exampleChange(def, improve))
		}
		return c, problemf(sumMissingUnit, "%s: a change is in %s: write %s.", def.Name, means, exampleChange(def, improve))
	}
	n, err := parseDecimal(strings.TrimSpace(digits), -2)
	if err != nil {
		return c, problemf(sumChange, "%s: %q is no change. Write %s.", def.Name, text, exampleChange(def, improve))
	}
	down := sign[0] == '-'
	better := down == (def.Better == metric.LowerIsBetter)
	switch {
	case math.IsInf(n, 0) || n > 10 || down && n >= 1:
		return c, problemf(sumOutOfRange, "%s: %s is no change that could be meant.", def.Name, text)
	case n == 0 && !improve:
		return c, problemf(sumOutOfRange, "%s: nothing can be shown to be exactly as good. Tolerate something, or improve.", def.Name)
	case n > 0 && better != improve:
		word, block := "worse", "tolerate"
		if better {
			word, block = "better", "improve"
		}
		article := map[bool]string{true: "Lower", false: "Higher"}[down]
		return c, problemf(sumWrongWay, "%s %s is %s: that belongs in %s.", article, def.Name, word, block+" { … }")
	}
	c.Limit = n
	if down {
		c.Limit = -n
	}
	return c, nil
}

// ParseChange reads a bound on the change of a metric as tolerate and improve
// blocks have it: "p95 +10%". The error says how it is written.
func ParseChange(name, text string, improve bool) (*Change, error) {
	def, ok := metric.Lookup(name)
	if name == capacityDef.Name {
		def, ok = capacityDef, true
	}
	if !ok || !comparable(def) && def.Name != capacityDef.Name {
		return nil, fmt.Errorf("%q is no metric that can be compared.%s", name, didYouMean(name, append(metric.Names(comparable), capacityDef.Name)))
	}
	c, p := parseChange(def, text, improve)
	if p != nil {
		return nil, errors.New(p.detail)
	}
	return &c, nil
}

// exampleChange is a change of the metric, quoted.
func exampleChange(def metric.Def, improve bool) string {
	sign := "+"
	if (def.Better == metric.HigherIsBetter) != improve {
		sign = "-"
	}
	switch {
	case def.Name == "success":
		return `"rate ` + sign + `1pp"`
	case def.Name == "goodput":
		return `"` + sign + `5%" or "share ` + sign + `2pp"`
	case def.Unit == metric.Ratio:
		return `"` + sign + `5pp"`
	case def.Scope == metric.PerLevel:
		return `"` + sign + `5%"`
	case def.Better == metric.HigherIsBetter:
		return `"mean ` + sign + `5%"`
	}
	return `"p95 ` + sign + `10%"`
}

// takeTurns gives the compared workloads as many rounds as their comparisons
// have, and checks that those that share a server agree.
func (d *decoder) takeTurns() {
	for _, g := range Groups(d.plan) {
		first := g.Compares[0]
		if i := slices.IndexFunc(g.Compares, func(c *Compare) bool { return c.SideBySide }); i >= 0 && len(g.Compares) > 1 {
			d.errorf(g.Compares[i].Range, sumConflict, "compare.%s shares a server with another comparison, so that all of them take turns: side_by_side takes two servers that no other comparison has.", g.Compares[i].Name)
		}
		for _, c := range g.Compares[1:] {
			if c.Rounds != first.Rounds || c.Restart != first.Restart {
				d.errorf(c.Range, sumConflict, "compare.%s shares a server with compare.%s, so that all of them take turns: rounds and restart must be the same.", c.Name, first.Name)
			}
		}
	}
	for _, c := range d.plan.Compares {
		if c.Skip != "" {
			continue
		}
		for _, w := range c.Workloads(d.plan) {
			for i, l := range w.Loads {
				d.compared(c, w, l, i)
			}
		}
	}
}

// compared gives the levels of a load the rounds of a comparison.
func (d *decoder) compared(c *Compare, w *Workload, l *Load, index int) {
	var noted []string
	for i := range l.Levels {
		level := &l.Levels[i]
		usual := d.unasked[l][level.Name]
		switch {
		case l.Kind == metric.Burst:
			level.Requests = level.N * c.Rounds
		case usual > 0:
			level.Requests = usual * c.Rounds
			if len(noted) < 20 {
				noted = append(noted, level.Name+" = "+itoa(level.Requests))
			}
		case level.Requests < level.N*c.Rounds:
			d.errorf(c.Range, sumFewRequests, "The level %s of workload.%s has %d requests for %d rounds; each leg needs one for each in flight, %d in all.",
				level.Name, w.Address(), level.Requests, c.Rounds, level.N*c.Rounds)
		}
		level.Rounds = c.Rounds
	}
	if len(noted) == 0 {
		return
	}
	path := "workload." + w.Address() + ".load"
	if len(w.Loads) > 1 {
		path += "[" + itoa(index) + "]"
	}
	path += ".requests"
	d.plan.Defaults = slices.DeleteFunc(d.plan.Defaults, func(x Default) bool { return x.Path == path })
	d.plan.Defaults = append(d.plan.Defaults, Default{Path: path, Value: "{ " + strings.Join(noted, ", ") + " }", Why: "compare." + c.Name + ": as many for each leg as a level has otherwise"})
}
