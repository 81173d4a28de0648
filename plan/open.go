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
	Gamma    Arrivals = "gamma"    // Open.Burstiness says how bursty arrivals are
)

// Open holds the settings of a load block that sends requests at a rate or by a trace.
type Open struct {
	Arrivals Arrivals `plan:"arrivals"`
	// Burstiness is the shape parameter of the gamma distributed time between requests; 0 if
	// Arrivals is not Gamma. Below 1, requests come in bursts. 1 means Poisson arrivals. Above 1,
	// requests come more evenly.
	Burstiness  float64 `plan:"burstiness"`
	MaxInFlight int     `plan:"max_in_flight"` // limit on requests in flight; beyond it the level ends
	// Warmup is the duration of the load before the window. OpenWarmupAuto lasts until the backlog
	// stops growing; in a replay it lasts TraceWarmup.
	Warmup time.Duration
	// Unsaturated means that the largest rate of the server is not measured. Then only the backlog of a
	// level shows whether the server sustains its rate.
	Unsaturated bool
	Trace       *traffic.Replay // replayed traffic; nil for a rate
}

// OpenWarmupAuto means that the plan has warmup = "auto" for a rate.
const OpenWarmupAuto = time.Duration(-1)

// Shape returns the shape parameter of the time between requests: 1 for Poisson, +Inf for constant.
func (o *Open) Shape() float64 {
	switch o.Arrivals {
	case Constant:
		return math.Inf(1)
	case Gamma:
		return o.Burstiness
	}
	return 1
}

// String returns the distribution of the time between requests: "poisson", "gamma 0.5"; "" for nil.
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

// RateStep is the step in which rates are counted in a capacity search, in requests per second.
const RateStep = 0.001

// TraceWarmup is the default duration of the warm-up of a replay. The warm-up sends the recorded
// requests that come just before the measured stretch, at the speed of the replay.
const TraceWarmup = time.Minute

// SpeedupStep is the step in which the speedups of a replay are counted.
const SpeedupStep = 0.01

// TraceName returns the name of the level that replays a trace at the given multiple of its
// recorded speed.
func TraceName(speedup float64) string {
	if speedup == 1 {
		return "trace"
	}
	return "trace x" + strconv.FormatFloat(speedup, 'g', 6, 64)
}

// DefaultEstimating is how many requests a probe at a rate has by default, if it only estimates.
const DefaultEstimating = 300

// RateName returns the name of a level with the given rate, in requests per second. Equal rates
// have the same name: "240 req/min" becomes "4 req/s".
func RateName(rate float64) string { return strconv.FormatFloat(rate, 'g', 6, 64) + " req/s" }

// These constants are for the measurement of a server's largest rate, before the first level with a
// rate. It keeps SaturationSlots requests in flight for the time Saturation.
const (
	SaturationSlots = 256
	Saturation      = time.Minute
)

// FollowUp is the longest time of a saturation that follows a level at a rate, with its warm-up. It
// ends as soon as it shows whether the server still sustains the rate.
const FollowUp = 2 * Saturation

// StagePasses is how often a load repeats its stages if the plan sets no seeds. An interval over
// rounds needs at least this many rounds.
const StagePasses = 5

// DefaultGrowth is the default limit for the growth of a backlog, as a share of the arriving
// requests.
const DefaultGrowth = 0.02

// DefaultOpenSeconds is the default length of a level at a rate, in seconds. At 10 req/s it is
// enough to certify rates up to 0.95 of the largest rate that the server can sustain.
const DefaultOpenSeconds = 300

// windowRounds is the number of rounds into which the window of a level at a rate is divided.
const windowRounds = 10

// Over sets the requests and rounds of a level at a rate, so that the level lasts for the given
// time.
func (l *Level) Over(length time.Duration) {
	l.Requests = max(1, int(math.Round(l.Rate*length.Seconds())))
	l.Part()
}

// Part divides the window of a level at a rate into rounds: windowRounds, or as many as there are
// requests if these are fewer.
func (l *Level) Part() { l.Rounds = min(windowRounds, l.Requests) }

// Lasts returns how long the requests of a level at a rate arrive, on average; 0 for other levels.
func (l Level) Lasts() time.Duration {
	if l.Rate <= 0 {
		return 0
	}
	return time.Duration(float64(l.Requests) / l.Rate * float64(time.Second))
}
