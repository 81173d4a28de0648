package assert

import (
	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// errorAt returns the allowed error of the last look.
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
	if allowed == nil { // no look has its own share of the error
		return stat.SplitAlpha(alpha, len(looks))
	}
	return allowed[len(allowed)-1]
}

// errorAtLast returns the allowed error of the last planned look.
func errorAtLast(alpha float64, looks []plan.Look) float64 {
	held := make([]metric.Look, len(looks))
	for i, at := range looks {
		held[i] = metric.Look{Requests: at.Requests, Planned: at.Planned, Spent: at.Spent}
	}
	return errorAt(alpha, held)
}
