package search

import (
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Purpose is the reason for a probe.
type Purpose string

const (
	Known   Purpose = "known"   // measured before the search
	Gate    Purpose = "require" // the level that the plan requires
	Ladder  Purpose = "ladder"
	Bisect  Purpose = "bisect"
	Extend  Purpose = "extend"  // more samples of an inconclusive level
	Check   Purpose = "check"   // a level that the ladder skipped
	Retry   Purpose = "retry"   // fresh samples, because a higher level passes
	Again   Purpose = "again"   // fresh samples, because the generator was saturated before
	Confirm Purpose = "confirm" // fresh samples at L
	// Certify is the purpose of a probe that may certify a load below the estimated limit, with more
	// samples than usual, all fresh.
	Certify Purpose = "certify"
	// Estimate is the purpose of a probe of a search over rates that only estimates the limit.
	Estimate Purpose = "estimate"
	// deep is a purpose in recordings of earlier versions: far more samples than usual, all fresh.
	deep Purpose = "deep"
)

// Probe is a measurement that the search asks for.
type Probe struct {
	N       int
	Purpose Purpose
	// Set is the number of a set of samples at this level. Sets have no requests in common. A probe
	// with the purpose Extend adds to set 0.
	Set int
	// Have is the number of requests of this set that were already judged.
	Have int
	// Looks are the numbers of requests after which the probe's set is judged. They include the
	// requests in Have. The probe ends at the first look with a certain result, or at the last
	// look.
	Looks []int
	// Planned is the number of looks that share the error probability.
	Planned int
	// Within is the remaining budget for this probe; 0 means no budget. A result that is still
	// uncertain when the budget ends is inconclusive.
	Within time.Duration
	// Expected is the predicted duration of a probe that uses all its requests; 0 if unknown.
	Expected time.Duration
}

// Margin is the distance from a threshold's limit to the estimated value.
type Margin struct {
	Threshold string // name of the threshold, which never changes: "ttft p95"
	// Log is ln(estimate / limit), or −ln(estimate / limit) if higher is better. A negative value
	// meets the limit, and a positive value exceeds it. It is within ±MaxLog.
	Log float64
	// Low and High are the bounds of Log. They are equal if there is no interval.
	Low     float64
	High    float64
	Shown   string         // the estimate as text: "7.9 s"
	Outcome metric.Outcome // of the threshold
	Why     string         // why the threshold is undecided, and what would decide it; "" if decided
}

// MaxLog is the largest absolute value of a margin: e^5 is a factor of about 150. It keeps a
// percentile of failed requests, which is infinite, from dominating the isotonic fit.
const MaxLog = 5

// Result is the result of a probe. It covers all requests of the set, also those that were judged
// before (Probe.Have).
type Result struct {
	N       int
	Outcome metric.Outcome
	// Requests is the number of requests of the set that were judged, from all its probes.
	Requests int
	// Needs estimates how many more requests would decide an inconclusive outcome; 0 if unknown,
	// negative if no number of requests would.
	Needs int
	// Binding is the name of the threshold that decided the outcome. If several thresholds decided
	// it, Binding is the one that is nearest to its limit.
	Binding string
	Margins []Margin
	// Cap is the number of requests that the server admitted, if the outcome is Capped; 0 if it is
	// not known.
	Cap int
	// Spent is the time that this probe alone took, with warm-up, drain and cache reset. It does
	// not include the time for the requests in Probe.Have.
	Spent time.Duration
	// Note is a remark for people, such as why the generator was saturated.
	Note string
}

// Visit is a probe and its result.
type Visit struct {
	Probe  Probe
	Result Result
}
