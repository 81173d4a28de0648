package assert

import "github.com/tokgate/tokgate/plan"

// searchOf returns the capacity search of a workload. A part of a mix has the search of its mix.
func searchOf(w *plan.Workload) *plan.Capacity {
	if w.Of != nil {
		return w.Of.Capacity
	}
	return w.Capacity
}
