package exec

import (
	"github.com/tokgate/tokgate/exec/search"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Judge returns the result of a level as measured so far. If the level has a Probe, it is judged
// by the thresholds of the workload's capacity. Otherwise it is judged by the thresholds that
// apply to the level.
type Judge func(w *plan.Workload, l *metric.Level, look Look) Judgement

// Look is a planned moment at which a level is judged. The field Requests says how many measured
// requests are judged: the first ones by start, all of which have ended. 0 means all. The field
// Outcome is not set yet.
type Look = metric.Look

// Judgement is the result of a look.
type Judgement struct {
	Outcome search.Outcome
	// Invalid is the reason why the measurement cannot be judged; "" if it can.
	Invalid string
	// Needs is about how many more requests would decide an inconclusive outcome. 0 means that
	// this is not known. A negative number means that requests cannot decide it.
	Needs   int
	Binding string // the threshold that decided the outcome; of several the one nearest to its limit
	Margins []search.Margin
}

// JudgeComparison returns the result of a comparison so far. run holds the rounds
// that both servers have, and the look that is held now.
type JudgeComparison func(c *plan.Compare, run *metric.Run) ComparisonJudgement

// ComparisonJudgement is the result of a look at a comparison.
type ComparisonJudgement struct {
	// More reports whether the result is inconclusive and more rounds may settle it.
	More    bool
	Outcome string
}
