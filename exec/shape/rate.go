package shape

import (
	"math"
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
)

var rates = &Kind{
	New:      func(e Env) Shape { return newSchedule(e, nil) },
	Windowed: true,
	Takes: func(c Case, due int, _ time.Duration) time.Duration {
		return time.Duration(float64(due) / c.Level.Rate * float64(time.Second))
	},
}

// schedule draws arrivals at a rate, or in stages.
type schedule struct {
	of   load.Open
	cold bool // there is no warm-up
	*load.Schedule
}

func newSchedule(e Env, stages []load.Stage) Shape {
	return newWindow(e, &schedule{cold: e.Load.Open.Warmup == 0, of: load.Open{
		Rate: e.Case.Level.Rate, Shape: e.Load.Open.Shape(), Due: e.due(), Stages: stages,
		Seed: e.Arrivals, Workload: e.Workload.Address(), Level: e.Level, Round: e.Index,
	}})
}

func (s *schedule) first() float64 {
	if len(s.of.Stages) > 0 {
		return s.of.Stages[0].From
	}
	return s.of.Rate
}

func (s *schedule) begin(now time.Duration) { s.Schedule = s.of.Begin(now) }

func (s *schedule) has(phase metric.Phase) int {
	switch {
	case phase == metric.Measured:
		return s.of.Due
	case phase == metric.Warmup && s.cold:
		return 0
	}
	return math.MaxInt
}

func (s *schedule) next() (load.Ticket, time.Duration, bool) {
	t, at := s.Schedule.Next()
	return t, at, true
}

func (s *schedule) measures() time.Duration { return s.Warm() }
