package exec

import (
	"time"

	"github.com/tokgate/tokgate/metric"
)

// The server's own metrics are read at the start and the end of the measured window. So differences
// of counters belong to the window. Gauges are also read at intervals within the window. Reading
// must never delay the load.

// edge limits how long a round waits for the last reading at its end.
const edge = time.Second

// look starts to read the server's own metrics.
func (rd *round) look() {
	if rd.target.Inside != nil {
		rd.inside = rd.target.Inside.Begin(rd.flying)
	}
}

// opens takes a reading when the window of a closed loop begins. It begins when all slots have
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
	rd.until(func() bool { return late || !rd.inside.Busy() })
}

// told ends the telemetry of the round, and keeps the part of the measured window.
func (rd *round) told() {
	if rd.inside == nil {
		return
	}
	rd.inside.End()
	rd.out.Telemetry = rd.toldOver(rd.out.WindowStart, rd.out.WindowEnd)
}

// toldOver returns the server's metrics between two times in the round.
func (rd *round) toldOver(from, to time.Duration) *metric.Telemetry {
	t := rd.inside.Over(from, to)
	for name, why := range t.Missing {
		t.Missing[name] = rd.secrets.Text(why)
	}
	for name, g := range t.Gauges {
		g.Why = rd.secrets.Text(g.Why)
		t.Gauges[name] = g
	}
	return t
}
