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

// Options says which plan is loaded, and with which values. Nothing else has an influence on the
// result. The environment of the process is never read.
type Options struct {
	// Path is the path of the plan file (.hcl, .hcl.json or .json), as the user named it.
	// Diagnostics show this path. A relative path in the plan is relative to the folder of Path.
	Path string
	// Source is the content of the plan file. nil means that the file is read.
	Source []byte
	// Inputs holds the values of --var and --var-file, in the order of the command line. If a
	// variable has several values, the last one counts.
	Inputs []Input
	// Environ holds the environment as "NAME=value" entries. An entry TOKGATE_VAR_NAME sets the
	// variable NAME of the plan, if Inputs does not set it. The plan reads any entry by env.NAME.
	Environ []string
	// RequireEnv is set if the plan will be run. Then env.NAME and sensitive variables must be set.
	// Otherwise a missing value is unknown, and a string that contains it is "(unknown)".
	RequireEnv bool
	// ReadFile reads small files in place of the disk: plans, variable files, and those that
	// file() reads. If it is nil, they are read from the disk.
	ReadFile func(path string) ([]byte, error)
	// Root is the folder that contains the files which the plan may read. If Root is "", this is
	// the repository of the plan: the nearest folder above with a .git. Without a repository, it is
	// the plan's own folder.
	Root string
	// Files lists more folders whose files the plan may read, given by whoever runs the plan.
	Files []string
	// Base is the folder of a checkout of the base branch. It is needed for a control on the base
	// branch, such as base.server.vllm. It is "" without a checkout.
	Base string
	// BaseMissing says what a comparison decides if that checkout lacks the plan or the server; ""
	// is BaseMissingOthers.
	BaseMissing plan.BaseMissing
	// Self makes the candidate its own control if Base is "". So the duration and the power of a
	// comparison can be computed without a checkout of the base branch.
	Self bool
	// Drafts reports whether the built-in server decodes speculatively under the given profile. If
	// Drafts is nil, it never does.
	Drafts func(profile string) bool
	// Bounded is the function that calls the readers of data files (data sets and traces). These
	// readers have their own bounds on time and memory. If Bounded is nil, they are called
	// directly.
	Bounded func(read func())
	// The next three fields are set only for the plan of the base branch. With lenient, unknown
	// variables may have values, as the new plan may declare them. With alone, comparisons are
	// ignored. place is the path of the plan in its repository.
	lenient, alone bool
	place          string
}

// Input is one --var ("name=value"), or one --var-file.
type Input struct {
	Var  string // "name=value"
	File string // file with lines "name = value"; used if Var is ""
}

const unknownText = "(unknown)"

// dataKey says what was read of a data set.
type dataKey struct {
	path, column string
	talks        bool
}

type decoder struct {
	opts  Options
	out   *plan.Plan
	diags hcl.Diagnostics
	seen  map[diagnosticKey]bool

	root string // folder of the repository: see Options.Root
	dir  string // folder of the plan
	hash *hasher

	blocks  map[string][]*hcl.Block // blocks by type, in the order of the source
	environ map[string]string
	names   map[string]map[string]*named // declared names, by "var", "local", "server", "workload"
	values  map[string]cty.Value         // values of variables
	base    *hcl.EvalContext             // context for expressions, with var, local and functions

	servers   map[string]*family[plan.Server]
	workloads map[string]*family[plan.Workload]
	pending
	instances int // number of instances that for_each made in the plan
	levels    int
	hidden
	caches
	branch
}

// pending holds what the checks of the whole plan need of its blocks.
type pending struct {
	mixes    []*mixture
	loadless map[*plan.Workload]hcl.Range // workloads without a load
	// lengthless has those workloads of loadless that set no token lengths either. Only a mix that
	// replays a trace may use them, because the trace sets the lengths.
	lengthless map[*plan.Workload]hcl.Range
	at         map[*plan.SLA][]levelNamed    // levels that an sla block names, if it names any
	unasked    map[*plan.Load]map[string]int // requests of a leg, of levels for which the plan sets no number
}

// hidden holds the secrets of the plan.
type hidden struct {
	secrets  map[string]bool
	revealed map[string]bool // texts that nonsensitive opened
}

// caches holds what is read once.
type caches struct {
	datasets  map[dataKey]*traffic.Dataset // nil: could not be read
	traces    map[traceKey]*traffic.Trace  // traces by key; nil if a trace could not be read
	constants map[string]cty.Value         // the schema's defaults
	schemas   map[*Block]*hcl.BodySchema
}

// branch is the plan of the base branch.
type branch struct {
	again      func(Options) (*plan.Plan, hcl.Diagnostics) // loads the plan of the base branch
	baseLoaded bool                                        // whether tokgate has looked for baseBranch
	baseBranch *plan.Plan                                  // plan of the base branch, or nil
	baseWhy    string                                      // why baseBranch is nil
}

func (d *decoder) isLoadless(w *plan.Workload) bool {
	_, ok := d.loadless[w]
	return ok
}

type mixture struct {
	*plan.Workload
	parts      []portion
	rng, block hcl.Range // ranges of the attribute mix and of the workload block
}

// Either its share or its type is set.
type portion struct {
	name  string
	share int    // of the requests of the mix, in millionths
	rows  string // type of its rows in the trace
}

type levelNamed struct {
	name string
	rng  hcl.Range
}

type named struct {
	rng  hcl.Range // range of the declaration
	used bool      // something refers to it
	each bool      // the block has for_each, so it has one instance for each of the keys
	keys []string
}

// With for_each it has one instance for each key; otherwise it has only one.
type family[T any] struct {
	*named
	members []*T // instances, in the order of the keys of for_each
}

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

// hasher collects everything that determines a plan, without secrets: its sources, the values of
// its variables, and the files that it reads.
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
