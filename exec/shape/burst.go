package shape

import (
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

var bursts = &Kind{
	New:   newBurst,
	Takes: func(_ Case, _ int, each time.Duration) time.Duration { return each },
	Warmups: func(c Case) int {
		if c.Load.Warmup == plan.WarmupAuto {
			return c.Level.N // only before the first burst of the level
		}
		return max(c.Level.Rounds, 1) * c.Load.Warmup
	},
}

// burst sends all requests of a unit at once, after its warm-up. With warmup = "auto", only the
// first burst of a level has a warm-up.
type burst struct {
	Env
	single
	warm     warmup
	steps    queue // before the burst
	measured volley
	left     []Due // of clients that leave, beside it
}

func newBurst(e Env) Shape {
	n := e.Load.Warmup
	if n == plan.WarmupAuto {
		n = 0
		if e.Index == 0 {
			n = e.Case.Level.N
		}
	}
	due, leave := e.due(), newLeaving(&e)
	var left []Due
	for range due {
		for leave.stays(); leave.due(); {
			left = append(left, leave.turn(due+len(left)))
		}
	}
	return &burst{
		left: left,

		Env: e, warm: newWarmup(&e, 0, n), measured: volley{phase: metric.Measured, n: due},
		steps: queue{
			{Do: Prepare, Connections: due + len(left),
				Prompts: []Prompts{{Phase: metric.Measured, N: due}, {Phase: metric.Left, N: len(left)}}},
			{Do: Begin}, {Do: Fresh},
		},
	}
}

func (b *burst) Next(now time.Duration) Step {
	if s, ok := b.warm.next(now); ok {
		return s
	}
	if s, ok := b.steps.next(); ok {
		return s
	}
	if n := len(b.left); n > 0 && b.measured.sent == b.measured.n {
		t := b.left[0]
		b.left = b.left[1:]
		return Step{Do: Send, Due: t, At: b.measured.at}
	}
	if s, ok := b.measured.next(now); ok {
		return s
	}
	return Step{Do: Over}
}

func (b *burst) Ended(_ time.Duration, t Due, s *metric.Sample) {
	switch t.Phase {
	case metric.Measured:
		b.measured.ended++
	case metric.Warmup:
		b.warm.over(s)
	}
}

func (b *burst) Units(_ time.Duration, samples []*metric.Sample) []Unit {
	return []Unit{{Window: load.BurstWindow(samples, b.due()), Due: b.due()}}
}

// volley is a number of requests that are sent at once and awaited.
type volley struct {
	phase       metric.Phase
	from, n     int
	sent, ended int
	at          time.Duration // time of the volley
}

// next returns the next step of the volley; ok is false when all its requests have ended.
func (v *volley) next(now time.Duration) (s Step, ok bool) {
	switch {
	case v.sent < v.n:
		if v.sent == 0 {
			v.at = now
		}
		t := Due{Ticket: load.Ticket{Slot: v.sent, Phase: v.phase, Order: v.from + v.sent}}
		v.sent++
		return Step{Do: Send, Due: t, At: v.at}, true
	case v.ended < v.n:
		return Step{Do: Wait}, true
	}
	return Step{}, false
}

// warmup is a volley of warm-up requests before the load. While all of them fail, it is repeated,
// up to a number of requests.
type warmup struct {
	volley
	most    int
	proven  bool   // a request completed
	failure string // of the last failed request
	made    bool   // its prompts
	again   time.Duration
}

func newWarmup(e *Env, from, n int) warmup {
	return warmup{volley: volley{phase: metric.Warmup, from: from, n: n}, most: load.ColdFailures(e.Case.Level.N), proven: e.Proven}
}

func (w *warmup) next(now time.Duration) (s Step, ok bool) {
	if w.n == 0 {
		return Step{}, false
	}
	if !w.made {
		w.made = true
		return Step{Do: Prepare, Prompts: []Prompts{{Phase: w.phase, From: w.from, N: w.n}}}, true
	}
	if s, ok := w.volley.next(now); ok {
		return s, true
	}
	switch {
	case w.proven:
		return Step{}, false
	case w.from+w.n >= w.most:
		return giveUp(w.failure), true
	case w.again == 0:
		w.again = now + load.Backoff
	}
	if now < w.again {
		return Step{Do: Wait, At: w.again}, true
	}
	w.volley, w.made, w.again = volley{phase: w.phase, from: w.from + w.n, n: w.n}, false, 0
	return w.next(now)
}

func (w *warmup) over(s *metric.Sample) {
	w.ended++
	if s.Failure != nil {
		w.failure = s.Failure.Message
	} else {
		w.proven = true
	}
}

// giveUp ends a level of which every warm-up request failed, the last one with the given message.
func giveUp(failure string) Step {
	return Step{Do: GiveUp, Why: "every warm-up request failed: " + failure}
}
