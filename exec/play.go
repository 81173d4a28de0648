package exec

import (
	"fmt"
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// play runs the round to its end, or until it is cut short.
func (rd *round) play() {
	rd.flights = map[*flight]struct{}{}
	rd.proven = slices.ContainsFunc(rd.level.Rounds, func(r *metric.Round) bool {
		return slices.ContainsFunc(r.Samples, (*metric.Sample).Completed)
	})
	for _, r := range rd.level.Rounds {
		rd.wasted += len(r.MeasuredSamples())
	}
	health := func() metric.Health { return metric.Health{CPU: -1} }
	switch {
	case rd.saturates > 0:
		rd.saturate(&health)
	case rd.Load.Kind == metric.Burst:
		rd.burst(&health)
	case rd.Load.Kind == metric.Users:
		rd.people(&health)
	case rd.Load.Kind == metric.OpenLoop:
		rd.open(&health)
	default:
		rd.closed(&health)
	}
	rd.read()
	rd.drain()
	rd.out.Health = health()
	rd.settle()
	rd.endTelemetry()
	if same := rd.target.Same; same != nil && rd.lost == nil && rd.check() {
		rd.lost = same(rd.starting)
	}
}

// drain waits for the measured requests in flight, at most for the drain time-out. It cancels all
// others at once. If the round was stopped, it cancels the measured requests too.
func (rd *round) drain() {
	for _, f := range rd.inFlight() {
		if f.turn.Phase != metric.Measured || rd.out.Stopped != "" {
			f.cancel()
		}
	}
	if rd.out.Stopped == "" {
		rd.runUntil(func() bool { return rd.judged == 0 || rd.flying.Err() != nil || rd.lost != nil })
		for _, f := range rd.inFlight() {
			f.cancel()
		}
	}
	waited := false
	stop := rd.Clock.Timer(rd.Clock.Now()+abandon, func() { waited = true })
	rd.runUntil(func() bool { return len(rd.flights) == 0 || waited })
	stop()
	for _, f := range rd.inFlight() {
		// Record a new sample, because the transport may still write to the sample of this request.
		s := rd.sample(f)
		s.End = rd.Clock.Now()
		s.Failure = &metric.Failure{
			Kind:    metric.FailCanceled,
			Message: fmt.Sprintf("cancelled, and had not ended %v later", abandon),
		}
		rd.finish(f, s)
	}
}

// abandon is how long a cancelled request may take to end.
const abandon = 10 * time.Second
