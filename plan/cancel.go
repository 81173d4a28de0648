package plan

import (
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/metric"
)

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
