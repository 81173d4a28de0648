// Package decode reads the plan language: plan files in HCL, in native or JSON syntax, with
// variables, locals and for_each. It checks them against one schema, and checks everything else
// that can be known before a server starts. It returns a Plan, or diagnostics with file, line and a
// suggestion. It runs nothing and never uses the network.
package decode

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// File reads and checks a plan, and reports all problems at once. If the plan has errors, p is
// incomplete but not nil. p.Files then has the sources that the diagnostics quote.
func File(opts Options) (p *plan.Plan, diags hcl.Diagnostics) {
	if opts.Bounded == nil {
		opts.Bounded = func(read func()) { read() }
	}
	d := newDecoder(opts)
	defer func() {
		// HCL and its functions have panicked on hostile input before. A panic becomes a
		// diagnostic.
		if r := recover(); r != nil {
			d.errorf(hcl.Range{Filename: opts.Path, Start: hcl.InitialPos, End: hcl.InitialPos}, sumInternal,
				"The plan could not be checked: %v. This is a bug in tokgate. Please report it, with the plan.", r)
		}
		p, diags = d.out, d.finish()
	}()
	d.load()
	return d.out, d.diags
}

func newDecoder(opts Options) *decoder {
	d := &decoder{
		opts:      opts,
		out:       &plan.Plan{Path: opts.Path, Files: map[string]*hcl.File{}},
		seen:      map[diagnosticKey]bool{},
		dir:       filepath.Dir(opts.Path),
		hash:      &hasher{},
		blocks:    map[string][]*hcl.Block{},
		environ:   map[string]string{},
		names:     map[string]map[string]*named{"var": {}, "local": {}, "server": {}, "workload": {}},
		values:    map[string]cty.Value{},
		servers:   map[string]*family[plan.Server]{},
		workloads: map[string]*family[plan.Workload]{},
		pending: pending{
			loadless:   map[*plan.Workload]hcl.Range{},
			lengthless: map[*plan.Workload]hcl.Range{},
			at:         map[*plan.SLA][]levelNamed{},
			unasked:    map[*plan.Load]map[string]int{},
		},
		hidden: hidden{secrets: map[string]bool{}, revealed: map[string]bool{}},
		caches: caches{
			datasets:  map[dataKey]*traffic.Dataset{},
			traces:    map[traceKey]*traffic.Trace{},
			constants: map[string]cty.Value{},
			schemas:   map[*Block]*hcl.BodySchema{},
		},
	}
	d.again = File
	d.root = opts.Root
	if d.root == "" {
		d.root = repositoryRoot(d.dir)
	}
	for _, kv := range opts.Environ {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			d.environ[name] = value
		}
	}
	return d
}

func (d *decoder) load() {
	if !d.readSources() {
		return
	}
	d.base = &hcl.EvalContext{Functions: d.functions()}
	d.decodeVariables()
	d.decodeLocals()
	d.decodeGate()
	d.decodeServers()
	d.decodePrices()
	d.decodeReport()
	d.decodeHistory()
	d.decodeWorkloads()
	d.decodeCompares()
	d.readStarts()
	d.decodeAccepts()
	d.decodeAsserts()
	d.checkPlan()
}

func (d *decoder) finish() hcl.Diagnostics {
	d.out.Hash = d.hash.sum()
	for s := range d.revealed {
		delete(d.secrets, s)
	}
	for s := range d.secrets {
		d.out.Secrets = append(d.out.Secrets, s)
	}
	slices.Sort(d.out.Secrets)
	d.mask()
	d.diags = causes(d.diags)
	slices.SortStableFunc(d.diags, byPlace)
	return d.diags
}

// causes leaves out errors on a value that only result from an undeclared name in it.
func causes(diags hcl.Diagnostics) hcl.Diagnostics {
	var out hcl.Diagnostics
	for _, diag := range diags {
		follows := diag.Severity == hcl.DiagError && diag.Subject != nil && diag.Summary != sumUndeclared &&
			slices.ContainsFunc(diags, func(o *hcl.Diagnostic) bool {
				return o.Summary == sumUndeclared && o.Subject != nil && encloses(*diag.Subject, *o.Subject)
			})
		if !follows {
			out = append(out, diag)
		}
	}
	return out
}

func encloses(outer, inner hcl.Range) bool {
	return inner.Filename == outer.Filename && outer.Start.Byte <= inner.Start.Byte && inner.End.Byte <= outer.End.Byte
}

// follows returns 1 for a diagnostic that often only results from another mistake, else 0. For
// example, if the name of the block workload is misspelt, the plan also seems to require nothing.
func follows(summary string) int {
	switch summary {
	case sumMissing, sumNoLoad, sumNoServer, sumRequiresNothing, sumEmptySLA:
		return 1
	}
	return 0
}

// byPlace orders diagnostics by severity, then by place in the source. Of equal severity, mistakes
// come before diagnostics that may only follow from them.
func byPlace(a, b *hcl.Diagnostic) int {
	var x, y hcl.Range
	if a.Subject != nil {
		x = *a.Subject
	}
	if b.Subject != nil {
		y = *b.Subject
	}
	return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(follows(a.Summary), follows(b.Summary)),
		strings.Compare(x.Filename, y.Filename), cmp.Compare(x.Start.Byte, y.Start.Byte))
}
