package load

import (
	"time"

	"github.com/tokgate/tokgate/metric"
)

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

// Stagger returns the time between the first starts of two consecutive slots. It spreads the slots
// evenly over the duration of one request and its pause. A duration of 0 means unknown; Stagger
// then returns 0.
func Stagger(duration, pause time.Duration, slots int) time.Duration {
	if duration <= 0 || slots < 2 {
		return 0
	}
	return (duration + pause) / time.Duration(slots)
}

// Time estimates how long a round of a closed loop takes: the ramp, the warm-up and the measured
// requests, with Slots requests at a time. A duration of 0 means unknown; Time then returns For.
func (c Closed) Time(duration time.Duration) time.Duration {
	if duration <= 0 {
		return c.For
	}
	cycle := duration + c.Pause
	waves := (c.Requests(duration) + c.Slots - 1) / c.Slots
	return c.First(c.Slots-1) + cycle*time.Duration((c.Warmup+c.Slots-1)/c.Slots) + cycle*time.Duration(waves)
}

// Requests estimates the number of measured requests of the round. The parameter duration is the
// time that each request takes; 0 if not known.
func (c Closed) Requests(duration time.Duration) int {
	if c.For == 0 || duration <= 0 {
		return c.Due
	}
	return max(c.Due, c.Slots*int(c.For/(duration+c.Pause)+1))
}
