package clock

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrIdle is what a virtual clock's Wait returns when nothing is due and
// nothing ever will be: whoever waits has forgotten to ask for something.
var ErrIdle = errors.New("the virtual clock is idle: nothing is due, now or later")

// Virtual is a clock of discrete events: Wait jumps to the next one. A run on
// it is a function of its inputs alone.
type Virtual struct {
	mu    sync.Mutex
	now   time.Duration
	queue queue
}

// NewVirtual returns a virtual clock at zero.
func NewVirtual() *Virtual { return new(Virtual) }

// Now implements Clock.
func (c *Virtual) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Timer implements Clock.
func (c *Virtual) Timer(t time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.queue.add(max(t, c.now), f)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.queue.drop(e)
	}
}

// Post implements Clock: f is due now.
func (c *Virtual) Post(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue.add(c.now, f)
}

// Wait implements Clock. It never blocks.
func (c *Virtual) Wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	at, any := c.queue.first()
	if !any {
		c.mu.Unlock()
		return ErrIdle
	}
	c.now = max(c.now, at)
	e, _ := c.queue.next(c.now)
	c.mu.Unlock()
	e.f()
	return nil
}
