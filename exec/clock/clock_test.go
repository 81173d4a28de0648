package clock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
)

// onBoth runs a test twice: on the real clock in a synctest bubble, and on the virtual clock.
// The two clocks must agree to the nanosecond.
func onBoth(t *testing.T, f func(t *testing.T, c clock.Clock)) {
	t.Run("real", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, clock.NewReal()) })
	})
	t.Run("virtual", func(t *testing.T) { f(t, clock.NewVirtual()) })
}

func TestTimersRunInOrderOfTimeThenOfMaking(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		rng := rand.New(rand.NewPCG(1, 2))
		type mark struct {
			at  time.Duration
			seq int
		}
		var want, got []mark
		for i := range 500 {
			m := mark{time.Duration(rng.IntN(40)) * time.Second, i}
			want = append(want, m)
			c.Timer(m.at, func() {
				if c.Now() != m.at {
					t.Errorf("timer for %v ran at %v", m.at, c.Now())
				}
				got = append(got, m)
			})
		}
		slices.SortStableFunc(want, func(a, b mark) int { return int(a.at - b.at) })
		for range want {
			must.Do(t, c.Wait(t.Context()))
		}
		must.Hold(t, slices.Equal(got, want), "order of running\n got %v\nwant %v", got, want)
	})
}

func TestStop(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		ran := map[string]bool{}
		mark := func(name string) func() { return func() { ran[name] = true } }
		early := c.Timer(time.Second, mark("early"))
		never := c.Timer(2*time.Second, mark("never"))
		c.Timer(3*time.Second, mark("late"))
		must.Do(t, clock.Until(t.Context(), c, func() bool { return ran["early"] }))
		must.Hold(t, !early(), "stop of a timer that ran says that it prevented it")
		must.Hold(t, never(), "stop of a pending timer says that it did not prevent it")
		must.Hold(t, !never(), "a second stop says that it prevented it")
		must.Do(t, clock.Until(t.Context(), c, func() bool { return ran["late"] }))
		must.Hold(t, !ran["never"], "a stopped timer ran")
	})
}

func TestPastTimersAndPostsAreDueAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		must.Do(t, clock.Sleep(t.Context(), c, time.Minute))
		var order []string
		say := func(s string) func() { return func() { order = append(order, s) } }
		c.Post(say("post 1"))
		c.Timer(time.Minute+1, say("after"))
		c.Post(say("post 2"))
		c.Timer(0, say("past"))
		must.Do(t, clock.Until(t.Context(), c, func() bool { return len(order) == 4 }))
		// If a timer is set for a time in the past, the two clocks run it at different moments. But
		// both run it before later timers.
		i, j := slices.Index(order, "post 1"), slices.Index(order, "post 2")
		must.Hold(t, i <= j, "posts ran out of order: %q", order)
		must.Hold(t, order[3] == "after", "the future ran before what was due: %q", order)
		if c.Now() != time.Minute+1 {
			t.Errorf("now is %v, want 1m0.000000001s", c.Now())
		}
	})
}

func TestPostFromManyGoroutines(t *testing.T) {
	const writers, each = 16, 200
	onBoth(t, func(t *testing.T, c clock.Clock) {
		next := make([]int, writers) // only the loop writes to next, as the race detector checks
		n := 0
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					c.Post(func() {
						must.Hold(t, next[w] == i, "writer %d: post %d ran when %d was due", w, i, next[w])
						next[w]++
						n++
					})
				}
			})
		}
		if _, virtual := c.(*clock.Virtual); virtual {
			wg.Wait() // wait here, because a virtual clock does not wait for other goroutines
		}
		must.Do(t, clock.Until(t.Context(), c, func() bool { return n == writers*each }))
		wg.Wait()
	})
}

func TestWaitEndsWithTheContext(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c.Post(func() { t.Error("a function ran after the end of the context") })
		err := c.Wait(ctx)
		must.Hold(t, errors.Is(err, context.Canceled), "Wait gave %v, want context.Canceled", err)
	})
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewReal()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := c.Wait(ctx)
		must.Hold(t, errors.Is(err, context.DeadlineExceeded), "Wait on nothing gave %v, want the context's error", err)
	})
}

func TestVirtualIdle(t *testing.T) {
	c := clock.NewVirtual()
	err := c.Wait(t.Context())
	must.Hold(t, err == clock.ErrIdle, "Wait with nothing due gave %v, want ErrIdle", err)
	stop := c.Timer(time.Hour, func() {})
	stop()
	if err := c.Wait(t.Context()); err != clock.ErrIdle {
		t.Errorf("Wait with a stopped timer gave %v, want ErrIdle", err)
	}
	must.Hold(t, c.Now() == 0, "an idle clock moved to %v", c.Now())
}

func TestTimersMadeByTimers(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		var ticks []time.Duration
		var tick func()
		tick = func() {
			ticks = append(ticks, c.Now())
			if len(ticks) < 4 {
				c.Timer(c.Now()+15*time.Minute, tick)
			}
		}
		c.Timer(0, tick)
		must.Do(t, clock.Until(t.Context(), c, func() bool { return len(ticks) == 4 }))
		want := []time.Duration{0, 15 * time.Minute, 30 * time.Minute, 45 * time.Minute}
		must.Hold(t, slices.Equal(ticks, want), "ticks at %v, want %v", ticks, want)
	})
}

func TestAwaitRunsTheClockMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewReal()
		ticked := false
		c.Timer(time.Second, func() { ticked = true })
		got, err := clock.Await(t.Context(), c, func(context.Context) (string, error) {
			time.Sleep(2 * time.Second)
			return "done", nil
		})
		must.Hold(t, got == "done" && err == nil && ticked, "Await gave %q, %v; timer ran: %v", got, err, ticked)
	})
}

func TestAwaitWaitsForTheEndOfWhatItStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewReal()
		ctx, cancel := clock.WithTimeout(t.Context(), c, time.Second)
		defer cancel()
		_, err := clock.Await(ctx, c, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, fmt.Errorf("gave up: %w", context.Cause(ctx))
		})
		if !errors.Is(err, context.DeadlineExceeded) || c.Now() != time.Second {
			t.Errorf("Await gave %v at %v, want the deadline at 1s", err, c.Now())
		}
	})
}

func TestWithTimeoutCancelled(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		ctx, cancel := clock.WithTimeout(t.Context(), c, time.Second)
		cancel()
		must.Do(t, clock.Sleep(t.Context(), c, 2*time.Second))
		cause := context.Cause(ctx)
		must.Hold(t, cause == context.Canceled, "cause after cancel is %v, want context.Canceled", cause)
	})
}

// The function passed to Settled runs when nothing more is due at the present instant. It may
// post further work for the same instant. Time moves on when nothing more is due.
func TestSettled(t *testing.T) {
	c := clock.NewVirtual()
	var said []string
	say := func(s string) { said = append(said, fmt.Sprintf("%v %s", c.Now(), s)) }
	again := 1
	stop := c.Settled(func() {
		say("settled")
		if c.Now() == time.Second && again > 0 {
			again--
			c.Post(func() { say("posted") })
		}
	})
	for _, name := range []string{"a", "b"} {
		c.Timer(time.Second, func() { say(name) })
	}
	c.Timer(2*time.Second, func() { say("c"); stop() })
	for {
		if err := c.Wait(t.Context()); err == clock.ErrIdle {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"0s settled", "1s a", "1s b", "1s settled", "1s posted", "1s settled", "2s c"}
	must.Hold(t, slices.Equal(said, want), "said\n got %q\nwant %q", said, want)
}
