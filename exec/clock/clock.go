// Package clock is where time comes from. Everything in exec that waits does
// so on a Clock, so that the same code runs in real time, under
// testing/synctest, and in the virtual time of --simulate, where neither a
// goroutine nor a socket takes part.
//
// A Clock is an event queue with one consumer: the loop that owns it calls
// Wait again and again, and Wait runs what is due. So the code it runs needs
// no locks, and a virtual clock can jump to the next event.
package clock

import (
	"context"
	"time"
)

// Clock runs timers and posted functions, one at a time, from Wait.
type Clock interface {
	// Now is the monotonic time since the clock's origin. Safe from any
	// goroutine.
	Now() time.Duration
	// Timer has f run from Wait, not before t; a t in the past is due at once.
	// stop reports whether it prevented f from running. Only from the loop.
	Timer(t time.Duration, f func()) (stop func() bool)
	// Post has f run from Wait as soon as possible, in the order of posting.
	// Safe from any goroutine; never blocks.
	Post(f func())
	// Wait runs the next posted function or due timer, waiting for one. It
	// returns ctx's error when ctx ends first, and ErrIdle when the clock is
	// virtual and nothing can ever become due.
	Wait(ctx context.Context) error
}
