package fleet

import (
	"slices"
	"time"
)

// drift is how fast two clocks part at most: 100 µs a second. Quartz clocks of servers stay within half of
// that.
const drift = 100e-6

// exchange is one round trip: by the worker's clock it began at the time began and took trip, and the controller
// answered with its time.
type exchange struct{ began, trip, told time.Duration }

// offset returns what to add to a time of the worker for the controller's time, if both ways took as long.
func (x exchange) offset() time.Duration { return x.told - x.began - x.trip/2 }

// bound returns by how much the offset may be wrong at a time of the worker: by half the round trip, as one
// way may have taken no time at all, and by what the clocks have drifted since.
func (x exchange) bound(now time.Duration) time.Duration {
	return x.trip/2 + time.Duration(drift*float64(max(now-x.began-x.trip, 0))) + time.Microsecond
}

// exchanges are the last round trips.
type exchanges []exchange

const mostExchanges = 120

// add adds an exchange. If it contradicts the others, a clock has jumped, as that of a machine that slept does,
// and only the new one is true.
func (xs *exchanges) add(x exchange) {
	if now := x.began + x.trip; len(*xs) > 0 {
		if best := xs.best(now); (best.offset() - x.offset()).Abs() > best.bound(now)+x.bound(now) {
			*xs = nil
		}
	}
	if *xs = append(*xs, x); len(*xs) > mostExchanges {
		*xs = (*xs)[1:]
	}
}

// best returns the exchange with the smallest bound. There must be one.
func (xs exchanges) best(now time.Duration) exchange {
	return slices.MinFunc(xs, func(a, b exchange) int { return int(a.bound(now) - b.bound(now)) })
}
