package assert

import (
	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// subject is what the thresholds of one case are judged on.
type subject struct {
	evidence
	workload *plan.Workload
	one      *metric.Level   // concurrency 1 of the same workload and server; nil
	pairs    []*metric.Level // the same workload and level of other servers, which may have taken turns
	price    metric.Price
	policy   plan.Policy
	alpha    float64 // a side: 1 − confidence
	due      int     // requests in all, where some may be still to come; 0: none
}

// effective is the number of independent requests that the level's are worth:
// stat.Effective over its blocks, and no more than its waves where there are
// too few blocks to tell.
func (s *subject) effective(groups []stat.Group, quantities [][][]float64) float64 {
	n := stat.Effective(float64(s.n), groups, quantities, s.policy.Alpha(), s.ahead())
	if !s.sound {
		n = min(n, float64(s.waves))
	}
	return n
}

// ahead says whether requests of the level are still to come.
func (s *subject) ahead() bool { return s.due > s.n }
