package decode

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
	"github.com/zclconf/go-cty/cty"
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
	// is ReadFile.
	ReadFile func(path string) ([]byte, error)
	// Root bounds what the plan may read: it and what lies below. "" is the
	// nearest folder upwards that holds .git, else the plan's own.
	Root string
	// Base is the folder of a checkout of the base branch, for controls such as
	// base.server.vllm; "" if there is none.
	Base string
	// Self makes the candidate its own control if there is no Base: the length and
	// the strength of the comparison can be computed without one.
	Self bool
	// Drafts reports whether the built-in server decodes speculatively with a profile;
	// nil: with none.
	Drafts func(profile string) bool
	// lenient is set for the plan of the base branch, which may not know a
	// variable. alone: its comparisons are ignored. place is the path of the plan
	// in its repository.
	lenient, alone bool
	place          string
}

// Input is one --var or one --var-file.
type Input struct {
	Var  string // "name=value"
	File string // path of a file of name = value; used when Var is ""
}

// unknownText stands for a string whose value is not known yet.
const unknownText = "(unknown)"

// decoder turns the blocks of a plan into a Plan.
type decoder struct {
	opts  Options
	out   *plan.Plan
	diags hcl.Diagnostics
	seen  map[diagnosticKey]bool

	root string // what file() and include may read
	dir  string // of the plan
	hash *hasher

	blocks  map[string][]*hcl.Block // by type, in order of the source
	environ map[string]string
	names   map[string]map[string]*named // by "var", "local", "server" and "workload"
	values  map[string]cty.Value         // of variables
	base    *hcl.EvalContext             // var, local and functions

	servers   map[string]*family[plan.Server]
	workloads map[string]*family[plan.Workload]
	mixes     []*mixture
	loadless  map[*plan.Workload]hcl.Range // workloads without a load
	// lengthless are those of them without lengths: parts of a mix over a trace need none.
	lengthless map[*plan.Workload]hcl.Range
	at         map[*plan.SLA][]levelNamed    // the levels that sla blocks name; absent: it names none
	unasked    map[*plan.Load]map[string]int // the requests of levels that have the default
	instances  int                           // of for_each, all blocks together
	levels     int
	secrets    map[string]bool
	datasets   map[[2]string]*traffic.Dataset // by path and column; nil: it cannot be read
	traces     map[traceKey]*traffic.Trace    // likewise
	constants  map[string]cty.Value           // the schema's defaults

	again      func(Options) (*plan.Plan, hcl.Diagnostics) // loads the plan of the base branch
	baseLoaded bool                                        // the plan of the base branch was looked for
	baseBranch *plan.Plan                                  // nil if there is none
	baseWhy    string                                      // why
}

// isLoadless reports whether a workload has neither a load nor a search.
func (d *decoder) isLoadless(w *plan.Workload) bool {
	_, ok := d.loadless[w]
	return ok
}

// mixture is a mix whose parts are not known yet.
type mixture struct {
	*plan.Workload
	parts      []portion
	rng, block hcl.Range // of mix, and of its workload
}

// portion is a part as the plan names it, with its share in millionths or the type of the
// rows that are its own.
type portion struct {
	name  string
	share int
	of    string
}

// levelNamed is a level that the at of an sla block names.
type levelNamed struct {
	name string
	rng  hcl.Range
}

// named is what a reference can name: a variable, a local value, a server or a
// workload.
type named struct {
	rng  hcl.Range // of its declaration
	used bool      // something refers to it
	each bool      // by for_each: it has one instance for each of keys
	keys []string
}

// family is what one block stands for: itself, or its for_each instances.
type family[T any] struct {
	*named
	members []*T // in the order of keys
}

// traceKey tells traces apart.
type traceKey struct {
	path, format string
	columns      traffic.Columns
}

type diagnosticKey struct {
	severity hcl.DiagnosticSeverity
	summary  string
	detail   string
	subject  string
}

// hasher sums what determines a plan: sources and the values of variables that
// are no secrets.
type hasher struct{ parts [][]byte }

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
