package load

import (
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Backoff is how long a slot waits after a failed warm-up or filler request. These requests keep up
// the load, and must not flood a server that refuses them. After a failed measured request the slot
// goes on at once, as the plan asks.
const Backoff = 100 * time.Millisecond

// ColdFailures is the number of warm-up requests that may fail before a level is given up. It is 10
// or 2·n, whichever is larger, for n requests in flight. It applies only while no warm-up request
// has completed. A server that fails only sometimes is measured.
func ColdFailures(n int) int { return max(10, 2*n) }

// Turn is one request of a slot.
type Turn struct {
	Slot  int
	Phase metric.Phase
	Order int // number of the request in its phase, in order of start
}

// Duration is the mean time from sending to the end of the completed requests of one
// phase. ok is false if none completed.
func Duration(samples []*metric.Sample, phase metric.Phase) (mean time.Duration, ok bool) {
	var sum time.Duration
	n := 0
	for _, s := range samples {
		if s.Phase == phase && s.Completed() {
			sum += s.End - s.Sent
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / time.Duration(n), true
}
