package assert

import (
	"fmt"

	"github.com/tokgate/tokgate/answers"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Reread examines the recorded answers again, by the current requirements of the plan p. It checks
// whether the answers are right, and whether their form is valid. If the text of an answer was not
// recorded, the run's own result stays, and a note on the level says so.
func Reread(p *plan.Plan, run *metric.Run) {
	for _, w := range p.Workloads {
		asks := map[row]*answers.Ask{}
		for _, l := range run.Levels {
			if l != nil && l.Workload == w.Address() && l.Natural {
				reread(p, w, l, asks)
			}
		}
	}
}

// row is a row of the data set of a workload.
type row struct {
	of    *plan.Workload
	index int
}

func reread(p *plan.Plan, w *plan.Workload, l *metric.Level, asks map[row]*answers.Ask) {
	left, all := 0, 0
	for _, r := range l.Rounds {
		for _, s := range r.All() {
			w := w.Owner(s)
			if s.Answer == nil || !w.Output.Natural || p.Stores(w) == plan.StoreNone {
				continue
			}
			if all++; s.Said == nil || s.Said.Hash != "" {
				left++
				continue
			}
			at := row{w, s.Row}
			ask := asks[at]
			if ask == nil {
				ask, _ = w.Ask(s.Row) // an unreadable row was already reported by the run
				asks[at] = ask
			}
			found := w.Found(ask, *s.Said, s.Row)
			s.Answer = &found
		}
	}
	if left > 0 {
		l.Notes = append(l.Notes, fmt.Sprintf("the text of %d of %d answers was not kept, so these answers keep their scores from the run, even if the plan now scores differently", left, all))
	}
}
