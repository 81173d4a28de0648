package clock

import (
	"context"
	"time"
)

// Until runs the clock until done returns true. If Wait fails before that, Until returns its
// error. Call Until only from the loop.
func Until(ctx context.Context, c Clock, done func() bool) error {
	for !done() {
		if err := c.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Shared is a clock on which several sequences of code wait in turns. While Yield is set,
// waiting lets another sequence run, and whoever set Yield runs the clock.
type Shared struct {
	Clock
	Yield func() // returns after something has happened; if nil, waiting runs the clock itself
}

// Wait implements Clock.
func (s *Shared) Wait(ctx context.Context) error {
	if s.Yield == nil {
		return s.Clock.Wait(ctx)
	}
	s.Yield()
	return ctx.Err()
}

// Sleep runs the clock for d. Call it only from the loop.
func Sleep(ctx context.Context, c Clock, d time.Duration) error {
	over := false
	stop := c.Timer(c.Now()+d, func() { over = true })
	defer stop()
	return Until(ctx, c, func() bool { return over })
}

// Await runs the clock while f works in a goroutine, and returns the result of f. So the loop
// does not stop while something slow is done. f must end when its context ends. Await always
// waits for f, so that nothing keeps running. Call Await only from the loop, and not on a
// virtual clock, which cannot wait for a goroutine.
func Await[T any](ctx context.Context, c Clock, f func(context.Context) (T, error)) (T, error) {
	var value T
	var err error
	done := false
	go func() {
		v, e := f(ctx)
		c.Post(func() { value, err, done = v, e, true })
	}()
	// f sees the end of ctx by itself. Here wait until f has ended.
	if failed := Until(context.WithoutCancel(ctx), c, func() bool { return done }); failed != nil {
		return value, failed
	}
	return value, err
}

// WithTimeout is context.WithTimeout on a clock. The context ends with the cause
// context.DeadlineExceeded once d has passed and the loop ran. Call cancel from the
// loop when the context is no longer needed.
func WithTimeout(ctx context.Context, c Clock, d time.Duration) (_ context.Context, cancel func()) {
	ctx, end := context.WithCancelCause(ctx)
	stop := c.Timer(c.Now()+d, func() { end(context.DeadlineExceeded) })
	return ctx, func() {
		stop()
		end(context.Canceled)
	}
}
