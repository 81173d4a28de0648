package exec

import (
	"time"

	"github.com/tokgate/tokgate/metric"
)

// A round reads the server's own metrics at the start and the end of its measured window. The
// differences of counters then belong to the window. Gauges are also read within the window.
// Reading must never delay the load.

// edge is the longest time for which a round waits for a reading of the server's metrics.
const edge = time.Second

// look starts to read the metrics that the target itself reports, if it reports any.
func (rd *round) look() {
	if rd.target.Inside != nil {
		rd.inside = rd.target.Inside.Begin(rd.flying)
	}
}

// opens reads the server's metrics when the window of a closed loop begins: when all slots have
// started and a measured request was sent.
func (rd *round) opens(slot int, phase metric.Phase) {
	if rd.inside == nil || rd.opened || rd.loop == nil {
		return
	}
	if rd.slots == nil {
		rd.slots = map[int]bool{}
	}
	rd.slots[slot] = true
	rd.begun = rd.begun || phase == metric.Measured
	if rd.begun && len(rd.slots) >= rd.level.N {
		rd.opened = true
		rd.inside.Read()
	}
}

// read starts a reading of the server's metrics, and waits for it briefly.
func (rd *round) read() {
	if rd.inside == nil || rd.halted() {
		return
	}
	late := false
	rd.inside.Read()
	stop := rd.Clock.Timer(rd.Clock.Now()+edge, func() { late = true })
	defer stop()
	rd.runUntil(func() bool { return late || !rd.inside.Busy() })
}

// endTelemetry ends the reading of the server's metrics, and keeps those of the measured window.
func (rd *round) endTelemetry() {
	if rd.inside == nil {
		return
	}
	rd.inside.End()
	from, to := rd.out.WindowStart, rd.out.WindowEnd
	rd.out.Telemetry = rd.toldOver(from, to, from, to)
}

// toldOver returns the server's metrics from one time to another. This is a part of the window that
// lasts from begin to end, or the whole window.
func (rd *round) toldOver(from, to, begin, end time.Duration) *metric.Telemetry {
	t := rd.inside.Part(from, to, begin, end)
	for name, why := range t.Missing {
		t.Missing[name] = rd.secrets.Text(why)
	}
	for name, g := range t.Gauges {
		g.Why = rd.secrets.Text(g.Why)
		t.Gauges[name] = g
	}
	return t
}
