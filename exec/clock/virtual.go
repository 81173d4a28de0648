package clock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ErrIdle is returned by Wait of a virtual clock if nothing is due and nothing will ever become
// due. The caller then forgot to schedule something.
var ErrIdle = errors.New("the virtual clock is idle: nothing is due, now or later")

// Virtual is a clock of discrete events. Wait jumps to the time of the next event. A run on this
// clock depends only on its inputs.
type Virtual struct {
	mu      sync.Mutex
	now     atomic.Int64
	queue   queue
	settled []*func() // functions passed to Settled; only the loop uses this list
}

// NewVirtual returns a virtual clock at zero.
func NewVirtual() *Virtual { return new(Virtual) }

// Now implements Clock.
func (c *Virtual) Now() time.Duration { return time.Duration(c.now.Load()) }

// Timer implements Clock.
func (c *Virtual) Timer(t time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.queue.add(max(t, c.Now()), f)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.queue.drop(e)
	}
}

// Post implements Clock. The function f is due at the current time.
func (c *Virtual) Post(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue.add(c.Now(), f)
}

// Settled makes Wait call f until stop is called. Wait calls f at the end of each instant, after
// everything that was due at that instant. f may post functions and set timers. Call Settled only
// from the loop.
func (c *Virtual) Settled(f func()) (stop func()) {
	p := &f
	c.settled = append(c.settled, p)
	return func() {
		c.settled = slices.DeleteFunc(c.settled, func(q *func()) bool { return p == q })
	}
}

// Wait implements Clock. It never blocks.
func (c *Virtual) Wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.run(false) {
		return nil
	}
	for _, f := range c.settled {
		(*f)()
	}
	if !c.run(true) {
		return ErrIdle
	}
	return nil
}

// run runs the next due event, and reports whether an event was due. If move is true, run first
// moves the time to the next event.
func (c *Virtual) run(move bool) bool {
	c.mu.Lock()
	if at, any := c.queue.first(); any && move {
		c.now.Store(int64(max(c.Now(), at)))
	}
	e, due := c.queue.next(c.Now())
	c.mu.Unlock()
	if due {
		e.f()
	}
	return due
}
