// Package compare judges a candidate against a control: whether the two can be
// compared, how each metric changed, and whether the changes that are required
// hold.
package compare

import (
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Comparison is a candidate against a control, as judged.
type Comparison struct {
	Name      string
	Control   string // address, or the folder of a stored one
	Candidate string // address
	// Paired: the rounds took turns. Else the control is a record, and drift is
	// not excluded.
	Paired      bool
	Restart     plan.Restart // "" when not paired
	SideBySide  bool         // both legs of a round at the same time, on swapped GPUs
	Rounds      int          // judged, of each side
	Units       int          // independent ones among them
	Outcome     verdict.Outcome
	Skipped     string // why nothing was compared; ""
	LeftOut     bool   // the user did not select it
	Line        string // the answer in one line
	Differences []plan.Difference
	Decisions   []Decision
	Changes     []Change
	// Lost are the prompts on which the candidate alone gave a bad answer, those that
	// are bad in most ways first.
	Lost  []Lost
	Notes []string
}

// Decision is what a comparison says for one workload at one level.
type Decision struct {
	Workload, Level string
	Answer          string // yes, no, mixed, no difference, unknown
	Why             string
}

// The answers of a decision. They follow from the whole request and the whole
// server (e2e and throughput) if these differ, else from everything else that is
// shown.
const (
	AnswerYes     = "yes"           // something is better, nothing worse
	AnswerNo      = "no"            // something is worse, nothing better; or a required change fails
	AnswerMixed   = "mixed"         // both
	AnswerNone    = "no difference" // both bounds lie within what is tolerated
	AnswerUnknown = "unknown"       // nothing could be compared, or too little to tell
)

// shown are the statistics that are compared whether required or not, and from
// which the answer for a workload is taken.
var shown = []struct {
	name string
	stat metric.Stat
}{
	{"throughput", metric.Stat{}},
	{"e2e", metric.Stat{Kind: metric.Mean}},
	{"ttft", metric.Stat{Kind: metric.Percentile, P: 95}},
	{"speed", metric.Stat{Kind: metric.Mean}},
	{"success", metric.Stat{Kind: metric.Rate}},
}

// drifting labels what was not measured in turns.
const drifting = "unpaired: drift not excluded"

// startedOnce labels verdicts that hold for two starts alone.
const startedOnce = "each server was started once: what a start brings by chance is part of the change"

// Input is what a comparison is judged by: the plan with the compare block, the
// run, and what has been judged of its levels and capacities already.
type Input struct {
	Plan  *plan.Plan
	Block *plan.Compare
	Run   *metric.Run
	// Baseline is the recorded run of a stored control; nil: none was read.
	Baseline *metric.Run
	// Planless: two servers of a record are compared that no plan compared.
	Planless bool
	Unrun    string // why their record lacks a level that was to be run; ""
	// Level is a level of the run as recorded, nil if there is none. Valid reports whether it was
	// measured properly; a damaged record may not have been.
	Level func(server, workload, level string) *metric.Level
	Valid func(server, workload, level string) bool
	// Invalid says why a level of the baseline cannot be used; "" when it can.
	Invalid func(*metric.Level, *plan.Workload) string
	// Limit is the capacity of a server in a run, judged again from its samples.
	Limit func(run *metric.Run, server string, w *plan.Workload) Limit
}

// Limit is a capacity as judged again.
type Limit struct {
	*metric.Capacity        // nil: there was no search
	Problem          string // why nothing can be said; ""
}

// comparison is one compare block under judgement.
type comparison struct {
	Input
	out     *Comparison
	alpha   float64
	control *metric.Run // that holds the control
	address string      // of the control in it
	look    *metric.ComparisonLook
	record  *metric.Comparison // nil: the run has none
	// required are the claims of the plan, and usual the default claim; nil: there is none.
	required []*plan.Claim
	usual    *plan.Claim
	reading  *plan.Claim // what the answers block brings; nil if there is none
	reads    []claimed   // what is required of the answers that the control reads, not yet in claims
	claims   []claimed
	// unmatched: at a compared level, one side could not be matched.
	unmatched bool
	list      []verdict.Verdict
}

// claimed is a required change and where it stands.
type claimed struct {
	index  int // in out.Changes
	claim  *plan.Claim
	change *plan.Change
}

// ofCapacity reports whether the change is one of the capacity, and so of no level.
func ofCapacity(ch *plan.Change) bool { return ch.Metric.Name == "capacity" }

// ofLevel reports whether the change is one of each level: neither of the capacity nor of the
// answers that the control reads.
func ofLevel(ch *plan.Change) bool { return !ofCapacity(ch) && !ch.Metric.Paired }

// applies reports whether the workload has what a change is one of.
func applies(ch *plan.Change, w *plan.Workload) bool {
	switch ch.Metric.Name {
	case "capacity":
		return w.Capacity != nil
	case "goodput":
		return len(w.Good) > 0
	case "accuracy":
		return w.Score != nil
	}
	return true
}
