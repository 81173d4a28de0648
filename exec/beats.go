package exec

import (
	"slices"
	"time"
)

// heartbeat is the interval at which the loop checks whether it is on time.
const heartbeat = 10 * time.Millisecond

// timerGrain is how late a timer of an idle process may be for want of anything to wake
// it, which no read and no send that is due waits for.
const timerGrain = time.Millisecond

// beats is how late the loop was, heartbeat by heartbeat, in ascending order where
// sorted. The runtime's own histograms know for how long a goroutine waited for others
// of this process, and nothing of the time that the operating system gives to other
// programs: with one stream there is no other goroutine to wait for.
type beats []time.Duration

// late adds a beat that came so late, and those that were due while it did not come: what
// arrived then waited for the rest of it.
func (b *beats) late(by time.Duration) {
	for *b = append(*b, max(by, 0)); by > heartbeat; *b = append(*b, by) {
		by -= heartbeat
	}
}

// stall is the latest.
func (b beats) stall() time.Duration {
	if len(b) == 0 {
		return 0
	}
	return slices.Max(b)
}

// mostApart is how many beats in all the loop may be late without counting as late,
// as metric.LeastStall is the limit for one stretch.
const mostApart = 5

// delay is the 99th percentile, of time, of how long what arrived may have waited; 0 if so
// few beats were late as may be in any short round.
func (b beats) delay() time.Duration {
	rank := min((99*len(b)+99)/100, len(b)-mostApart)
	if rank < 1 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(b))
	return max(sorted[rank-1]-timerGrain, 0)
}
