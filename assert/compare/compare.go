// Package compare judges a candidate against a control: whether the two can be
// compared, how each metric changed, and whether the changes that are required
// hold.
package compare

import (
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Comparison is a judged comparison of a candidate with a control.
type Comparison struct {
	Name      string
	Control   string // address, or the folder of a stored control
	Candidate string // address
	// Paired means that the rounds took turns. Otherwise the control is a record, and
	// drift is not excluded.
	Paired      bool
	Restart     plan.Restart // "" when not paired
	SideBySide  bool         // both legs of a round at the same time, on swapped GPUs
	Rounds      int          // judged, of each side
	Units       int          // independent ones among them
	Outcome     verdict.Outcome
	Skipped     string // why nothing was compared; "" if something was
	LeftOut     bool   // not selected by the user
	Line        string // the result in one line
	Differences []plan.Difference
	Decisions   []Decision
	Changes     []Change
	// Lost holds the prompts on which only the candidate gave a bad answer. Those
	// that are bad by most metrics come first.
	Lost  []Lost
	Notes []string
}

// Decision is the result of a comparison for one workload at one level.
type Decision struct {
	Workload, Level string
	Answer          string // yes, no, mixed, no difference, unknown
	Why             string
}

// The answers of a decision. They follow from e2e and throughput (the whole request
// and the whole server) if these changed, and otherwise from all other shown changes.
const (
	AnswerYes     = "yes"           // something is better, nothing worse
	AnswerNo      = "no"            // something is worse, nothing better; or a required change fails
	AnswerMixed   = "mixed"         // both
	AnswerNone    = "no difference" // both bounds are within the tolerance
	AnswerUnknown = "unknown"       // nothing could be compared, or too little for a result
)

// shown lists the statistics that are always compared, required or not. The answer
// for a workload is taken from them.
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

// drifting marks comparisons whose rounds did not take turns.
const drifting = "unpaired: drift not excluded"

// startedOnce marks verdicts that hold only for two starts.
const startedOnce = "each server was started once: chance differences between starts are part of the change"

// Input holds what a comparison is judged by: the plan with the compare block, the
// run, and earlier judgements of levels and capacities.
type Input struct {
	Plan  *plan.Plan
	Block *plan.Compare
	Run   *metric.Run
	// Baseline is the recorded run of a stored control; nil if none was read.
	Baseline *metric.Run
	// Planless means that two servers of a record are compared without a plan.
	Planless bool
	Unrun    string // why their record lacks a planned level; ""
	// Level returns a level of the run as recorded; nil if there is none. Valid reports whether
	// it was measured properly; a damaged record may not have been.
	Level func(server, workload, level string) *metric.Level
	Valid func(server, workload, level string) bool
	// Invalid explains why a level of the baseline cannot be used; "" if it can.
	Invalid func(*metric.Level, *plan.Workload) string
	// Limit returns the capacity of a server in a run, judged again from its samples.
	Limit func(run *metric.Run, server string, w *plan.Workload) Limit
}

// Limit is a capacity that was judged again.
type Limit struct {
	*metric.Capacity        // nil if there was no search
	Problem          string // why there is no result; "" if there is one
}

// comparison is the state of judging one compare block.
type comparison struct {
	Input
	out     *Comparison
	alpha   float64
	control *metric.Run // that holds the control
	address string      // address of the control in the baseline
	look    *metric.ComparisonLook
	record  *metric.Comparison // nil if the run has none
	// required holds the claims of the plan, and usual the default claim; nil if there is
	// none.
	required []*plan.Claim
	usual    *plan.Claim
	reading  *plan.Claim // the claim that the answers block adds; nil if there is none
	reads    []claimed   // required changes of scored answers, not yet in claims
	claims   []claimed
	// unmatched is set if one side could not be matched at a compared level.
	unmatched bool
	list      []verdict.Verdict
}

// claimed is a required change and its place.
type claimed struct {
	index  int // in out.Changes
	claim  *plan.Claim
	change *plan.Change
}

// ofCapacity reports whether the change is about the capacity, and so about no level.
func ofCapacity(ch *plan.Change) bool { return ch.Metric.Name == "capacity" }

// ofLevel reports whether the change applies to each level: not to the capacity or to scored
// answers.
func ofLevel(ch *plan.Change) bool { return !ofCapacity(ch) && !ch.Metric.Paired }

// applies reports whether the workload has the metric of a change.
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
