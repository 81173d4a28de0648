package exec

import (
	"slices"
	"time"

	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/metric"
)

// timerGrain is how late a timer may fire while the process is idle. It does not delay reads, or
// sends that are due.
const timerGrain = time.Millisecond

// beats records how late the loop was at each heartbeat, a check every 10 ms. The histograms of the
// Go runtime show only how long goroutines wait for other goroutines. They do not show the time
// that the operating system gives to other programs.
type beats struct {
	late []time.Duration // delay of each heartbeat
	// health has what a recording keeps of the heartbeats: Stall, Standstills and Late. Its Delay is
	// not set; see the method delay.
	health metric.Health
}

// watchBeats starts the heartbeats of a clock's loop. The function stop ends them and returns their
// record.
func watchBeats(c clock.Clock) (stop func() *beats) {
	seen := &beats{health: metric.Health{Standstills: []metric.Standstill{}}}
	due := c.Now()
	var cancel func() bool
	var beat func()
	beat = func() {
		seen.record(due, c.Now())
		due = c.Now() + metric.Heartbeat
		cancel = c.Timer(due, beat)
	}
	beat()
	return func() *beats {
		seen.record(due, c.Now()) // count the last heartbeat, which may be late
		cancel()
		return seen
	}
}

// WatchBeats starts the heartbeats of a clock's loop. The result ends them and returns their record, with
// its Delay.
func WatchBeats(c clock.Clock) (stop func() metric.Health) {
	end := watchBeats(c)
	return func() metric.Health {
		seen := end()
		seen.health.Delay = seen.delay()
		return seen.health
	}
}

// record records a heartbeat that was due and came at the given times. If it was late, further
// heartbeats were due meanwhile, so each of them counts too, with its own delay. Work that arrived
// when one of them was due waited just as long.
func (b *beats) record(due, came time.Duration) {
	late := max(came-due, 0)
	b.health.Stall = max(b.health.Stall, late)
	if late >= metric.LeastStall {
		b.health.AddStandstill(metric.Standstill{From: due, To: came})
	} else {
		b.health.Late += max(late-timerGrain, 0)
	}
	for b.late = append(b.late, late); late > metric.Heartbeat; b.late = append(b.late, late) {
		late -= metric.Heartbeat
	}
}

// mostApart is the number of late heartbeats of a round that the method delay ignores. A single
// long stall has a limit of its own, metric.LeastStall.
const mostApart = 5

// delay returns the 99th percentile of the time that arrivals in a round may have waited. It is 0
// if at most mostApart beats were late.
func (b *beats) delay() time.Duration {
	rank := min((99*len(b.late)+99)/100, len(b.late)-mostApart)
	if rank < 1 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(b.late))
	return max(sorted[rank-1]-timerGrain, 0)
}
