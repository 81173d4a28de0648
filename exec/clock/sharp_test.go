package clock_test

import (
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
)

// A sharp clock runs due events in order and never early, including events that are posted
// meanwhile.
func TestSharp(t *testing.T) {
	c := clock.NewReal()
	defer c.Sharpen()()
	var got []int
	for i, at := range []time.Duration{3, 1, 2} {
		at *= time.Millisecond
		c.Timer(at, func() {
			must.Hold(t, c.Now() >= at, "a timer for %v ran at %v", at, c.Now())
			got = append(got, i)
		})
	}
	time.AfterFunc(time.Millisecond, func() { c.Post(func() { got = append(got, 3) }) })
	must.Do(t, clock.Until(t.Context(), c, func() bool { return len(got) == 4 }))
	order := map[int]int{}
	for i, x := range got {
		order[x] = i
	}
	must.Hold(t, order[1] <= order[2] && order[2] <= order[0], "ran in the order %v", got)
}

// BenchmarkLate reports how late a timer of an idle clock is on average, for the runtime's
// timers and for sharp timers. The timers are 5 ms apart.
func BenchmarkLate(b *testing.B) {
	for _, sharp := range []bool{false, true} {
		name := "runtime"
		if sharp {
			name = "sharp"
		}
		b.Run(name, func(b *testing.B) {
			c := clock.NewReal()
			if sharp {
				defer c.Sharpen()()
			}
			late := time.Duration(0)
			for range b.N {
				due, over := c.Now()+5*time.Millisecond, false
				c.Timer(due, func() { late, over = late+c.Now()-due, true })
				must.Do(b, clock.Until(b.Context(), c, func() bool { return over }))
			}
			b.ReportMetric(float64(late.Microseconds())/float64(b.N), "µs-late")
		})
	}
}
