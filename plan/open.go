package plan

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/tokgate/tokgate/traffic"
)

// Arrivals is how the requests of a rate follow each other.
type Arrivals string

const (
	Constant Arrivals = "constant" // evenly
	Poisson  Arrivals = "poisson"  // independently of each other
	Gamma    Arrivals = "gamma"    // in bursts, or more evenly, by Open.Burstiness
)

// Open is what a load of a rate has that others have not.
type Open struct {
	Arrivals Arrivals `plan:"arrivals"`
	// Burstiness is the shape of gamma distributed gaps: 1 is Poisson, below it
	// requests come in bursts, above it more evenly. 0: not of gamma.
	Burstiness  float64 `plan:"burstiness"`
	MaxInFlight int     `plan:"max_in_flight"` // a level with as many in flight is given up
	// Warmup is that before the window; OpenWarmupAuto: until the backlog no longer grows,
	// of a replay TraceWarmup of what was recorded before its stretch.
	Warmup time.Duration
	Trace  *traffic.Replay // what is replayed; nil: requests arrive at a rate
}

// OpenWarmupAuto is the "auto" of a rate's warm-up.
const OpenWarmupAuto = time.Duration(-1)

// Shape is that of the gaps: 1 for Poisson, +Inf for constant ones.
func (o *Open) Shape() float64 {
	switch o.Arrivals {
	case Constant:
		return math.Inf(1)
	case Gamma:
		return o.Burstiness
	}
	return 1
}

// String is how requests follow each other: "poisson", "gamma 0.5"; "" for nil.
func (o *Open) String() string {
	switch {
	case o == nil:
		return ""
	case o.Trace != nil:
		return fmt.Sprintf("trace %.16s %+v", o.Trace.Hash, o.Trace.Stretch)
	case o.Arrivals == Gamma:
		return fmt.Sprintf("%s %v", o.Arrivals, o.Burstiness)
	}
	return string(o.Arrivals)
}

// RateStep is the unit of a capacity over rates, in requests per second.
const RateStep = 0.001

// TraceWarmup is how much of the recording before its stretch a replay sends first, in
// the time of the replay, unless the plan says otherwise.
const TraceWarmup = time.Minute

// SpeedupStep is the unit of a speedup.
const SpeedupStep = 0.01

// TraceName is the name of the level that replays traffic speedup times as fast as it was
// recorded.
func TraceName(speedup float64) string {
	if speedup == 1 {
		return "trace"
	}
	return "trace x" + strconv.FormatFloat(speedup, 'g', 6, 64)
}

// DefaultEstimating is how many requests an estimating probe of a rate sends, unless
// the plan says otherwise.
const DefaultEstimating = 300

// RateName is the name of the level of that rate, in requests per second, however
// it was written: "240 req/min" is "4 req/s".
func RateName(rate float64) string {
	return strconv.FormatFloat(rate, 'g', 6, 64) + " req/s"
}

// The largest rate of a workload on a server is measured before the first level of
// a rate: SaturationSlots requests in flight for the time of Saturation.
const (
	SaturationSlots = 256
	Saturation      = time.Minute
)

// StagePasses is how often the stages of a load are passed where the plan names no
// seeds: as many rounds as an interval over them takes.
const StagePasses = 5

// DefaultGrowth is the bound on how much the backlog of a rate may grow, as a
// share of the requests that arrive, unless the plan sets another.
const DefaultGrowth = 0.02

// DefaultOpenSeconds is how long a level of a rate takes when the plan does not
// say: what it takes to certify, at 10 requests a second and up to 0.95 of the
// largest rate, that the backlog does not grow.
const DefaultOpenSeconds = 300

// WindowRounds is the number of parts into which verdicts divide the window of a
// rate.
const WindowRounds = 10

// Over sets the requests and rounds of a level that lasts for length.
func (l *Level) Over(length time.Duration) {
	l.Requests = max(1, int(math.Round(l.Rate*length.Seconds())))
	l.Part()
}

// Part divides the window of a rate into its rounds.
func (l *Level) Part() { l.Rounds = min(WindowRounds, l.Requests) }

// Lasts is how long the window of a rate takes on average; 0 for other levels.
func (l Level) Lasts() time.Duration {
	if l.Rate <= 0 {
		return 0
	}
	return time.Duration(float64(l.Requests) / l.Rate * float64(time.Second))
}
