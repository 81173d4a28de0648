package clock

import (
	"context"
	"sync"
	"time"
)

// Real is the monotonic wall clock. In a synctest bubble it follows the bubble's time. Outside of
// cmd, no other type reads the time.
type Real struct {
	origin time.Time
	wake   chan struct{} // holds a value if a function was posted

	mu    sync.Mutex
	queue queue

	alarm *alarm        // wakes the loop; if nil, timers of the runtime wake it
	armed time.Duration // time at which the alarm goes off
}

// NewReal returns a clock whose origin is now.
func NewReal() *Real { return &Real{origin: time.Now(), wake: make(chan struct{}, 1)} }

// NewRealSince returns a clock whose origin was the given wall time.
func NewRealSince(origin time.Time) *Real {
	c := NewReal()
	c.origin = c.origin.Add(-time.Since(origin)) // keeps the monotonic reading
	return c
}

// Sharpen makes timers precise to about 10 µs until stop is called, if the system has such timers.
// Call it only before the first Wait.
func (c *Real) Sharpen() (stop func()) {
	a, err := newAlarm(c.rouse)
	if err != nil {
		return func() {}
	}
	c.alarm = a
	return a.close
}

func (c *Real) rouse() {
	select {
	case c.wake <- struct{}{}:
	default: // the channel already has a value, which wakes Wait
	}
}

// Origin is the wall time of the clock's zero.
func (c *Real) Origin() time.Time { return c.origin }

// Now implements Clock.
func (c *Real) Now() time.Duration { return time.Since(c.origin) }

// Timer implements Clock.
func (c *Real) Timer(t time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.queue.add(t, f)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.queue.drop(e)
	}
}

// Post implements Clock. The posted function is due now. Timers with an earlier time run before it.
func (c *Real) Post(f func()) {
	c.mu.Lock()
	c.queue.add(c.Now(), f)
	c.mu.Unlock()
	c.rouse()
}

// Wait implements Clock.
func (c *Real) Wait(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.mu.Lock()
		e, due := c.queue.next(c.Now())
		at, any := c.queue.first()
		c.mu.Unlock()
		if due {
			e.f()
			return nil
		}
		var timer *time.Timer
		var fired <-chan time.Time
		if any && !c.arm(at) {
			timer = time.NewTimer(at - c.Now())
			fired = timer.C
		}
		select {
		case <-ctx.Done():
		case <-c.wake:
		case <-fired:
		}
		if timer != nil {
			timer.Stop()
		}
	}
}

func (c *Real) arm(at time.Duration) bool {
	if c.alarm == nil {
		return false
	}
	if c.armed == at {
		return true
	}
	if c.alarm.set(at-c.Now()) != nil {
		c.alarm = nil
		return false
	}
	c.armed = at
	return true
}
