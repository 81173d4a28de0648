package compare

import (
	"fmt"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// notedSpread is the smallest difference between the GPU clocks of the two servers that causes a
// note, as a share. It is used if the plan sets no limit on clocks.
const notedSpread = 0.03

// clocks compares the mean GPU clocks of control and candidate in each round. If the plan's
// clock_spread forbids to compare them, it returns the reason; otherwise "".
func (x *comparison) clocks(m matched) string {
	require := x.spread()
	worst, at := 0.0, 0
	for i := range min(len(m.control.Rounds), len(m.candidate.Rounds)) {
		if m.unpaired {
			break
		}
		a, b := clock(m.control.Rounds[i]), clock(m.candidate.Rounds[i])
		if a <= 0 || b <= 0 {
			if require != nil {
				return fmt.Sprintf("telemetry requires clock_spread, but the GPU clock of a leg of round %d was not reported", m.candidate.Rounds[i].Index+1)
			}
			continue
		}
		if spread := 1 - min(a, b)/max(a, b); spread > worst {
			worst, at = spread, i
		}
	}
	a, b := 0.0, 0.0
	if worst > 0 {
		a, b = clock(m.control.Rounds[at]), clock(m.candidate.Rounds[at])
	}
	words := fmt.Sprintf("the GPUs' mean clocks in the two legs of round %d differ by %s: %s on the control, %s on the candidate",
		at+1, metric.Format(metric.Ratio, worst), metric.Format(metric.Hertz, a), metric.Format(metric.Hertz, b))
	switch {
	case require != nil && !(worst < *require):
		return words + fmt.Sprintf("; telemetry requires a difference below %s", metric.Format(metric.Ratio, *require))
	case worst > notedSpread:
		x.out.Notes = append(x.out.Notes, fmt.Sprintf("%s at %s: %s", m.workload.Address(), m.level, words))
	}
	return ""
}

// spread returns the clock_spread that the control's or the candidate's server requires. If both
// servers require one, it returns the smaller value. If neither server does, it returns nil.
func (x *comparison) spread() *float64 {
	var least *float64
	for _, s := range []*plan.Server{x.Block.Control.Server, x.Block.Candidate} {
		if s == nil || s.Telemetry.Require.ClockSpread == nil {
			continue
		}
		if least == nil || *s.Telemetry.Require.ClockSpread < *least {
			least = s.Telemetry.Require.ClockSpread
		}
	}
	return least
}

// clock returns the mean clock of the slowest GPU in a round, in Hz; 0 if not known.
func clock(r *metric.Round) float64 {
	if r.Telemetry == nil {
		return 0
	}
	return r.Telemetry.Gauges["gpu_clock"].Mean
}
