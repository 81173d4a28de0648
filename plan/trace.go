package plan

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/tokgate/tokgate/traffic"
)

// Replays returns the first trace that w replays, or nil if it replays none.
func (w *Workload) Replays() *traffic.Replay {
	for _, l := range w.Loads {
		if l.Open != nil && l.Open.Trace != nil {
			return l.Open.Trace
		}
	}
	if c := w.Capacity; c != nil && c.Load != nil && c.Load.Open != nil {
		return c.Load.Open.Trace
	}
	return nil
}

// TooLong describes a request that exceeds the context and must not be cut: the first one in w's
// traces. It returns "" if there is none. The parameter context is in tokens; 0 means unknown.
func (w *Workload) TooLong(context int) string {
	for _, l := range w.Loads {
		if l.Open == nil || l.Open.Trace == nil {
			continue
		}
		if row := l.Open.Trace.TooLong(context); row != nil {
			return fmt.Sprintf("the row %s:%d has %d prompt tokens and %d answer tokens, more than the context of %d tokens; to shorten such requests, set truncate = true",
				l.Open.Trace.Path, row.Line, row.Input, row.Output, context)
		}
	}
	return ""
}

// TraceTitle describes the replayed stretch of a trace, such as "conversation.jsonl (mooncake), 10m
// to 20m, 1200 requests".
func TraceTitle(r *traffic.Replay) string {
	s := fmt.Sprintf("%s (%s)", filepath.Base(r.Path), r.Format)
	if r.From > 0 || r.To > 0 {
		s += ", " + PlainDuration(r.From) + " to " + PlainDuration((r.From + r.Length()).Round(time.Second))
	}
	s += fmt.Sprintf(", %d requests", r.Due)
	if r.Spread > 0 {
		s += ", each sent within " + PlainDuration(r.Spread) + " after its time"
	}
	return s
}
