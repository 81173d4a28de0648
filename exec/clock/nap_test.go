package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

// The last 1.2 ms of a wait are slept in naps of at most 100 µs, and what is posted
// meanwhile runs between two of them.
func TestNaps(t *testing.T) {
	was := nap
	defer func() { nap = was }()
	synctest.Test(t, func(t *testing.T) {
		var naps []time.Duration
		nap = func(d time.Duration) {
			naps = append(naps, d)
			time.Sleep(d)
		}
		c := NewReal()
		var fired, posted time.Duration
		c.Timer(5*time.Millisecond+30*time.Microsecond, func() { fired = c.Now() })
		time.AfterFunc(4250*time.Microsecond, func() { c.Post(func() { posted = c.Now() }) })
		if err := Until(t.Context(), c, func() bool { return fired > 0 }); err != nil {
			t.Fatal(err)
		}
		// The naps begin at 5.03 − 1.2 = 3.83 ms; the one that begins at 4.23 ends at 4.33.
		if want := 5030 * time.Microsecond; fired != want {
			t.Errorf("fired at %v, want %v", fired, want)
		}
		if want := 4330 * time.Microsecond; posted != want {
			t.Errorf("posted ran at %v, want %v", posted, want)
		}
		if len(naps) != 12 || naps[11] != 100*time.Microsecond {
			t.Errorf("naps %v, want 12 of 100 µs", naps)
		}
	})
}

// Where naps do not move the clock, the runtime's timer waits.
func TestNapsThatDoNotMoveTheClock(t *testing.T) {
	was := nap
	defer func() { nap = was }()
	synctest.Test(t, func(t *testing.T) {
		naps := 0
		nap = func(time.Duration) { naps++ }
		c := NewReal()
		for _, at := range []time.Duration{5 * time.Millisecond, 6 * time.Millisecond} {
			var fired time.Duration
			c.Timer(at, func() { fired = c.Now() })
			if err := Until(t.Context(), c, func() bool { return fired > 0 }); err != nil {
				t.Fatal(err)
			}
			if fired != at {
				t.Errorf("fired at %v, want %v", fired, at)
			}
		}
		if naps != 1 {
			t.Errorf("%d naps, want 1", naps)
		}
	})
}
