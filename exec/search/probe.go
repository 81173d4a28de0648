package search

import (
	"fmt"
	"time"
)

// Purpose says why a probe is made.
type Purpose string

const (
	Known   Purpose = "known"   // measured before the search
	Gate    Purpose = "require" // the level that the gate asks for
	Ladder  Purpose = "ladder"
	Bisect  Purpose = "bisect"
	Extend  Purpose = "extend"  // more samples of an inconclusive level
	Check   Purpose = "check"   // in a stretch that the ladder jumped over
	Retry   Purpose = "retry"   // fresh samples: a pass above a fail
	Again   Purpose = "again"   // fresh samples: the generator was saturated, perhaps by chance
	Deep    Purpose = "deep"    // fresh samples, far more of them, where these decide
	Confirm Purpose = "confirm" // fresh samples at L
)

// Probe is one measurement that the search asks for.
type Probe struct {
	N       int
	Purpose Purpose
	// Set numbers the samples of this level: 0 for the first, which Extend
	// adds to; a higher Set shares no request with a lower one.
	Set int
	// Have is how many requests of this set were judged already.
	Have int
	// Looks are the numbers of requests, Have included, at which the set is to
	// be judged; the probe ends at the first that is certain, or at the last.
	Looks []int
	// Planned is the number of looks over which the error probability is split.
	Planned int
	// Within is the budget that is left for this probe; what is not certain by then is
	// inconclusive. 0: no budget.
	Within time.Duration
	// Expected is the predicted duration if every look is held; 0: unknown.
	Expected time.Duration
}

// Outcome is the result of a level. The zero value is Pending.
type Outcome int

const (
	Pending      Outcome = iota
	Pass                 // every threshold certifiably holds
	Fail                 // at least one certifiably does not
	Inconclusive         // neither
	Saturated            // the generator, not the server, was the limit
	Capped               // the server admitted fewer than N and no threshold failed
)

var outcomes = [...]string{"pending", "pass", "fail", "inconclusive", "saturated", "capped"}

func (o Outcome) String() string {
	if o < 0 || int(o) >= len(outcomes) {
		return fmt.Sprintf("Outcome(%d)", int(o))
	}
	return outcomes[o]
}

// Margin is how far a threshold was from its limit.
type Margin struct {
	Threshold string // a stable name: "ttft p95"
	// Log is ln(estimate / limit), its sign turned where higher is better:
	// negative holds, positive is over. Kept within ±MaxLog.
	Log float64
	// Low and High bound Log; equal: no interval.
	Low  float64
	High float64
	// Shown is the estimate as a person reads it: "7.9 s".
	Shown string
}

// MaxLog bounds a margin: a factor of about 150. A percentile made of failed
// requests is infinite, and an infinity would swallow its neighbours in the
// isotonic fit.
const MaxLog = 5

// Result is the result of a probe. With Probe.Have it speaks of all requests of
// the set, those judged before included.
type Result struct {
	N       int
	Outcome Outcome
	// Requests is how many measured requests of the set were judged.
	Requests int
	// Needs is about how many more would settle an inconclusive outcome.
	// 0: unknown; negative: no number would.
	Needs int
	// Binding names the threshold that failed, or came closest to it.
	Binding string
	Margins []Margin
	// Cap is how many requests the server admitted, when Capped; 0: unknown.
	Cap int
	// Spent is the duration of this probe alone: warm-up, drain and cache
	// reset included, what Probe.Have took before not.
	Spent time.Duration
	// Note says what a person should know, such as why the generator was
	// saturated.
	Note string
}

// Visit is a probe and its result.
type Visit struct {
	Probe  Probe
	Result Result
}
