package exec

import (
	"slices"
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// burst runs one burst of requests after its warm-up. With warmup "auto", only the first has one.
func (rd *round) burst(health *func() metric.Health) {
	warmup := rd.Load.Warmup
	if warmup == plan.WarmupAuto {
		warmup = 0
		if rd.out.Index == 0 {
			warmup = rd.level.N
		}
	}
	rd.warmUp(0, warmup)
	rd.prepare(metric.Measured, 0, rd.out.Due)
	rd.connect(rd.out.Due)
	if rd.check() && !rd.halted() {
		rd.watch(health)
		rd.look()
		rd.read()
		rd.sendTogether(metric.Measured, 0, rd.out.Due)
	}
}

// warmUp sends n warm-up requests at once, numbered from the given number, and waits until they
// end. If all of them fail, it sends n more, up to load.ColdFailures requests in total.
func (rd *round) warmUp(from, n int) {
	for ; n > 0 && !rd.halted(); from += n {
		rd.prepare(metric.Warmup, from, n)
		rd.sendTogether(metric.Warmup, from, n)
		if rd.proven || rd.halted() || slices.ContainsFunc(rd.out.Samples, (*metric.Sample).Completed) {
			break
		}
		if from+n >= load.ColdFailures(rd.level.N) {
			rd.cut(nothingCompletes + rd.lastWarmup)
			break
		}
		rd.pause(load.Backoff)
	}
}

// pause lets time pass.
func (rd *round) pause(d time.Duration) {
	over := false
	stop := rd.Clock.Timer(rd.Clock.Now()+d, func() { over = true })
	defer stop()
	rd.runUntil(func() bool { return over || rd.halted() })
}

// sendTogether sends n requests at once, numbered from the given number, and waits until they end.
func (rd *round) sendTogether(phase metric.Phase, from, n int) {
	at := rd.Clock.Now()
	for i := range n {
		if rd.check(); rd.halted() {
			break
		}
		rd.send(load.Turn{Slot: i, Phase: phase, Order: from + i}, at)
	}
	rd.runUntil(func() bool {
		// If the round was halted, its open requests are awaited later, in the drain.
		return len(rd.flights) == 0 || rd.halted()
	})
}
