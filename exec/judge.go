package exec

import (
	"github.com/tokgate/tokgate/exec/clock"
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

// Judgement is the verdict on a level at one look.
type Judgement = search.Judgement

// judge judges a level. The load of the level may go on meanwhile, so judging must not hold the
// loop.
func (r *runner) judge(w *plan.Workload, l *metric.Level, look Look) (j Judgement) {
	clock.Aside(r.Clock, func() { j = r.Judge(w, l, look) })
	return j
}

// JudgeComparison is a function that judges a comparison at a look. The argument run holds the rounds
// that both servers have completed, and says which look this is. stop means that the comparison is
// decided, or that no further round is worth its cost.
type JudgeComparison func(c *plan.Compare, run *metric.Run) (outcome metric.Outcome, stop bool)
