package load

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Open is one window of an open loop. Requests are due by a schedule that is drawn beforehand, so
// slow or failed requests do not change it. The schedule depends only on the fields of Open, so all
// servers of a run have the same arrivals.
type Open struct {
	Rate     float64 // requests per second, above 0
	Shape    float64 // shape of gamma distributed gaps, above 0; 1 is Poisson, +Inf is constant
	Due      int     // measured requests
	Seed     int64
	Workload string
	Level    string
	Round    int // number of the first round of the window
	// Stages divide the measured requests by time. Each stage has its own rates. Without stages,
	// Rate applies to all requests.
	Stages []Stage
}

// Stage is a part of a window's measured requests, with a rate of its own.
type Stage struct {
	Due      int
	From, To float64 // rate in requests per second at the beginning and at the end of the stage
}

// dueTime returns the time from the beginning of the stage until n requests are due on average. It
// solves t·From + t²·(To − From)/2d = n for t. Here d is the duration of the stage. After this time
// the rate stays at To.
func (s Stage) dueTime(n float64) time.Duration {
	length := float64(s.Due) * 2 / (s.From + s.To)
	steep := (s.To - s.From) / length
	seconds := n / s.From
	switch {
	case n > float64(s.Due):
		seconds = length + (n-float64(s.Due))/s.To
	case steep != 0:
		seconds = (math.Sqrt(s.From*s.From+2*n*steep) - s.From) / steep
	}
	return time.Duration(seconds * float64(time.Second))
}

// Schedule returns when the requests of a window are due. First come warm-up requests until Warm is
// called, then the measured requests, then fillers without end. The server decides how long the
// warm-up lasts. It has no influence on the gaps between measured requests, which have a random
// sequence of their own.
type Schedule struct {
	open  Open
	gaps  *rand.Rand
	phase metric.Phase
	order int           // number of the next request within the phase
	at    time.Duration // time at which the last request was due
	// The next fields hold the state of the current stage: its index, the mean number of requests
	// due in it so far, and its beginning.
	stage int
	due   float64
	began time.Duration
}

// Begin returns the schedule of a window whose warm-up begins at the time at.
func (o Open) Begin(at time.Duration) *Schedule {
	return &Schedule{open: o, gaps: o.source(metric.Warmup), phase: metric.Warmup, at: at}
}

// Warm begins the measured window. The window begins when the last request was due; Warm returns
// this time.
func (s *Schedule) Warm() time.Duration {
	s.phase, s.order, s.gaps = metric.Measured, 0, s.open.source(metric.Measured)
	s.began = s.at
	return s.at
}

// Next returns the next request, and the time at which it is due.
func (s *Schedule) Next() (Ticket, time.Duration) {
	if s.phase == metric.Measured && s.order == s.open.Due {
		s.phase, s.order = metric.Filler, 0
	}
	gap := s.open.gap(s.gaps)
	if len(s.open.Stages) > 0 && s.phase == metric.Measured {
		s.staged(gap)
	} else {
		s.at += time.Duration(gap / s.rate() * float64(time.Second))
	}
	t := Ticket{Phase: s.phase, Order: s.order}
	s.order++
	return t, s.at
}

// staged moves the schedule on by one gap, a multiple of the mean gap. The stage of the next
// request sets the rate.
func (s *Schedule) staged(gap float64) {
	before := 0
	for i := range s.stage {
		before += s.open.Stages[i].Due
	}
	if s.order == before+s.open.Stages[s.stage].Due {
		s.stage, s.due, s.began = s.stage+1, 0, s.at
	}
	s.due += gap
	s.at = s.began + s.open.Stages[s.stage].dueTime(s.due)
}

// rate returns the rate of requests that are not measured. Before the window it is the initial rate
// of the first stage. After the window it is the final rate of the last stage.
func (s *Schedule) rate() float64 {
	switch stages := s.open.Stages; {
	case len(stages) == 0:
		return s.open.Rate
	case s.phase == metric.Filler:
		return stages[len(stages)-1].To
	default:
		return stages[0].From
	}
}

func (o Open) source(phase metric.Phase) *rand.Rand {
	// No lengths have a source of this name, so gaps are drawn independently of lengths.
	return Lengths{Seed: o.Seed, Workload: o.Workload, Level: o.Level, Round: o.Round}.source("gaps of "+phase, 0)
}

// gap draws the gap between two requests, as a multiple of the mean gap. Gaps are gamma
// distributed, and are drawn by the method of Marsaglia and Tsang (ACM Trans. Math. Softw. 26,
// 2000).
func (o Open) gap(rng *rand.Rand) float64 {
	switch {
	case math.IsInf(o.Shape, 1):
		return 1
	case o.Shape == 1:
		return rng.ExpFloat64()
	case o.Shape < 1:
		// For a shape k below 1, draw with the shape k + 1, and multiply by U^(1/k). U is uniform
		// in (0, 1].
		boost := math.Pow(1-rng.Float64(), 1/o.Shape)
		return standardGamma(rng, o.Shape+1) * boost / o.Shape
	}
	return standardGamma(rng, o.Shape) / o.Shape
}

// standardGamma draws a number from the gamma distribution with scale 1 and the given shape. The
// shape must be at least 1.
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

// Steady decides when the warm-up of an open loop ends. The warm-up lasts at least leastWarm and at
// most mostWarm mean durations of a request. Between these limits it ends when the backlog no
// longer grows. The caller gives Steady the backlog at each arrival.
type Steady struct {
	grows        bool          // the backlog grows for ever, so nothing waits for its end
	from, last   time.Duration // start of the current stretch; time of the last call
	stretches    int           // complete stretches so far; each as long as a mean request
	area, before float64       // this stretch: backlog summed over time; last stretch: mean backlog
	inFlight     int
}

const (
	leastWarm = 3
	mostWarm  = 10
	// The backlog of a warm-up is growing if its mean over a stretch of time is more than
	// stillGrowing times the mean over the previous stretch, plus one request.
	stillGrowing = 1.1
)

// NewSteady returns the state of a warm-up that begins at the time at. If the backlog is known to grow
// for ever, the warm-up is as short as it may be: requests take longer and longer meanwhile.
func NewSteady(at time.Duration, grows bool) *Steady {
	return &Steady{from: at, last: at, grows: grows}
}

// Over reports whether the warm-up is over. The parameter mean is the mean duration of the requests
// so far; 0 if no request has completed. The parameter inFlight is the number of requests in
// flight.
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
	return s.stretches >= leastWarm && (calm || s.grows) || s.stretches >= mostWarm
}

// Split divides total requests among rounds as evenly as possible. Larger numbers come first:
// Split(10, 4) returns 3, 3, 2, 2. A number is zero if there are more rounds than requests. Split
// panics if rounds is below 1 or total is negative.
func Split(total, rounds int) []int {
	if rounds < 1 || total < 0 {
		panic("load: Split of a negative number, or over no round")
	}
	shares := make([]int, rounds)
	for i := range shares {
		shares[i] = total / rounds
		if i < total%rounds {
			shares[i]++
		}
	}
	return shares
}

// Backoff is how long a slot waits after a failed warm-up or filler request. These requests keep up
// the load, and must not flood a server that refuses them. After a failed measured request the slot
// goes on at once, as the plan asks.
const Backoff = 100 * time.Millisecond

// ColdFailures is the number of warm-up requests that may fail before a level is given up. It is 10
// or 2·n, whichever is larger, for n requests in flight. It applies only while no warm-up request
// has completed. A server that fails only sometimes is measured.
func ColdFailures(n int) int { return max(10, 2*n) }

// Ticket is one request of a slot.
type Ticket struct {
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
