package load

import (
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Replay is one window of recorded traffic: requests are due at their recorded times.
type Replay struct {
	// At holds the time at which each request is due, in order. Times count from the beginning of
	// the window. The first Warm requests are a warm-up before the window. The next Due requests
	// are measured. The remaining requests only keep up the load.
	At        []time.Duration
	Warm, Due int
	began     time.Duration // time of the beginning of the window
	next      int
}

// Begin returns a copy of the replay. Its first request is due at the time at.
func (r Replay) Begin(at time.Duration) *Replay {
	r.began = at
	if r.Warm > 0 {
		r.began -= r.At[0]
	}
	return &r
}

// Window returns the time at which the measured window begins.
func (r *Replay) Window() time.Duration { return r.began }

// Next returns the next request and the time at which it is due. ok is false after the last
// request.
func (r *Replay) Next() (t Turn, at time.Duration, ok bool) {
	if r.next == len(r.At) {
		return Turn{}, 0, false
	}
	t, at = r.Turn(r.next), r.began+r.At[r.next]
	r.next++
	return t, at, true
}

// Turn returns the i-th request of the replay.
func (r *Replay) Turn(i int) Turn {
	switch {
	case i < r.Warm:
		return Turn{Phase: metric.Warmup, Order: i}
	case i < r.Warm+r.Due:
		return Turn{Phase: metric.Measured, Order: i - r.Warm}
	}
	return Turn{Phase: metric.Filler, Order: i - r.Warm - r.Due}
}

// Index returns a request's index in the list At; -1 if there is none. The request is given by its
// phase and its order in that phase.
func (r *Replay) Index(phase metric.Phase, order int) int {
	first, n := 0, r.Warm
	switch phase {
	case metric.Measured:
		first, n = r.Warm, r.Due
	case metric.Filler:
		first = r.Warm + r.Due
		n = len(r.At) - first
	}
	if order >= n {
		return -1
	}
	return first + order
}
