// Package decode reads the plan language: plan files (HCL, native or JSON) with
// their variables, locals and for_each, against one schema. It checks
// everything that can be known before a server is started, and returns a Plan or
// diagnostics that name file, line and a way out. It runs nothing and never
// touches the network.
package decode

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/plan"
)

// Options says which plan is loaded and with which values. Nothing else
// influences a plan: the process's own environment is never read.
type Options struct {
	// Path of the plan file, .hcl, .hcl.json or .json, as the user named it.
	// Diagnostics name it, and relative paths in the plan start at its folder.
	Path string
	// Source is the content of the file; nil reads it.
	Source []byte
	// Inputs holds --var and --var-file in the order of the command line; the
	// last one wins.
	Inputs []Input
	// Environ holds "NAME=value": TOKGATE_VAR_name sets a variable that Inputs
	// does not, and env.NAME reads any.
	Environ []string
	// RequireEnv is set for a run: env.NAME and sensitive variables must be
	// set. Without it unset ones are unknown; the plan is still checked, and
	// strings made from them read "(unknown)".
	RequireEnv bool
	// ReadFile reads included files, variable files and what file() names; nil
	// is os.ReadFile.
	ReadFile func(path string) ([]byte, error)
	// Root bounds what the plan may read: it and what lies below. "" is the
	// nearest folder upwards that holds .git, else the plan's own.
	Root string
	// Base is the folder of a checkout of the base branch, for controls such as
	// base.server.vllm; "": there is none.
	Base string
	// lenient is set for the plan of the base branch: it may not know a
	// variable, and what it compares is not looked at.
	lenient bool
}

// Input is one --var or one --var-file.
type Input struct {
	Var  string // "name=value"
	File string // path of a file of name = value; used when Var is ""
}

// unknownText is what a string reads whose value is not known yet.
const unknownText = "(unknown)"

// File reads and checks a plan. It reports every problem at once. With errors
// the plan is incomplete but never nil, and its Files let the diagnostics show
// their source.
func File(opts Options) (p *plan.Plan, diags hcl.Diagnostics) {
	if opts.ReadFile == nil {
		opts.ReadFile = os.ReadFile
	}
	d := newDecoder(opts)
	defer func() {
		// The expression libraries have panicked on hostile input before. A
		// plan author gets a diagnostic whatever happens.
		if r := recover(); r != nil {
			d.errorf(hcl.Range{Filename: opts.Path, Start: hcl.InitialPos, End: hcl.InitialPos}, sumInternal,
				"The plan could not be checked: %v. This is a mistake in tokgate; please report it with the plan.", r)
		}
		p, diags = d.plan, d.finish()
	}()
	d.load()
	return d.plan, d.diags
}

// decoder turns the blocks of a plan into a Plan.
type decoder struct {
	opts  Options
	plan  *plan.Plan
	diags hcl.Diagnostics
	seen  map[diagnosticKey]bool

	root string // what file() and include may read
	dir  string // of the plan
	hash *hasher

	blocks    map[string][]*hcl.Block // by type, in order of the source
	environ   map[string]string
	variables map[string]*variable
	locals    map[string]*local
	values    map[string]cty.Value // of variables
	base      *hcl.EvalContext     // var, local and functions

	servers   map[string]*family[plan.Server]
	workloads map[string]*family[plan.Workload]
	unasked   map[*plan.Load]map[string]int // the requests of levels that have the default
	instances int                           // of for_each, all blocks together
	levels    int
	secrets   map[string]bool
	constants map[string]cty.Value // the schema's defaults

	baseLoaded bool       // the plan of the base branch was looked for
	baseBranch *plan.Plan // nil: there is none
	baseWhy    string     // why
}

// family is what one block stands for: itself, or its for_each instances.
type family[T any] struct {
	each    bool
	members []*T // in key order
	keys    []string
	used    bool
	rng     hcl.Range
}

func newDecoder(opts Options) *decoder {
	d := &decoder{
		opts:      opts,
		plan:      &plan.Plan{Path: opts.Path, Files: map[string]*hcl.File{}},
		seen:      map[diagnosticKey]bool{},
		dir:       filepath.Dir(opts.Path),
		hash:      newHasher(),
		blocks:    map[string][]*hcl.Block{},
		environ:   map[string]string{},
		variables: map[string]*variable{},
		locals:    map[string]*local{},
		values:    map[string]cty.Value{},
		servers:   map[string]*family[plan.Server]{},
		workloads: map[string]*family[plan.Workload]{},
		unasked:   map[*plan.Load]map[string]int{},
		secrets:   map[string]bool{},
		constants: map[string]cty.Value{},
	}
	d.root = opts.Root
	if d.root == "" {
		d.root = repositoryRoot(d.dir)
	}
	for _, kv := range opts.Environ {
		if name, value, ok := cutEnv(kv); ok {
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
	d.decodeHistory()
	d.decodeWorkloads()
	d.decodeCompares()
	d.decodeAsserts()
	for _, spec := range Schema.Blocks {
		for _, b := range d.blocks[spec.Name] {
			if spec.Later {
				d.later(b.DefRange, "The block "+spec.Name)
			}
		}
	}
	d.checkPlan()
}

// finish completes the plan on every path.
func (d *decoder) finish() hcl.Diagnostics {
	d.plan.Hash = d.hash.sum()
	for s := range d.secrets {
		d.plan.Secrets = append(d.plan.Secrets, s)
	}
	slices.Sort(d.plan.Secrets)
	d.mask()
	slices.SortStableFunc(d.diags, byPlace)
	return d.diags
}

// follows says of a summary that it is often but the consequence of another
// mistake: a misspelt workload block leaves a plan that requires nothing.
func follows(summary string) int {
	switch summary {
	case sumMissing, sumNoLoad, sumNoServer, sumRequiresNothing, sumEmptySLA:
		return 1
	}
	return 0
}

// byPlace puts errors before warnings, what may follow from another mistake
// after all mistakes, and each group in the order of the source.
func byPlace(a, b *hcl.Diagnostic) int {
	var x, y hcl.Range
	if a.Subject != nil {
		x = *a.Subject
	}
	if b.Subject != nil {
		y = *b.Subject
	}
	return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(follows(a.Summary), follows(b.Summary)), strings.Compare(x.Filename, y.Filename), cmp.Compare(x.Start.Byte, y.Start.Byte))
}

// later reports a part of the language that is not supported yet.
func (d *decoder) later(rng hcl.Range, what string) {
	d.errorf(rng, sumNotSupported, "%s is part of the language but not supported yet.", what)
}

// hasher sums what determines a plan: sources and the values of variables that
// are no secrets.
type hasher struct{ parts [][]byte }

func newHasher() *hasher { return &hasher{} }

func (h *hasher) add(kind, name string, data []byte) {
	sum := sha256.Sum256(data)
	h.parts = append(h.parts, fmt.Appendf(nil, "%s %q %x\n", kind, name, sum))
}

func (h *hasher) sum() string {
	all := sha256.New()
	for _, p := range h.parts {
		all.Write(p)
	}
	return hex.EncodeToString(all.Sum(nil))
}
