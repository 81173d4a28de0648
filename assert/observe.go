package assert

import (
	"math"
	"slices"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// observations of one metric, block by block. What is missing counts as worse
// than every value: failed requests, completed ones without the metric, and
// lost ones. (Of a metric of gaps: one gap each.)
type observations struct {
	def     metric.Def
	values  [][]float64
	missing []int
	failed  int // requests that failed or were lost, of the missing
}

// observe reads a PerRequest or PerGap metric. A value that is negative, NaN
// or infinite comes from a broken clock or record and counts as missing.
func (e evidence) observe(def metric.Def) observations {
	o := observations{def: def, values: make([][]float64, len(e.blocks)), missing: make([]int, len(e.blocks))}
	for i, b := range e.blocks {
		o.missing[i] = b.lost
		o.failed += b.lost
		for _, s := range b.samples {
			if !s.Completed() {
				o.failed++
				o.missing[i]++
			}
			if def.Scope == metric.PerGap {
				for _, g := range s.Gaps {
					o.values[i] = append(o.values[i], float64(g)/1e6)
				}
				if s.Completed() && len(s.Gaps) == 0 {
					o.missing[i]++
				}
				continue
			}
			if !s.Completed() {
				continue
			}
			if v, ok := s.Value(def.Name); ok && v >= 0 && !math.IsInf(v, 0) {
				o.values[i] = append(o.values[i], v)
			} else {
				o.missing[i]++
			}
		}
	}
	return o
}

// all pools the blocks; worst ranks on the side that the operator excludes.
func (o observations) all(op plan.Op) metric.Distribution {
	better := metric.LowerIsBetter
	if sample.Upward(op) {
		better = metric.HigherIsBetter
	}
	worst := 0
	for _, m := range o.missing {
		worst += m
	}
	return metric.NewDistribution(slices.Concat(o.values...), worst, better)
}

// over counts, block by block, the observations that do not meet the bound,
// the missing ones included.
func (o observations) over(op plan.Op, limit float64) (groups []stat.Group, over, total int) {
	groups = make([]stat.Group, len(o.values))
	for i, block := range o.values {
		k := o.missing[i]
		for _, v := range block {
			if !sample.Meets(v, op, limit) {
				k++
			}
		}
		n := len(block) + o.missing[i]
		groups[i] = stat.Group{K: float64(k), N: float64(n)}
		over, total = over+k, total+n
	}
	return groups, over, total
}

// means are the means of the blocks that have values.
func (o observations) means() []float64 {
	var out []float64
	for _, block := range o.values {
		if len(block) > 0 {
			m, _ := stat.Moments(block)
			out = append(out, m)
		}
	}
	return out
}
