package fleet

import (
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/metric"
)

// silence is how long a worker may say nothing before it counts as standing still. It beats every
// beatEach.
const (
	silence  = 3 * time.Second
	beatEach = 500 * time.Millisecond
)

// measuring is the health of the workers in one unit, which is open.
type measuring struct{ of map[*member]metric.Health }

// Meter returns a Meter of the given one, which is of the controller, and of all workers. The health
// of a worker is unknown before its first beat.
func (f *Fleet) Meter(own exec.Meter) exec.Meter {
	return func() func() metric.Health {
		end, x := own(), &measuring{of: map[*member]metric.Health{}}
		f.meters[x] = true
		return func() metric.Health {
			delete(f.meters, x)
			h := end()
			for _, m := range f.members {
				h.Join(f.healthOf(m, x))
			}
			return h
		}
	}
}

func (f *Fleet) healthOf(m *member, x *measuring) metric.Health {
	h, ok := x.of[m]
	if !ok { // the unit was shorter than the time between two beats
		h = m.beat.Health
		h.Standstills, h.Late = nil, 0
	}
	if h.Offset = m.beat.Bound; !m.beaten {
		h.CPU = -1
	}
	return h
}

// beats takes what a worker says of itself.
func (f *Fleet) beats(m *member, b Beat) {
	if b.Health.Possible() != nil || min(b.Trip, b.Bound) < 0 {
		f.lose(m, "what it said of itself is out of range")
		return
	}
	m.beat, m.beaten, m.bound = b, true, max(m.bound, b.Bound)
	f.observes(m, b.Health)
}

// observes adds the health of a worker to the units that are open.
func (f *Fleet) observes(m *member, h metric.Health) {
	for x := range f.meters {
		of, ok := x.of[m]
		if !ok {
			of = h
		} else {
			late := of.Late + h.Late
			of.Join(h)
			of.Late = late
		}
		x.of[m] = of
	}
}

// silent records that nothing came from a worker for a time. Its own heartbeats cannot show a cut of the
// network, in which its slots get no new requests.
func (f *Fleet) silent(m *member, from, to time.Duration) {
	h := metric.Health{CPU: m.beat.Health.CPU, Stall: to - from, Standstills: []metric.Standstill{{From: from, To: to}}}
	m.quiet = max(m.quiet, to-from)
	f.observes(m, h)
}
