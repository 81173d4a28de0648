package plan

import (
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/traffic"
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
	return fmt.Sprintf("%s after %s", metric.Format(metric.Ratio, c.Share), PlainDuration(c.After))
}

// Leaving returns how many clients leave for each request that stays.
func (w *Workload) Leaving() float64 {
	if w.Mix != nil {
		sum := 0.0
		for _, part := range w.Mix {
			sum += part.share() * part.Leaving()
		}
		return sum
	}
	if w.Cancel == nil {
		return 0
	}
	return w.Cancel.Share / (1 - w.Cancel.Share)
}

// LeavingShares returns the shares of a mix's parts in the clients that leave.
func (w *Workload) LeavingShares() traffic.Shares {
	out, left, last := make(traffic.Shares, len(w.Mix)), traffic.Whole, -1
	for i, part := range w.Mix {
		out[i] = int(traffic.Whole * part.share() * part.Leaving() / w.Leaving())
		if left -= out[i]; out[i] > 0 {
			last = i
		}
	}
	out[last] += left // of rounding down
	return out
}

// UpTo returns the share of answers with at most n tokens. It is 0 if answers end by themselves.
func (o Output) UpTo(n int) float64 {
	least, most := float64(o.Mean)*(1-o.Jitter), float64(o.Mean)*(1+o.Jitter)
	switch {
	case o.Natural || float64(n) < least:
		return 0
	case most == least:
		return 1
	}
	return min((float64(n)-least)/(most-least), 1)
}
