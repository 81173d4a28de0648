package exec

import (
	"slices"
	"time"
)

// heartbeat is the interval at which the loop checks whether it is on time.
const heartbeat = 10 * time.Millisecond

// timerGrain is how late a timer may fire while the process is idle. It does not delay reads, or
// sends that are due.
const timerGrain = time.Millisecond

// beats records how late the loop was at each heartbeat, a check every 10 ms. The histograms of the
// Go runtime show only how long goroutines wait for other goroutines. They do not show the time
// that the operating system gives to other programs.
type beats []time.Duration

// recordLate records a heartbeat that came late by the given time. Further heartbeats were due
// during that time, so each of them counts too, with its own delay. Work that arrived when one of
// them was due waited just as long.
func (b *beats) recordLate(by time.Duration) {
	for *b = append(*b, max(by, 0)); by > heartbeat; *b = append(*b, by) {
		by -= heartbeat
	}
}

// stall returns the largest delay of a heartbeat.
func (b beats) stall() time.Duration {
	if len(b) == 0 {
		return 0
	}
	return slices.Max(b)
}

// mostApart is the number of late heartbeats of a round that the method delay ignores. A single
// long stall has a limit of its own, metric.LeastStall.
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
