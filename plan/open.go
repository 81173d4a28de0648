package plan

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/tokgate/tokgate/traffic"
)

// Arrivals is the distribution of the gaps between the requests of a rate.
type Arrivals string

const (
	Constant Arrivals = "constant" // evenly
	Poisson  Arrivals = "poisson"  // requests arrive independently of each other
	Gamma    Arrivals = "gamma"    // more bursty or more even than Poisson, by Open.Burstiness
)

// Open holds the settings of a load block with a rate or a trace.
type Open struct {
	Arrivals Arrivals `plan:"arrivals"`
	// Burstiness is the shape of gamma distributed gaps; 0 if Arrivals is not Gamma. At 1 the
	// gaps are those of Poisson arrivals. Below 1 requests come in bursts, and above 1 they
	// come more evenly.
	Burstiness  float64 `plan:"burstiness"`
	MaxInFlight int     `plan:"max_in_flight"` // requests in flight at which a level is given up
	// Warmup is the time before the window. OpenWarmupAuto lasts until the backlog no longer
	// grows; in a replay it sends TraceWarmup of the recording before the stretch.
	Warmup time.Duration
	Trace  *traffic.Replay // the replayed traffic; nil for a rate
}

// OpenWarmupAuto is "auto" as the warm-up of a rate.
const OpenWarmupAuto = time.Duration(-1)

// Shape is the shape parameter of the gaps: 1 for Poisson, +Inf for constant gaps.
func (o *Open) Shape() float64 {
	switch o.Arrivals {
	case Constant:
		return math.Inf(1)
	case Gamma:
		return o.Burstiness
	}
	return 1
}

// String names the distribution of the gaps: "poisson", "gamma 0.5"; "" for nil.
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

// TraceWarmup is the default warm-up of a replay: the part of the recording before the stretch
// that is sent first. The time counts at the speed of the replay.
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

// DefaultEstimating is the default number of requests of an estimating probe of a
// rate.
const DefaultEstimating = 300

// RateName is the name of the level with that rate, in requests per second. It does
// not depend on the spelling: "240 req/min" is "4 req/s".
func RateName(rate float64) string {
	return strconv.FormatFloat(rate, 'g', 6, 64) + " req/s"
}

// The server's largest rate for a workload is measured before the first level of a
// rate: SaturationSlots requests are kept in flight for the time Saturation.
const (
	SaturationSlots = 256
	Saturation      = time.Minute
)

// StagePasses is how often the stages of a load are repeated if the plan names no
// seeds: an interval over rounds needs five.
const StagePasses = 5

// DefaultGrowth is the default bound on the growth of a rate's backlog, as a share of
// the arriving requests.
const DefaultGrowth = 0.02

// DefaultOpenSeconds is the default length of a level of a rate, in seconds. At 10 req/s this is
// enough to certify that the backlog does not grow, up to 0.95 of the largest rate.
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

// Lasts is the mean length of a rate's window; 0 for other levels.
func (l Level) Lasts() time.Duration {
	if l.Rate <= 0 {
		return 0
	}
	return time.Duration(float64(l.Requests) / l.Rate * float64(time.Second))
}
