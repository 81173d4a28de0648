package shape

import (
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
)

var rates = &Kind{
	New: func(e Env) Shape {
		return newWindow(e, &schedule{env: &e, of: e.open()})
	},
	Windowed: true,
	Takes: func(c Case, due []int, _ time.Duration) time.Duration {
		sum := time.Duration(0)
		for _, n := range due {
			sum += time.Duration(float64(n) / c.Level.Rate * float64(time.Second))
		}
		return sum
	},
	Requests: planned,
}

// open describes the arrivals of one rate.
func (e *Env) open() load.Open {
	return load.Open{
		Rate: e.Case.Level.Rate, Shape: e.Load.Open.Shape(), Due: e.due(),
		Seed: e.Arrivals, Workload: e.Workload.Address(), Level: e.Level, Round: e.Index,
	}
}

// schedule draws arrivals at a rate, or in stages.
type schedule struct {
	env *Env
	of  load.Open
	*load.Schedule
}

func (s *schedule) first() float64 {
	if len(s.of.Stages) > 0 {
		return s.of.Stages[0].From
	}
	return s.of.Rate
}

func (s *schedule) begin(now time.Duration) { s.Schedule = s.of.Begin(now) }

func (s *schedule) has(phase metric.Phase) int {
	if phase == metric.Measured {
		return s.of.Due
	}
	return warmupPrompts
}

func (s *schedule) next() (load.Turn, time.Duration, bool) {
	t, at := s.Schedule.Next()
	return t, at, true
}

func (s *schedule) cold() bool { return s.env.Load.Open.Warmup == 0 }

func (s *schedule) measures() time.Duration { return s.Warm() }

func (s *schedule) warmed(load.Turn) (over, known bool) { return false, false }

func (s *schedule) waits(load.Turn) bool { return false }

func (s *schedule) ended(load.Turn, time.Duration, func(load.Turn, time.Duration)) {}
