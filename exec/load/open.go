package load

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Open is one window of an open loop: requests are due by a schedule that is drawn
// beforehand, whatever became of those before them. What is drawn depends on the
// fields alone. The server is not one of them, nor is the run's salt.
type Open struct {
	Rate     float64 // requests per second, above 0
	Shape    float64 // of gamma distributed gaps: 1 Poisson, +Inf constant ones; above 0
	Due      int     // measured requests
	Seed     int64
	Workload string
	Level    string
	Round    int // of the window's first round
}

// Schedule says when the requests of a window are due: warm-up requests until
// Warm is called, then as many measured ones as are due, then fillers without
// end. How long the warm-up takes depends on the server; the gaps of the measured
// requests do not, since they are a sequence of their own.
type Schedule struct {
	open  Open
	gaps  *rand.Rand
	phase metric.Phase
	order int           // of the next request in its phase
	at    time.Duration // when the last one was due
}

// Begin returns the schedule of a window that begins to warm up at a time.
func (o Open) Begin(at time.Duration) *Schedule {
	return &Schedule{open: o, gaps: o.source(metric.Warmup), phase: metric.Warmup, at: at}
}

// Warm has the window begin at the time at which the last request was due, which it
// returns.
func (s *Schedule) Warm() time.Duration {
	s.phase, s.order, s.gaps = metric.Measured, 0, s.open.source(metric.Measured)
	return s.at
}

// Next is the next request and when it is due.
func (s *Schedule) Next() (Turn, time.Duration) {
	if s.phase == metric.Measured && s.order == s.open.Due {
		s.phase, s.order = metric.Filler, 0
	}
	s.at += time.Duration(s.open.gap(s.gaps) * float64(time.Second))
	t := Turn{Phase: s.phase, Order: s.order}
	s.order++
	return t, s.at
}

func (o Open) source(phase metric.Phase) *rand.Rand {
	// A phase of its own, so that gaps and lengths are drawn apart.
	return Lengths{Seed: o.Seed, Workload: o.Workload, Level: o.Level, Round: o.Round}.source("gaps of "+phase, 0)
}

// gap draws the seconds between two requests: gamma distributed with the mean
// 1/rate, by Marsaglia and Tsang (ACM Trans. Math. Softw. 26, 2000).
func (o Open) gap(rng *rand.Rand) float64 {
	mean := 1 / o.Rate
	switch {
	case math.IsInf(o.Shape, 1):
		return mean
	case o.Shape == 1:
		return mean * rng.ExpFloat64()
	case o.Shape < 1:
		// Gamma(k) is Gamma(k + 1)·U^(1/k).
		boost := math.Pow(1-rng.Float64(), 1/o.Shape)
		return mean / o.Shape * standardGamma(rng, o.Shape+1) * boost
	}
	return mean / o.Shape * standardGamma(rng, o.Shape)
}

// standardGamma draws from the gamma distribution of that shape, at least 1, and
// scale 1.
func standardGamma(rng *rand.Rand, shape float64) float64 {
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-rng.Float64()) < 0.5*x*x+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}

// Steady says when the warm-up of an open loop is over: at least leastWarm mean
// requests, and until the backlog no longer grows. It is told of the backlog at
// each arrival.
type Steady struct {
	from, last   time.Duration // when this stretch began, when it was told last
	stretches    int           // so far, of a mean request each
	area, before float64       // in flight: over this stretch, request-seconds; mean over the one before
	inFlight     int
}

const (
	leastWarm = 3
	mostWarm  = 10
	// stillGrowing is the factor by which the mean backlog of a stretch may be above
	// that of the one before.
	stillGrowing = 1.1
)

// NewSteady returns one for a warm-up that begins at a time.
func NewSteady(at time.Duration) *Steady { return &Steady{from: at, last: at} }

// Over takes in what is in flight now, and says whether the warm-up is over. mean
// is how long a request takes, as far as it is known; 0: it is not.
func (s *Steady) Over(now, mean time.Duration, inFlight int) bool {
	s.area += float64(s.inFlight) * (now - s.last).Seconds()
	s.last, s.inFlight = now, inFlight
	length := now - s.from
	if mean <= 0 || length < mean {
		return false
	}
	level := s.area / length.Seconds()
	calm := s.stretches > 0 && level <= stillGrowing*s.before+1
	s.from, s.area, s.before = now, 0, level
	s.stretches++
	return s.stretches >= leastWarm && calm || s.stretches >= mostWarm
}
