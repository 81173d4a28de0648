package plan

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/metric"
)

// Op is the comparison operator of a threshold.
type Op string

const (
	Less         Op = "<"
	LessEqual    Op = "<="
	Greater      Op = ">"
	GreaterEqual Op = ">="
)

// Threshold is a bound on a statistic of a metric, such as "p95 < 8s".
type Threshold struct {
	Metric metric.Def
	Stat   metric.Stat
	Op     Op      // "" for success with the statistic "every", which has no limit
	Limit  float64 // limit in the metric's base unit
	Text   string  // the threshold as the plan's author wrote it
	Range  hcl.Range
	Accept *Accept    // sets Op, Limit and Text; nil if no accept block does
	Own    *Threshold // the threshold without Accept; nil without one
}
