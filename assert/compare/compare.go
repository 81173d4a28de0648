// Package compare judges a candidate against a control. It decides whether they can be compared,
// how each metric changed, and whether the required changes hold.
package compare

import (
	"slices"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Comparison is a judged comparison of a candidate with a control.
type Comparison struct {
	Name      string `json:"name"`
	Control   string `json:"control"`   // address of the control; for a stored control its folder
	Candidate string `json:"candidate"` // address
	// Paired means that control and candidate took turns in the same run. Otherwise the control is
	// a recorded run, and the environment may have changed since then.
	Paired  bool         `json:"paired"`
	Restart plan.Restart `json:"restart,omitempty"` // "" when not paired
	// SideBySide means that the servers ran at the same time, and swapped their GPUs between rounds.
	SideBySide  bool              `json:"side_by_side,omitempty"`
	Rounds      int               `json:"rounds"` // number of judged rounds on each side
	Units       int               `json:"units"`  // number of independent observations; dependent rounds count as one
	Outcome     verdict.Outcome   `json:"outcome"`
	Stage       *Stage            `json:"stage,omitempty"`    // what the last look decided; nil if the comparison was judged once
	Skipped     string            `json:"skipped,omitempty"`  // why nothing was compared; "" if something was
	LeftOut     bool              `json:"left_out,omitempty"` // the user did not select this comparison
	Line        string            `json:"line"`               // the result in one line
	Differences []plan.Difference `json:"differences,omitempty"`
	Decisions   []Decision        `json:"decisions,omitempty"` // one for each workload and level, in order of the plan
	Changes     []Change          `json:"changes,omitempty"`   // all measured changes, required or not
	// Lost holds the prompts to which only the candidate gave a bad answer. Prompts that are bad by
	// the most metrics come first.
	Lost  []Lost   `json:"-"`
	Notes []string `json:"notes,omitempty"`
}

// Decision is the answer of a comparison for one workload at one level.
type Decision struct {
	Workload string `json:"workload"`
	Level    string `json:"level"`
	Answer   string `json:"answer"` // one of the constants below, such as AnswerYes
	Why      string `json:"why"`
}

// The possible answers of a decision. If e2e (the whole request) or throughput (the whole server)
// changed, only these two metrics decide. Otherwise the other metrics in the list "shown" decide.
const (
	AnswerYes     = "yes"           // something is better, and nothing is worse
	AnswerNo      = "no"            // something is worse and nothing better, or a required change fails
	AnswerMixed   = "mixed"         // something is better, and something is worse
	AnswerNone    = "no difference" // both bounds of every change are within the tolerance
	AnswerUnknown = "unknown"       // nothing was compared, or the data do not suffice for a result
)

// shown lists the statistics that every comparison compares, even if the plan does not ask for
// them. They decide the answer for a workload.
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

// startedOnce is a note for a comparison that started each server only once.
const startedOnce = "each server was started only once, so the change includes chance differences between starts"

// Input holds what is needed to judge a comparison: the plan and its compare block, the run, and
// functions that return levels and capacities.
type Input struct {
	Plan  *plan.Plan
	Block *plan.Compare
	Run   *metric.Run
	// Baseline is the recorded run of a stored control. It is nil if no run was read.
	Baseline *metric.Run
	// Planless means that two servers of a recorded run are compared without a plan.
	Planless bool
	Unrun    string // why the recorded run did not measure all levels of its plan; "" if it did
	// Level returns a level as the run recorded it, or nil if the run has no such level. Valid
	// reports whether the level was measured properly. The two differ because a level of a damaged
	// record may look right.
	Level func(server, workload, level string) *metric.Level
	Valid func(server, workload, level string) bool
	// Invalid explains why a level of the baseline, the control's recorded run, cannot be used; ""
	// if it can.
	Invalid func(*metric.Level, *plan.Workload) string
	// Thresholds are the verdicts on the candidate's thresholds that can fail the plan, of the compared
	// workloads.
	Thresholds []verdict.Verdict
	// Limit judges the capacity of a server again, from the samples of run.
	Limit func(run *metric.Run, server string, w *plan.Workload) Limit
}

// Limit is the result of a capacity search, judged again from the samples of the run.
type Limit struct {
	*metric.Capacity        // result of the search; nil if there was none
	Problem          string // why there is no result; "" if there is one
}

// comparison is the state while a compare block is judged.
type comparison struct {
	Input
	out *Comparison
	// alpha is the error of one test: the plan's error whole, or less if several looks share it. nominal
	// returns the error of one test for any error that the looks share.
	alpha, whole float64
	nominal      func(alpha float64) float64
	control      *metric.Run     // run with the control's levels: this run or a recorded one
	ofControl    []*metric.Level // see levels
	address      string          // address of the control's server in that run
	look         *metric.ComparisonLook
	record       *metric.Comparison // record of the comparison in the run; nil if there is none
	// required holds the claims of the plan, its limits on changes, and those that tokgate adds. usual
	// holds the default claim on natural answers; nil if the comparison has none. failures holds the
	// default claims on failed requests.
	required []*plan.Claim
	failures []*plan.Claim
	usual    *plan.Claim
	reading  *plan.Claim // claim on scored answers, if the plan has an answers block; else nil
	reads    []claimed   // required changes of scored answers that are not in the list claims yet
	claims   []claimed
	// unmatched means that one side lacks a level that the comparison needs.
	unmatched bool
	slow      bool // a leg of the candidate reached its limit of time
	list      []verdict.Verdict
}

// claimed is a required change, and the claim of the plan that requires it.
type claimed struct {
	index  int // in out.Changes
	claim  *plan.Claim
	change *plan.ChangeBound
}

// ofCapacity reports whether ch is a change of the capacity, which belongs to no level.
func ofCapacity(ch *plan.ChangeBound) bool { return ch.Metric.Name == "capacity" }

// ofLevel reports whether the change is judged at each level. Changes of the capacity and of scored
// answers are judged once for a workload.
func ofLevel(ch *plan.ChangeBound) bool { return !ofCapacity(ch) && !ch.Metric.Paired }

// applies reports whether the metric of ch exists for the workload.
func applies(ch *plan.ChangeBound, w *plan.Workload) bool {
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

// Binding returns, for each workload, the change that decides its comparison: the worst change with
// a limit. If no change has a limit, it is the first that was measured.
func (c *Comparison) Binding() []*Change {
	var list []*Change
	at := map[string]int{}
	for i := range c.Changes {
		x := &c.Changes[i]
		j, ok := at[x.Workload]
		if !ok {
			at[x.Workload] = len(list)
			list = append(list, x)
			continue
		}
		if worse := x.Status() < list[j].Status(); x.Limit.OK && (worse || !list[j].Limit.OK) {
			list[j] = x
		}
	}
	return list
}

// Loses reports whether something is certainly worse at the level of a decision.
func (c *Comparison) Loses(d *Decision) bool {
	return slices.ContainsFunc(c.Changes, func(x Change) bool {
		return x.Workload == d.Workload && x.Level == d.Level && x.Direction == Worse
	})
}
