package fleet

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
)

// The bound of an offset holds the truth, whatever share of a round trip each way takes, and while the clocks
// drift apart as fast as they may.
func TestBoundHoldsTheTruth(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		ahead := time.Duration(rng.Int64N(int64(2*time.Hour))) - time.Hour
		rate := 1 + drift*(2*rng.Float64()-1)
		truth := func(at time.Duration) time.Duration { return time.Duration(float64(at)*rate) + ahead }
		var xs exchanges
		at := time.Duration(0)
		for range rng.IntN(200) + 1 {
			at += time.Duration(rng.Int64N(int64(time.Second)))
			there, back := time.Duration(rng.ExpFloat64()*1e7), time.Duration(rng.ExpFloat64()*1e7)
			xs.add(exchange{began: at, trip: there + back, told: truth(at + there)})
			at += there + back
		}
		at += time.Duration(rng.Int64N(int64(30 * time.Second)))
		best := xs.best(at)
		off := truth(at) - at - best.offset()
		must.Hold(t, off.Abs() <= best.bound(at), "the offset is wrong by %v, its bound is %v", off, best.bound(at))
	}
}

// A machine that slept has a clock that is behind. The first exchange after it counts, however long it took.
func TestClockThatJumps(t *testing.T) {
	xs := exchanges{}
	for i := range 5 {
		at := time.Duration(i) * time.Second
		xs.add(exchange{began: at, trip: time.Millisecond, told: at + time.Hour})
	}
	slept := time.Hour + 2*time.Second
	xs.add(exchange{began: 5 * time.Second, trip: 40 * time.Millisecond, told: 5*time.Second + 30*time.Millisecond + slept})
	best := xs.best(6 * time.Second)
	off := slept - best.offset()
	must.Hold(t, off.Abs() <= best.bound(6*time.Second) && off == -10*time.Millisecond, "the offset is wrong by %v", off)
	xs.add(exchange{began: 7 * time.Second, trip: 2 * time.Millisecond, told: 7*time.Second + time.Millisecond + slept})
	must.Hold(t, len(xs) == 2 && xs.best(8*time.Second).trip == 2*time.Millisecond, "%d exchanges are kept that agree", len(xs))
}
