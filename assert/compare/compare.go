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
	Control   string // address of the control, or the folder of a stored control
	Candidate string // address
	// Paired means that control and candidate took turns in the same run. Otherwise the control is
	// a record, and the environment may have changed in the meantime.
	Paired      bool
	Restart     plan.Restart // "" when not paired
	SideBySide  bool         // the servers ran at the same time, and swapped their GPUs between rounds
	Rounds      int          // judged rounds of each side
	Units       int          // independent observations among the rounds
	Outcome     verdict.Outcome
	Skipped     string // why nothing was compared; otherwise ""
	LeftOut     bool   // the user did not select this comparison
	Line        string // the result in one line
	Differences []plan.Difference
	Decisions   []Decision
	Changes     []Change
	// Lost holds the prompts on which only the candidate gave a bad answer. The list begins with
	// the prompts that are bad by the most metrics.
	Lost  []Lost
	Notes []string
}

// Decision is the answer of a comparison for one workload at one level, with its reason.
type Decision struct {
	Workload, Level string
	Answer          string // yes, no, mixed, no difference, unknown
	Why             string
}

// The possible answers of a decision. If e2e (the whole request) or throughput (the whole server)
// changed, only these two metrics decide. Otherwise all other shown changes decide.
const (
	AnswerYes     = "yes"           // something is better, and nothing is worse
	AnswerNo      = "no"            // something is worse, nothing is better; or a required change fails
	AnswerMixed   = "mixed"         // something is better, and something is worse
	AnswerNone    = "no difference" // both bounds of the change are within the tolerance
	AnswerUnknown = "unknown"       // nothing could be compared, or the data are too few for a result
)

// shown lists the statistics that a comparison always compares, even if the plan requires nothing
// of them. They determine the answer of the comparison for a workload.
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

// drifting is the note on a comparison in which control and candidate did not take turns.
const drifting = "unpaired: drift not excluded"

// startedOnce is the note on verdicts of a comparison that started each server only once.
const startedOnce = "each server was started once: the change includes chance differences between starts"

// Input holds everything that it takes to judge a comparison: the plan and its compare block, the
// run, and the functions that return levels and capacities.
type Input struct {
	Plan  *plan.Plan
	Block *plan.Compare
	Run   *metric.Run
	// Baseline is the recorded run of a stored control. It is nil if no run was read.
	Baseline *metric.Run
	// Planless means that the comparison has no plan. It compares two servers of a record.
	Planless bool
	Unrun    string // why the record lacks a level of its plan; "": it has all levels
	// Level returns a level as the run recorded it, or nil if the run has no such level. Valid
	// reports whether the level was measured properly. A damaged record may look proper although it
	// is not valid.
	Level func(server, workload, level string) *metric.Level
	Valid func(server, workload, level string) bool
	// Invalid explains why a level of the baseline cannot be used. It returns "" if the level can
	// be used.
	Invalid func(*metric.Level, *plan.Workload) string
	// Limit returns the capacity of a server in a run. The capacity is judged again from the
	// samples of the run.
	Limit func(run *metric.Run, server string, w *plan.Workload) Limit
}

// Limit is a capacity that was judged again from the samples of the run.
type Limit struct {
	*metric.Capacity        // nil if the capacity was not searched
	Problem          string // why there is no result; otherwise ""
}

// comparison is the state of judging one compare block.
type comparison struct {
	Input
	out     *Comparison
	alpha   float64
	control *metric.Run // the run that contains the control's levels
	address string      // the control's address in the run control
	look    *metric.ComparisonLook
	record  *metric.Comparison // record of the comparison in the run; nil if the run has no such record
	// required holds the claims of the plan. usual holds the default claim, or nil if the
	// comparison has no default claim.
	required []*plan.Claim
	usual    *plan.Claim
	reading  *plan.Claim // the claim that the answers block adds; nil if there is none
	reads    []claimed   // changes of scored answers that the plan requires and that claims does not hold yet
	claims   []claimed
	// unmatched is set if one side lacks a level that the comparison needs.
	unmatched bool
	list      []verdict.Verdict
}

// claimed is a required change, together with its claim and the index of its row.
type claimed struct {
	index  int // in out.Changes
	claim  *plan.Claim
	change *plan.Change
}

// ofCapacity reports whether the change is a change of the capacity. Such a change belongs to no
// level.
func ofCapacity(ch *plan.Change) bool { return ch.Metric.Name == "capacity" }

// ofLevel reports whether the change is judged at each level. A change of the capacity or of scored
// answers is not.
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
