package assert

import (
	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// observations holds the values of one metric, divided into blocks. A request without a value
// counts as worse than every value.
//
// For a metric of gaps, such a request counts as one gap. For a metric of streaming, an answer in a
// single chunk does not count.
type observations struct {
	def    metric.Def
	blocks []metric.Distribution
	failed int // number of requests that failed or were lost, and so have no value
}

// observe collects the values of a metric that each request or each gap has.
func (e evidence) observe(def metric.Def) observations {
	o := observations{def: def, blocks: make([]metric.Distribution, len(e.blocks))}
	for i, b := range e.blocks {
		d := metric.Of(def, b.samples)
		d.Worst += b.lost
		o.failed += b.lost
		for _, s := range b.samples {
			if !s.Completed() {
				o.failed++
			}
			if s.Canceled() {
				d.Worst++ // a cancelled request is lost: it counts as the worst value
			}
		}
		o.blocks[i] = d
	}
	return o
}

// all returns the values of all blocks as one distribution. A missing value counts as a value that
// does not meet the threshold.
func (o observations) all(op plan.Op) metric.Distribution {
	better := metric.LowerIsBetter
	if sample.Upward(op) {
		better = metric.HigherIsBetter
	}
	all := metric.Distribution{Better: better}
	all.Values, all.Until = o.def.Pool(o.blocks)
	for _, d := range o.blocks {
		all.Worst += d.Worst
		all.LeftOut += d.LeftOut
		all.Tokens += d.Tokens
		all.Seconds += d.Seconds
	}
	return all
}

func (o observations) values() []stat.Ascending {
	out := make([]stat.Ascending, len(o.blocks))
	for i, d := range o.blocks {
		out[i] = stat.Ascending{Values: d.Values, Until: d.Until}
	}
	return out
}

// countFailing counts, for each block, the observations that do not meet the limit. Missing
// observations count too.
func (o observations) countFailing(op plan.Op, limit float64) (groups []stat.Group, over, total int) {
	groups = make([]stat.Group, len(o.blocks))
	for i, d := range o.blocks {
		k := d.Worst + sample.Beyond(d, op, limit)
		groups[i] = stat.Group{K: float64(k), N: float64(d.N())}
		over, total = over+k, total+d.N()
	}
	return groups, over, total
}

// means returns the mean of each block that has values. If the metric is pooled as tokens /
// seconds, it returns seconds / tokens. The mean of these is one over the level's value if all
// blocks have equally many tokens.
func (o observations) means() []float64 {
	var out []float64
	for _, d := range o.blocks {
		switch m, ok := d.Mean(); {
		case ok && o.def.Pooled:
			out = append(out, 1/m)
		case ok:
			out = append(out, m)
		}
	}
	return out
}
