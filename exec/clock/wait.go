package clock

import (
	"context"
	"time"
)

// Until runs the clock until done returns true. If the clock's Wait fails before that, Until
// returns its error. Call Until only from the clock's loop.
func Until(ctx context.Context, c Clock, done func() bool) error {
	for !done() {
		if err := c.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Shared is a clock for several sequences of code that take turns. If Yield is set, Wait only calls
// it to let other sequences run, and the code that set Yield runs the clock.
type Shared struct {
	Clock
	Yield func() // lets other sequences run until something happened; nil: Wait runs the clock
}

// Wait implements Clock.
func (s *Shared) Wait(ctx context.Context) error {
	if s.Yield == nil {
		return s.Clock.Wait(ctx)
	}
	s.Yield()
	return ctx.Err()
}

// Sleep runs the clock for the time d. Call it only from the clock's loop.
func Sleep(ctx context.Context, c Clock, d time.Duration) error {
	over := false
	stop := c.Timer(c.Now()+d, func() { over = true })
	defer stop()
	return Until(ctx, c, func() bool { return over })
}

// Await runs the function f in a goroutine and returns its result. The clock keeps running
// meanwhile. The function f must return when its context ends, because Await always waits for it.
//
// Call Await only from the clock's loop, and never on a virtual clock, which cannot wait for a
// goroutine.
func Await[T any](ctx context.Context, c Clock, f func(context.Context) (T, error)) (T, error) {
	var value T
	var err error
	done := false
	go func() {
		v, e := f(ctx)
		c.Post(func() { value, err, done = v, e, true })
	}()
	// Wait until f has ended. It must notice the end of ctx itself.
	if failed := Until(context.WithoutCancel(ctx), c, func() bool { return done }); failed != nil {
		return value, failed
	}
	return value, err
}

// Aside runs the function f, which needs no clock, while the clock keeps running. On a virtual clock
// f takes no time. Call Aside only from the clock's loop.
func Aside(c Clock, f func()) {
	inner := c
	if shared, ok := c.(*Shared); ok {
		inner = shared.Clock
	}
	if _, ok := inner.(*Virtual); ok {
		f()
		return
	}
	_, _ = Await(context.Background(), c, func(context.Context) (struct{}, error) {
		f()
		return struct{}{}, nil
	})
}

// WithTimeout is context.WithTimeout on a clock. When d has passed, the clock's loop ends the
// context with the cause context.DeadlineExceeded. Call cancel from the loop when the context is no
// longer needed.
func WithTimeout(ctx context.Context, c Clock, d time.Duration) (_ context.Context, cancel func()) {
	ctx, end := context.WithCancelCause(ctx)
	stop := c.Timer(c.Now()+d, func() { end(context.DeadlineExceeded) })
	return ctx, func() {
		stop()
		end(context.Canceled)
	}
}
