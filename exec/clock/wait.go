package clock

import (
	"context"
	"time"
)

// Until runs the clock until done says so. It returns the error of Wait when
// that comes first. Only from the loop.
func Until(ctx context.Context, c Clock, done func() bool) error {
	for !done() {
		if err := c.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Shared is a clock on which several pieces of sequential code may wait by turns: while Yield is
// set, whoever waits lets the others go on, and whoever set it runs the clock.
type Shared struct {
	Clock
	Yield func() // returns when something has happened; nil: a wait runs the clock itself
}

// Wait implements Clock.
func (s *Shared) Wait(ctx context.Context) error {
	if s.Yield == nil {
		return s.Clock.Wait(ctx)
	}
	s.Yield()
	return ctx.Err()
}

// Sleep runs the clock for d. Only from the loop.
func Sleep(ctx context.Context, c Clock, d time.Duration) error {
	over := false
	stop := c.Timer(c.Now()+d, func() { over = true })
	defer stop()
	return Until(ctx, c, func() bool { return over })
}

// Await runs the clock while f works in a goroutine of its own, and returns
// what f returned: how the loop does something slow without standing still.
// f must end when the context it is given does; Await always waits for it, so
// that nothing runs on behind the caller's back. Only from the loop, and not
// on a virtual clock, which does not know that it is being waited for.
func Await[T any](ctx context.Context, c Clock, f func(context.Context) (T, error)) (T, error) {
	var value T
	var err error
	done := false
	go func() {
		v, e := f(ctx)
		c.Post(func() { value, err, done = v, e, true })
	}()
	// The end of ctx reaches f; here only f's own end counts.
	if failed := Until(context.WithoutCancel(ctx), c, func() bool { return done }); failed != nil {
		return value, failed
	}
	return value, err
}

// WithTimeout is context.WithTimeout on a clock: the context ends with
// context.DeadlineExceeded as its cause once d has passed and the loop ran.
// Call cancel, from the loop, when it is no longer needed.
func WithTimeout(ctx context.Context, c Clock, d time.Duration) (_ context.Context, cancel func()) {
	ctx, end := context.WithCancelCause(ctx)
	stop := c.Timer(c.Now()+d, func() { end(context.DeadlineExceeded) })
	return ctx, func() {
		stop()
		end(context.Canceled)
	}
}
