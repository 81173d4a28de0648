package exec

import (
	"github.com/tokgate/tokgate/exec/search"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Judge says the result of a level, as far as it was measured. A level with a
// Probe is judged by the thresholds of the workload's capacity, any other by
// those that hold at it.
type Judge func(w *plan.Workload, l *metric.Level, look Look) Judgement

// Look is a planned moment at which a level is judged: on so many measured
// requests, the first ones by start, all of which have ended; 0: on all. Its
// Outcome is not known yet.
type Look = metric.Look

// Judgement is the result of a look.
type Judgement struct {
	Outcome search.Outcome
	// Invalid says why the measurement cannot be judged; "" when it can.
	Invalid string
	// Needs is about how many more requests would settle an inconclusive
	// outcome; 0: unknown, negative: no number would.
	Needs   int
	Binding string // the threshold that failed, or came closest to it
	Margins []search.Margin
}

// JudgeComparison says the result of a comparison so far: run holds the rounds
// that both servers have, and how it was run with the look that is held now.
type JudgeComparison func(c *plan.Compare, run *metric.Run) ComparisonJudgement

// ComparisonJudgement is the result of a look at a comparison.
type ComparisonJudgement struct {
	// More reports that the result is inconclusive and that further rounds may settle it.
	More    bool
	Outcome string
}
