package exec

import (
	"slices"
	"time"
)

// heartbeat is the interval at which the loop checks whether it is on time.
const heartbeat = 10 * time.Millisecond

// timerGrain is how late a timer may fire while the process is idle. Reads and due sends are not
// delayed.
const timerGrain = time.Millisecond

// beats records how late the loop was at each heartbeat. The runtime has histograms of how long
// goroutines wait for other goroutines of the process. They do not show the time that the
// operating system gives to other programs. With one stream there is no other goroutine to wait
// for, so they show nothing.
type beats []time.Duration

// late adds a beat that was late by the given time. It also adds each beat that was due during that
// time, late by the rest of it. Work that arrived during that time had to wait in the same way.
func (b *beats) late(by time.Duration) {
	for *b = append(*b, max(by, 0)); by > heartbeat; *b = append(*b, by) {
		by -= heartbeat
	}
}

// stall is the largest lateness of a beat.
func (b beats) stall() time.Duration {
	if len(b) == 0 {
		return 0
	}
	return slices.Max(b)
}

// mostApart is the number of late beats of a round that delay ignores. A single long stall has a
// limit of its own, metric.LeastStall.
const mostApart = 5

// delay returns the 99th percentile of the time that arrivals in a round may have waited. It is 0
// if at most mostApart beats were late.
func (b beats) delay() time.Duration {
	rank := min((99*len(b)+99)/100, len(b)-mostApart)
	if rank < 1 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(b))
	return max(sorted[rank-1]-timerGrain, 0)
}
