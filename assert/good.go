package assert

import (
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Good says what a good request of the workload is: it completed and meets
// every bound of the good block. nil when the workload has none.
func Good(w *plan.Workload) func(*metric.Sample) bool { return goodOf(w) }
