// Package clock provides the time. Everything in exec that waits uses a Clock. So the same code
// runs in real time, under testing/synctest, and in the virtual time of --simulate, without
// goroutines and sockets.
//
// A Clock is a queue of events with one consumer: the loop that owns it. The loop calls Wait again
// and again, and Wait runs what is due. So this code needs no locks, and a virtual clock can jump
// to the next event.
package clock

import (
	"context"
	"time"
)

// Clock runs timers and posted functions, one at a time, from Wait.
type Clock interface {
	// Now is the monotonic time since the clock's origin. It is safe from any
	// goroutine.
	Now() time.Duration
	// Timer makes Wait run f at time t, or at once if t has passed. stop cancels f, and reports
	// whether f had not run yet. Call Timer only from the loop.
	Timer(t time.Duration, f func()) (stop func() bool)
	// Post runs f from Wait as soon as possible, in the order of posting. It is safe
	// from any goroutine and never blocks.
	Post(f func())
	// Wait runs the next posted function or due timer, and waits for it if necessary. It returns
	// ctx's error if ctx ends first. On a virtual clock it returns ErrIdle if nothing can become
	// due any more.
	Wait(ctx context.Context) error
}
