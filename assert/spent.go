package assert

import (
	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// errorAt returns the allowed error of the last of the looks. The looks at a level share the error
// alpha.
func errorAt(alpha float64, looks []metric.Look) float64 {
	last := looks[len(looks)-1]
	if last.Spent == 0 {
		return stat.SplitAlpha(alpha, last.Planned)
	}
	var at []int
	var spent []float64
	for _, l := range looks {
		if l.Spent > 0 {
			at, spent = append(at, l.Requests), append(spent, l.Spent)
		}
	}
	allowed := stat.Spend(at, spent, alpha)
	if allowed == nil { // the looks have no shares of the error, so divide it evenly
		return stat.SplitAlpha(alpha, len(looks))
	}
	return allowed[len(allowed)-1]
}

// errorAtLast returns the allowed error of the last of the planned looks. A look is a judgement of
// a level that still runs.
func errorAtLast(alpha float64, looks []plan.Look) float64 {
	held := make([]metric.Look, len(looks))
	for i, at := range looks {
		held[i] = metric.Look{Requests: at.Requests, Planned: at.Planned, Spent: at.Spent}
	}
	return errorAt(alpha, held)
}
