package report

import (
	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/metric"
)

// levelValue is the value of a level-wide metric. What a good request is, only
// the plan knows.
func (b *builder) levelValue(def metric.Def, l *metric.Level) metric.Value {
	var good func(*metric.Sample) bool
	if b.plan != nil {
		for _, w := range b.plan.Workloads {
			if w.Address() == l.Workload {
				good = assert.Good(w)
			}
		}
	} else if def.Name == "goodput" {
		return metric.None("what is good is in the plan, which is not at hand")
	}
	var one *metric.Level
	for _, x := range b.run.Levels {
		if x.Server == l.Server && x.Workload == l.Workload && x.Kind == metric.ClosedLoop && x.N == 1 {
			one = x
		}
	}
	return l.Value(def.Name, good, one)
}
