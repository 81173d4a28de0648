package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// held says on how many starts, sessions and attempts the result of a comparison rests, and what so few
// starts cannot show.
// It returns "" for a recorded control.
func (x *comparison) held() string {
	said := x.rests()
	if said != "" && x.record != nil && len(x.record.Sessions) > 0 {
		said += fmt.Sprintf(". Continued after %s of each; each session has a level of its own", verdict.Count(slices.Max(x.record.Sessions), "starts"))
	}
	if n := x.Run.Attempt; said != "" && n > 1 && !x.Planless {
		said += fmt.Sprintf(". This is attempt %d on this commit: together they are wrong in up to %s", n, percentOf(math.Min(float64(n)*x.whole, 1)))
	}
	return said
}

func (x *comparison) rests() string {
	switch n := x.out.Rounds; {
	case !x.out.Paired || n == 0:
		return ""
	case x.Block.Restart != plan.RestartLeg:
		return "This holds for these two starts; it says nothing about other starts of the servers"
	case x.slow && x.out.Outcome != verdict.Fail:
		return "The candidate is too slow to measure: its legs reached their limit of time, and no requirement certainly fails by then"
	case x.out.Stage != nil && x.out.Stage.Futile:
		return x.futile()
	default:
		out := verdict.Count(n, "starts") + " of each"
		if s := x.out.Stage; s.early() {
			out += fmt.Sprintf("; stopped early, and the bounds hold for all %d planned looks", len(s.Planned))
		}
		if x.out.Outcome == verdict.Pass {
			out += ". " + missed(n)
		}
		return out
	}
}

// missed says which slow states of a server n starts may not have shown. A state that a share q of
// all starts fall into is missed by n starts with probability (1 − q)ⁿ, which is 5 % at q = 1 −
// 0.05^(1/n).
func missed(n int) string {
	return fmt.Sprintf("A slow state that fewer than %d of 100 starts fall into may have been missed", int(100*(1-math.Pow(0.05, 1/float64(n)))))
}

// NeedsEnd is what a requirement lacks that holds by what was answered when a leg was ended.
const NeedsEnd = "needs legs that end within their limit of time"

// Overran says which legs reached their limit of time, and how they are judged.
func Overran(over []*metric.Round) string {
	due, limit := 0, time.Duration(0)
	for _, r := range over {
		due, limit = due+r.Due, max(limit, r.Limit)
	}
	return fmt.Sprintf("%s reached the limit of time (up to %s: %d times the control's longest leg, and more by what is tolerated). The %s sent by then are judged; those in flight count as if they had ended just then, so a failure is certain, and nothing passes",
		verdict.Count(len(over), "legs"), metric.Format(metric.Seconds, limit.Seconds()), metric.LegLimit, verdict.Count(due, "requests"))
}

// futile says why an undecided comparison stopped before its last look.
func (x *comparison) futile() string {
	s := x.out.Stage
	out := fmt.Sprintf("Undecided after %s of each, so it stopped: ", verdict.Count(s.Rounds, "starts"))
	more := slices.Max(s.Planned) - s.Rounds
	var worst float64
	for i := range x.out.Changes {
		row := &x.out.Changes[i]
		if drift, ok := row.delta.drift(); ok && !row.Points && row.Limit.OK && row.Outcome == verdict.Inconclusive {
			worst = max(worst, drift.Spread)
		}
	}
	if s.Hope == 0 && worst == 0 {
		return out + "more starts cannot decide " + strings.Join(s.Open, ", ")
	}
	out += fmt.Sprintf("%d more of each would decide with a chance of %s", more, percentOf(s.Hope))
	if worst > 0 {
		out += fmt.Sprintf(". Starts differ by %s", metric.FormatDigits(metric.Ratio, worst, 2))
	}
	return out
}
