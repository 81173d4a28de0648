package metric

import (
	"fmt"
	"time"
)

// A round that exceeds one of these limits is disturbed: the generator may have been late, or the
// load may not be the declared load. The limits on delay, stall and burst rise with the median TTFT
// of the round: each is at least a share of it.
const (
	// MostDelay is the longest time that a read or a send may wait in an undisturbed round.
	MostDelay  = 20 * time.Millisecond
	delayShare = 0.10
	// LeastStall is the shortest stop of the whole generator that counts as a stall.
	LeastStall = 50 * time.Millisecond
	stallShare = 0.10
	// burstSpread is the limit on the time between the first and the last send of a
	// burst.
	burstSpread = 50 * time.Millisecond
	burstShare  = 0.10
	// leastBusy is the smallest allowed busy share of the window, for each slot. A slot is busy if
	// it has a request or makes its declared pause.
	leastBusy = 0.95
	// failedPause is how long a slot may be idle after a failed request. In this time the slot
	// waits before its next filler (load.Backoff), or opens a new connection.
	failedPause = 100 * time.Millisecond
)

// Disturbance describes how the generator's machine disturbed a round. The zero value means an
// undisturbed round.
type Disturbance struct {
	// Stall is how long the whole generator stood still. Delay is the longest time that a read or a
	// send may have waited. A value within its limit is 0.
	Stall, Delay time.Duration
	// Load describes how the load differed from the declared load. It is "" if the load did not
	// differ, or if the server caused the difference.
	Load string
}

// String describes the disturbance for people; "" if the round was not disturbed.
func (d Disturbance) String() string {
	switch {
	case d.Stall > 0:
		return "the generator stood still for " + Format(Seconds, d.Stall.Seconds())
	case d.Delay > 0:
		return fmt.Sprintf("the load generator may have read and sent up to %s late", Format(Seconds, d.Delay.Seconds()))
	}
	return d.Load
}

// Disturbed says how the generator's machine disturbed a round of the level. It uses only the
// generator's own records and compares them with the median TTFT. No threshold judges these
// records, so repeating a disturbed round favours neither a pass nor a failure. A round in virtual
// time is never late.
func (l *Level) Disturbed(r *Round) Disturbance {
	ttft := medianTTFT(r.MeasuredSamples())
	var out Disturbance
	if r.Health.Stall.Seconds() > max(LeastStall.Seconds(), stallShare*ttft) {
		out.Stall = r.Health.Stall
	}
	if late := max(r.Health.Delay, r.Health.GCPause); late.Seconds() > max(MostDelay.Seconds(), delayShare*ttft) {
		out.Delay = late
	}
	switch l.Kind {
	case OpenLoop, Users:
		if r.Leg != nil || l.Kind == Users {
			out.Load = lateness(r)
		}
		return out
	case Burst:
		if spread, most := r.spread()+2*r.Health.Offset.Seconds(), max(burstSpread.Seconds(), burstShare*ttft); spread > most {
			out.Load = fmt.Sprintf("the requests of the burst were sent up to %s apart (allowed %s)", Format(Seconds, spread), Format(Seconds, most))
		}
		return out
	}
	if l.Batches {
		return out // slots must be busy in the whole window, not in each batch
	}
	if idle, byServer := l.Idle(r); !byServer {
		out.Load = idle
	}
	return out
}

// medianTTFT returns the median TTFT in seconds, or 0 if no request had a token.
func medianTTFT(samples []*Sample) float64 {
	d := Of(MustLookup("ttft"), samples)
	d.Worst = 0
	median, _ := d.Percentile(50)
	return median
}

// Idle says in words which slots of a closed loop were idle in a round, or in a whole window of
// batches. It returns "" if all slots were busy, or if there was only one wave of requests. If slots were idle because requests failed,
// byServer is true: the thresholds already count these failures.
func (l *Level) Idle(r *Round) (words string, byServer bool) {
	if l.Kind.Windowed() {
		return "", false
	}
	failed, completed := 0, 0
	for _, s := range r.All() {
		if s.Completed() {
			completed++
		} else if !s.Canceled() {
			failed++
		}
	}
	switch window := (r.WindowEnd - r.WindowStart).Seconds(); {
	case window <= 0 && r.Due <= l.N:
	case window <= 0:
		return fmt.Sprintf("the %d slots were never all busy at once", l.N), failed > completed
	case !(r.Busy >= leastBusy):
		return fmt.Sprintf("the slots were busy for %s of the window (required %s)", Format(Ratio, r.Busy), Format(Ratio, leastBusy)),
			r.Busy+float64(failed)*failedPause.Seconds()/(window*float64(l.N)) >= leastBusy
	}
	return "", false
}

// spread returns the time between the first and the last send of a burst, in seconds.
func (r *Round) spread() float64 {
	var first, last time.Duration
	for _, s := range r.All() {
		if s.Phase != Measured || s.Sent == 0 {
			continue
		}
		if first == 0 || s.Sent < first {
			first = s.Sent
		}
		last = max(last, s.Sent)
	}
	return (last - first).Seconds()
}

// MostVoided returns how many of the given rounds may be measured again: a third of them, but at
// least one.
func MostVoided(rounds int) int { return max(rounds/3, 1) }
