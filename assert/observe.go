package assert

import (
	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// observations of one metric, block by block. What is missing counts as worse
// than every value: failed requests, completed ones without the metric, and
// lost ones. (Of a metric of gaps: one gap each.) Answers of one chunk are left out
// of a metric of the stream.
type observations struct {
	def    metric.Def
	blocks []metric.Distribution
	failed int // requests that failed or were lost, of the missing
}

// observe reads a PerRequest or PerGap metric.
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
				d.Worst++ // nobody knows what would have become of it
			}
		}
		o.blocks[i] = d
	}
	return o
}

// all pools the blocks; worst ranks on the side that the operator excludes.
func (o observations) all(op plan.Op) metric.Distribution {
	better := metric.LowerIsBetter
	if sample.Upward(op) {
		better = metric.HigherIsBetter
	}
	all := metric.Distribution{Values: o.def.Pool(o.values()), Better: better}
	for _, d := range o.blocks {
		all.Worst += d.Worst
		all.LeftOut += d.LeftOut
		all.Tokens += d.Tokens
		all.Seconds += d.Seconds
	}
	return all
}

// values are those of each block.
func (o observations) values() [][]float64 {
	out := make([][]float64, len(o.blocks))
	for i, d := range o.blocks {
		out[i] = d.Values
	}
	return out
}

// over counts, block by block, the observations that do not meet the bound,
// the missing ones included.
func (o observations) over(op plan.Op, limit float64) (groups []stat.Group, over, total int) {
	groups = make([]stat.Group, len(o.blocks))
	for i, d := range o.blocks {
		k := d.Worst
		for _, v := range d.Values {
			if !sample.Meets(v, op, limit) {
				k++
			}
		}
		groups[i] = stat.Group{K: float64(k), N: float64(d.N())}
		over, total = over+k, total+d.N()
	}
	return groups, over, total
}

// means are the means of the blocks that have values; of a pooled metric, which is
// tokens / seconds, their reciprocals: blocks of as many tokens have the level's as
// their mean.
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
