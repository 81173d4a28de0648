package decode

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/plan"
)

func readControl(b *body, c *plan.Compare) plan.Control {
	out := plan.Control{Range: b.rangeOf("control")}
	attr := b.attrs["control"]
	if attr == nil {
		return out
	}
	if t, diags := hcl.AbsTraversalForExpr(attr.Expr); !diags.HasErrors() && t.RootName() == "base" {
		readBase(b, c, &out, t)
		return out
	}
	if call, diags := hcl.ExprCall(attr.Expr); !diags.HasErrors() && call.Name == "baseline" {
		var words []string
		for _, arg := range call.Arguments {
			v, ok := b.d.eval(arg, b.scope)
			if !ok {
				return out
			}
			if v, ok = b.plain(arg, "control", v); !ok {
				return out
			}
			text, ok := b.itemOf("control", v, arg.Range()).text()
			if !ok {
				return out
			}
			words = append(words, text)
		}
		if len(words) < 1 || len(words) > 2 || words[0] == "" {
			b.d.errorf(out.Range, sumMissing, `baseline needs the folder of a recorded run: baseline("perf/2026-11-19"). tokgate takes the server in it that has the candidate's name, or its only server. For another server, add its name: baseline("perf/2026-11-19", "vllm").`)
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
	out.Server = readOne(b, "control")
	return out
}

// readBase resolves base.server.name. It is the server with that name, in the same plan on the base
// branch.
func readBase(b *body, c *plan.Compare, out *plan.Control, t hcl.Traversal) {
	d := b.d
	out.Base = true
	if len(t) < 3 || len(t) > 4 || plan.StepName(t, 1) != "server" || plan.StepName(t, 2) == "" {
		d.errorf(out.Range, sumServerReference, `Write base.server.name, or base.server.name["key"].`)
		return
	}
	address := plan.Address(plan.StepName(t, 2), plan.StepName(t, 3))
	switch {
	case d.opts.Base == "" && d.opts.Self && c.Candidate != nil:
		s := *c.Candidate
		s.Base, s.Range = true, out.Range
		out.Server = &s
		d.addBase(&s, c.Candidate, out)
	case d.opts.Base == "" && d.opts.RequireEnv:
		d.errorf(out.Range, sumBase, "To compare with the base branch, a run needs a checkout of that branch. Add --base DIR.")
	case d.opts.Base == "":
		c.Skip = plan.SkipNoBase
	default:
		base, why := d.basePlan(out.Range)
		if base == nil {
			d.baseMissing(c, why)
			return
		}
		i := slices.IndexFunc(base.Servers, func(s *plan.Server) bool { return s.Address() == address })
		if i < 0 {
			d.baseMissing(c, "the plan on the base branch has no server."+address)
			return
		}
		s := *base.Servers[i]
		s.Base, s.Range = true, out.Range
		out.Server = &s
		if c.Candidate == nil {
			return
		}
		if unchanged(&s, c.Candidate) {
			c.Skip, c.Unchanged, out.Server = "nothing changed: server."+address+" is the same on the base branch", true, nil
			return
		}
		d.addBase(&s, c.Candidate, out)
	}
}

func (d *decoder) baseMissing(c *plan.Compare, why string) {
	c.Skip, c.BaseMissing = why, cmp.Or(d.opts.BaseMissing, plan.BaseMissingOthers)
}

func (d *decoder) addBase(s, candidate *plan.Server, out *plan.Control) {
	if i := slices.IndexFunc(d.out.Servers, func(x *plan.Server) bool { return x.Address() == s.Address() }); i >= 0 {
		out.Server = d.out.Servers[i] // added already by another comparison
		s = out.Server
	} else {
		d.out.Servers = append(d.out.Servers, s)
	}
	for _, w := range d.out.Workloads {
		if slices.Contains(w.Servers, candidate) && !slices.Contains(w.Servers, s) {
			w.Servers = append(w.Servers, s)
		}
	}
}

// A variable file in the repository is read from the base branch, because otherwise a change of the
// file would apply to both sides. If the base branch has no such file, it is left out.
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
				if _, err := d.readGiven(in.File); errors.Is(err, fs.ErrNotExist) {
					continue
				}
			}
		}
		list = append(list, in)
	}
	return list
}

func (d *decoder) basePlan(rng hcl.Range) (*plan.Plan, string) {
	if d.baseLoaded {
		return d.baseBranch, d.baseWhy
	}
	d.baseLoaded = true
	opts, ok := d.baseOptions(rng)
	if !ok {
		return nil, d.baseWhy
	}
	opts.RequireEnv, opts.alone = d.opts.RequireEnv, true
	p := d.loadBase(opts, rng)
	if p == nil {
		return nil, d.baseWhy
	}
	d.hash.add("base", opts.place, []byte(p.Hash))
	d.baseBranch = p
	return p, ""
}

// Base loads the plan of the base branch. It is used to find requirements that a change must not
// drop. The plan includes comparisons, and its secrets are not set. If the base branch has no such
// plan, Base returns nil without an error.
func Base(opts Options) (*plan.Plan, hcl.Diagnostics) {
	d := newDecoder(opts)
	start := hcl.Range{Filename: opts.Path, Start: hcl.InitialPos, End: hcl.InitialPos}
	base, ok := d.baseOptions(start)
	if !ok {
		return nil, d.finish()
	}
	p := d.loadBase(base, start)
	return p, d.finish()
}

// If ok is false, an error was reported, or the field baseWhy says why there is no such plan.
func (d *decoder) baseOptions(rng hcl.Range) (opts Options, ok bool) {
	path, err := filepath.Abs(d.opts.Path)
	if err == nil {
		path, err = filepath.Rel(d.root, path)
	}
	if err != nil || strings.HasPrefix(path, "..") {
		d.errorf(rng, sumBase, "The plan is outside the repository, so the base branch has no version of it. Move the plan into the repository, or use another control.")
		d.baseWhy = "the plan is outside the repository"
		return opts, false
	}
	opts = Options{
		Path: filepath.Join(d.opts.Base, path), Inputs: d.baseInputs(), Environ: d.opts.Environ,
		ReadFile: d.opts.ReadFile, Root: d.opts.Base, Files: d.opts.Files, lenient: true, place: path,
	}
	switch _, err := d.readGiven(opts.Path); {
	case errors.Is(err, fs.ErrNotExist):
		d.baseWhy = fmt.Sprintf("the base branch has no plan %s", filepath.ToSlash(path))
		return opts, false
	case err != nil:
		d.errorf(rng, sumBase, "The plan on the base branch cannot be used: tokgate %s.", readError(opts.Path, err))
		d.baseWhy = "the plan on the base branch cannot be read"
		return opts, false
	}
	return opts, true
}

func (d *decoder) loadBase(opts Options, rng hcl.Range) *plan.Plan {
	p, diags := d.again(opts)
	for _, diag := range diags {
		if diag.Severity == hcl.DiagError {
			d.errorf(rng, sumBase, "The plan on the base branch has an error: %s", diag.Error())
			d.baseWhy = "the plan on the base branch has an error"
			return nil
		}
	}
	for _, s := range p.Secrets {
		d.addSecret(s)
	}
	return p
}

// It returns false if a server uses a program or a profile in the repository, because that file may
// change while the plan stays the same.
func unchanged(a, b *plan.Server) bool {
	relative := func(path string) bool {
		return path != "" && !filepath.IsAbs(path) && strings.ContainsAny(path, `/\`)
	}
	if len(plan.Differences(a.Declared(), b.Declared())) > 0 || a.ServedAs() != b.ServedAs() || a.Stack != nil {
		return false // what the commands of a stack start is not known
	}
	if (a.Endpoint == nil) != (b.Endpoint == nil) || a.Endpoint != nil && !slices.Equal(a.Endpoint.URLs(), b.Endpoint.URLs()) {
		return false
	}
	if (a.Process == nil) != (b.Process == nil) || a.Process != nil && (len(a.Process.Command) == 0 ||
		slices.ContainsFunc(slices.Concat(a.Process.Command, a.Args), relative)) {
		return false
	}
	if (a.Container == nil) != (b.Container == nil) || a.Container != nil &&
		slices.ContainsFunc(a.Container.Volumes, func(v string) bool { return strings.HasPrefix(v, ".") }) {
		return false
	}
	if a.Simulator == nil || b.Simulator == nil {
		return a.Simulator == b.Simulator
	}
	return a.Simulator.Seed == b.Simulator.Seed && !relative(a.Simulator.Profile) && !strings.HasSuffix(a.Simulator.Profile, ".json")
}
