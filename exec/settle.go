package exec

import (
	"fmt"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
)

// settle computes the results of the round from its samples.
func (rd *round) settle() {
	out, n, found := rd.out, 0, false
	for _, s := range out.Samples {
		if s.Phase != metric.Measured {
			continue
		}
		if !found || s.Scheduled < out.Start {
			out.Start, found = s.Scheduled, true
		}
		out.End = max(out.End, s.End)
		if s.Failure == nil || s.Failure.Kind != metric.FailCanceled {
			n++
		}
	}
	var w load.Window
	switch {
	case rd.saturates > 0:
		w = rd.saturated
	case rd.Load.Kind == metric.Burst:
		w = load.BurstWindow(out.Samples, out.Due)
	case rd.window != nil:
		w = rd.window.span()
	default:
		w = load.ClosedWindow(out.Samples, rd.level.N, rd.Load.Pause)
	}
	out.WindowStart, out.WindowEnd, out.Busy = w.Start, w.End, w.Busy
	if out.Stopped == "" && (rd.stopped != "" || rd.err != nil) && (n < out.Due || rd.timer != nil) {
		out.Stopped = rd.why()
	}
	out.Complete = out.Stopped == "" && n == out.Due && rd.timer == nil
	if !out.Complete && out.Stopped == "" {
		out.Stopped = fmt.Sprintf("%d of %d requests were sent and ended", n, out.Due)
	}
}
