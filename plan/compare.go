package plan

import (
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/metric"
)

// Restart says when a comparison starts a server anew.
type Restart string

const (
	// RestartLeg gives each leg a fresh server.
	RestartLeg Restart = "leg"
	// RestartOrder gives each turn a fresh server: in A B B A both legs of B
	// share one. The block of four is then the unit of the verdict.
	RestartOrder Restart = "order"
	// RestartNever starts each server once. Both run at the same time, and the
	// verdict speaks of these two starts alone.
	RestartNever Restart = "never"
)

// Compare is one compare block: a candidate against a control. Every workload
// that both run on is compared; Claims say what must hold.
type Compare struct {
	Name      string
	Control   Control
	Candidate *Server
	Rounds    int // at least 5; even under RestartOrder
	Restart   Restart
	// Changed lists the keys of fingerprint and declaration that may differ;
	// "flags" covers "flags.max-model-len".
	Changed []string
	Claims  []*Claim
	// Skip says why there is nothing to compare; "" when there is. Unchanged
	// is set when that is because both servers are the same.
	Skip      string
	Unchanged bool
	Range     hcl.Range
}

// Control is what a candidate is compared with: exactly one of a server of the
// plan (or of the same plan on the base branch) and a recorded run.
type Control struct {
	Server *Server // nil for a baseline, and where the base branch has none
	// Baseline is the folder of a recorded run, resolved against the plan's;
	// "": none. BaselineServer is the address of the control in it; "": that
	// of the candidate, or the only server there is.
	Baseline       string
	BaselineServer string
	Base           bool // Server is that of the plan on the base branch
	Range          hcl.Range
}

// Claim is one tolerate or improve block.
type Claim struct {
	Improve   bool
	Workloads []*Workload // those it speaks of; all that are compared where none is named
	At        []string    // level names; once the plan is checked empty only with AtCapacity
	// AtCapacity is set when it bounds the capacity.
	AtCapacity bool
	Severity   Severity
	Changes    []*Change
	Range      hcl.Range
}

// Change is one bound on the change of a metric from control to candidate: "p95
// +10%".
type Change struct {
	Metric metric.Def // of the capacity: Name "capacity"
	Stat   metric.Stat
	// Limit is the change as written, with its sign: a share of the control's
	// value (0.10), or a difference in base units where Points is set, as for
	// metrics that are shares themselves (-0.01 for "-1pp").
	Limit  float64
	Points bool
	Text   string // as the author wrote it
	Range  hcl.Range
}

// Workloads lists those that both sides run, in order of the plan; of a
// baseline those that the candidate runs.
func (c *Compare) Workloads(p *Plan) []*Workload {
	var out []*Workload
	for _, w := range p.Workloads {
		if slices.Contains(w.Servers, c.Candidate) && (c.Control.Server == nil || slices.Contains(w.Servers, c.Control.Server)) {
			out = append(out, w)
		}
	}
	return out
}

// Live says whether the two take turns: neither skipped nor against a record.
func (c *Compare) Live() bool { return c.Skip == "" && c.Control.Server != nil }
