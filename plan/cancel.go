package plan

import (
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/metric"
)

// Leave is what a workload says of clients that leave, and of what a server keeps of them.
type Leave struct {
	Cancel  *Cancel  `plan:"cancel"`  // nil: no client leaves
	Residue *Residue `plan:"residue"` // nil: see Residual
}

// Cancel says how many clients leave before their answer ends: tokgate closes their connections. They
// come on top of the requests that stay, so those are the same as without them.
type Cancel struct {
	Share       float64       `plan:"share"`        // of the requests that are sent, above 0, at most MostCancelled
	After       time.Duration `plan:"after"`        // of sending; 0 if AfterTokens is set
	AfterTokens int           `plan:"after_tokens"` // chunks with tokens; 0 if After is set
	Range       hcl.Range
}

// MostCancelled is the largest share of clients that leave.
const MostCancelled = 0.9

// String describes the clients that leave, such as "5% after 2s"; "" for nil.
func (c *Cancel) String() string {
	switch {
	case c == nil:
		return ""
	case c.AfterTokens > 0:
		return fmt.Sprintf("%s after %d tokens", metric.Format(metric.Ratio, c.Share), c.AfterTokens)
	}
	return fmt.Sprintf("%s after %s", metric.Format(metric.Ratio, c.Share), c.After)
}

// Residue says what a server may keep of a load: nothing, some time after its end.
type Residue struct {
	Settle   time.Duration `plan:"settle"` // how long the server may take
	Burst    bool          `plan:"burst"`  // whether to ask how many requests the server still takes
	Severity Severity      `plan:"severity"`
	Range    hcl.Range
}

// ResidueBurst is how many requests a burst sends at once, before a level and after it.
const ResidueBurst = 256

// UsualSettle is the default of Residue.Settle.
const UsualSettle = 30 * time.Second

// MustHold reports whether the residue can fail the plan.
func (r *Residue) MustHold() bool { return r.Severity == SeverityError }
