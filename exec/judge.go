package exec

import (
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/search"
)

// Judge is a function that judges a level as measured so far. To a probe of a capacity search it
// applies the thresholds of the capacity, and to other levels those of the level.
type Judge func(w *plan.Workload, l *metric.Level, look Look) Judgement

// Look is a planned moment at which a level is judged. Requests is the number of measured requests
// to judge, the earliest first, all of which have ended; 0 means all. Outcome is not set yet.
type Look = metric.Look

// Judgement is the verdict on a level at one look (an early judgement).
type Judgement struct {
	Outcome search.Outcome
	// Invalid is the reason why the measurement cannot be judged; "" if it can.
	Invalid string
	// Needs is the approximate number of further requests that would decide an inconclusive
	// outcome. 0 means that it is not known. A negative number means that no requests can decide
	// it.
	Needs int
	// Follows is set if a saturation after the level may still certify its rate. Nothing else
	// failed.
	Follows bool
	Binding string // name of the threshold that decided; of several, the nearest to its limit
	Margins []search.Margin
}

// JudgeComparison is a function that judges a comparison at a look (an early judgement). The
// argument run holds the rounds that both servers have completed, and says which look this is.
type JudgeComparison func(c *plan.Compare, run *metric.Run) ComparisonJudgement

// ComparisonJudgement is the verdict on a comparison at one look (an early judgement).
type ComparisonJudgement struct {
	// More means that the result is inconclusive, and that more rounds may decide it.
	More    bool
	Outcome string
}
