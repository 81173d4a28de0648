package exec

import (
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// closed runs a round of a closed loop by the rules of package load.
func (rd *round) closed(health *func() metric.Health) {
	c := closedRound(rd.Case, rd.out.Due, rd.durations[rd.Workload])
	if rd.Load.Stagger == plan.StaggerAuto && c.Stagger == 0 && c.Slots > 1 && c.Warmup > 0 {
		// The stagger depends on the duration of a request. It is not known yet, so measure one
		// request first.
		c.Probes = 1
		if !c.Fill {
			c.Warmup--
		}
		rd.sendTogether(metric.Warmup, 0, 1)
		if d, ok := load.Duration(rd.out.Samples, metric.Warmup); ok {
			c.Stagger = load.Stagger(d, c.Pause, c.Slots)
		}
	}
	if rest := c.Warmup % c.Slots; !c.Fill && rest > 0 {
		// Finish the warm-up first. Otherwise some slots would send warm-up requests while other
		// slots send measured requests.
		rd.warmUp(c.Probes, rest)
		c.Probes, c.Warmup = c.Probes+rest, c.Warmup-rest
	}
	c.Proven = rd.proven
	rd.prepare(metric.Warmup, c.Probes, c.Warmup)
	rd.prepare(metric.Measured, 0, c.Requests(rd.durations[rd.Workload]))
	rd.prepare(metric.Filler, 0, c.Slots)
	rd.connect(c.AtOnce())
	if !rd.check() || rd.halted() {
		return
	}
	rd.watch(health)
	rd.look()
	rd.loop = c.Begin()
	begin := rd.Clock.Now()
	stops := make([]func() bool, c.Slots)
	for slot := range stops {
		at := begin + c.First(slot)
		stops[slot] = rd.Clock.Timer(at, func() { rd.next(slot, at) })
	}
	rd.ended = func(f *flight) {
		slot, at := f.turn.Slot, f.sample.End+max(rd.loop.Ended(f.turn, !f.sample.Completed()), f.sample.RetryAfter)
		if rd.loop.Doomed() {
			rd.cut(nothingCompletes + rd.lastWarmup)
			return
		}
		if at <= rd.Clock.Now() {
			rd.next(slot, at) // send at once: a slot that waits for a timer would be idle
		} else {
			stops[slot] = rd.Clock.Timer(at, func() { rd.next(slot, at) })
		}
		rd.ask()
	}
	rd.runUntil(func() bool { return rd.loop.Over() || rd.halted() })
	rd.ended = nil
	if rd.timer != nil { // the round stopped before the end of its time
		rd.timer()
		rd.close()
	}
	for _, stop := range stops {
		stop()
	}
}

// close ends the part of a round in which measured requests are sent. Only a load with a duration
// needs it.
func (rd *round) close() {
	rd.loop.Close()
	rd.sent[[2]string{rd.level.Server, rd.level.Workload}] += rd.loop.Due() - rd.out.Due
	rd.out.Due = rd.loop.Due()
}

// next makes a slot do its next step, such as sending a request. at is the time at which the step
// was due.
func (rd *round) next(slot int, at time.Duration) {
	if rd.halted() {
		return
	}
	turn, decision := rd.loop.Next(slot)
	switch decision {
	case load.Send:
		rd.send(turn, at)
		rd.ask()
	case load.Hold:
		rd.held = append(rd.held, slot)
	}
}

// ask continues the slots that were waiting.
func (rd *round) ask() {
	held := rd.held
	rd.held = nil
	for _, slot := range held {
		rd.next(slot, rd.Clock.Now())
	}
}
