package plan

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/metric"
)

// Accept is an accept block: a bound that holds for a while in place of the plan's own.
type Accept struct {
	metric.Accept
	Lapsed string // why it does not count in this run; "" if it does
	Range  hcl.Range
}
