package exec

import (
	"fmt"
	"time"

	"github.com/tokgate/tokgate/exec/shape"
	"github.com/tokgate/tokgate/metric"
)

// units returns what was measured so far as rounds of the level, one for each unit.
func (rd *round) units() []*metric.Round {
	units := rd.shape.Units(rd.Clock.Now(), rd.out.Samples)
	var out []*metric.Round
	for i, u := range units {
		r := rd.unit(i, u)
		r.Health = rd.health.of(i, len(units))
		if rd.inside != nil {
			from, to := units[0].Start, units[len(units)-1].End
			if rd.stages != nil { // each unit is a level of its own
				from, to = u.Start, u.End
			}
			r.Telemetry = rd.toldOver(u.Start, u.End, from, to)
		}
		out = append(out, r)
	}
	return out
}

// unit returns a unit as a round, without what was observed beside the requests.
func (rd *round) unit(i int, u shape.Unit) *metric.Round {
	r := *rd.out
	r.Due, r.WindowStart, r.WindowEnd, r.Busy, r.Samples = u.Due, u.Start, u.End, u.Busy, nil
	if rd.stages == nil {
		r.Index += i
	}
	if u.Time > 0 {
		r.Time = u.Time
	}
	for _, s := range rd.out.Samples {
		if s.Round == r.Index && (rd.stages == nil || s.Level == rd.stages[i].level.Name) {
			r.Samples = append(r.Samples, s)
		}
	}
	measured, ended := r.MeasuredSamples(), 0
	for i, s := range measured {
		if i == 0 || s.Scheduled < r.Start {
			r.Start = s.Scheduled
		}
		if r.End = max(r.End, s.End); !s.Canceled() {
			ended++
		}
	}
	if rd.level.Cut != "" {
		r.Due = len(measured)
	}
	rd.settle(&r, u, ended)
	return &r
}

// settle says whether the unit is complete, and if not, why. A unit within a window is complete when
// its own requests have ended.
func (rd *round) settle(r *metric.Round, u shape.Unit, ended int) {
	if r.Stopped == "" && (rd.stopped != "" || rd.err != nil) && (ended < r.Due || u.Open) {
		r.Stopped = rd.why()
	}
	r.Complete = ended == r.Due && !u.Open && (r.Stopped == "" || shape.Of(rd.Case).Windowed)
	switch {
	case r.Complete:
		r.Stopped = ""
	case r.Stopped == "":
		r.Stopped = fmt.Sprintf("%d of %d requests were sent and ended", ended, r.Due)
	}
}

// healths is the generator's own health, unit by unit.
type healths struct {
	now   func() metric.Health // ends the observation; nil if there is none
	edges int
	units []metric.Health
	rest  metric.Health // after the last edge
}

// edge ends the observation of a unit. What was observed before the first edge does not count.
func (h *healths) edge() {
	h.end()
	if h.edges++; h.edges > 1 {
		h.units = append(h.units, h.rest)
	}
}

func (h *healths) end() {
	h.rest = metric.Health{CPU: -1}
	if h.now != nil {
		h.rest = h.now()
	}
	h.now = nil
}

// of returns the health of unit i of n. What was observed after the last unit counts for it.
func (h *healths) of(i, n int) metric.Health {
	switch {
	case i == len(h.units):
		return h.rest
	case i == n-1:
		h.units[i].Drain(h.rest)
	}
	return h.units[i]
}

// watch starts to measure the generator's own health, after the prompts are made. A heartbeat of
// the loop shows when the operating system took the CPU away. After such a pause, tokgate reads all
// bytes that arrived in it at once. Answers then look late, and the next chunks look fast.
func (rd *round) watch() {
	if rd.Meter == nil {
		return
	}
	meter, stop := rd.Meter(), watchBeats(rd.Clock)
	rd.health.now = func() metric.Health {
		seen, h := stop(), meter()
		h.Stall, h.Standstills, h.Late = seen.health.Stall, seen.health.Standstills, seen.health.Late
		h.Delay = max(h.Delay, seen.delay())
		return h
	}
}

// A round reads the server's own metrics at the start and the end of its measured window. The
// differences of counters then belong to the window. Gauges are also read within the window.
// Reading must never delay the load.

// edge is the longest time for which a round waits for a reading of the server's metrics.
const edge = time.Second

func (rd *round) readInside() {
	if rd.inside != nil {
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
