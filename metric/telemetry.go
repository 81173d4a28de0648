package metric

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Telemetry is what the server and its GPUs told of themselves over one round:
// differences and statistics over the measured window, and how things went in
// between. Keys are names of Defs, or of the counters below. What is neither
// in one of the maps nor in Missing was not asked for.
type Telemetry struct {
	// From and To are when the readings were taken between which Added and
	// Histograms are differences: those nearest to the bounds of the window.
	From time.Duration `json:"from_ns"`
	To   time.Duration `json:"to_ns"`
	// Reads is how often the server's page was asked for during the round,
	// Failed how many of these brought nothing.
	Reads  int `json:"reads"`
	Failed int `json:"failed,omitempty"`

	Added      map[string]float64   `json:"added,omitempty"`
	Histograms map[string]Histogram `json:"histograms,omitempty"`
	Gauges     map[string]Gauge     `json:"gauges,omitempty"`
	// Series holds the gauges over the whole round, and counters as what was
	// added since the point before. At most MaxPoints points each.
	Series []Series `json:"series,omitempty"`
	// Restarted is set where a counter or a histogram went backwards in the window.
	Restarted bool `json:"restarted,omitempty"`
	// Missing says why there is no value, in one line.
	Missing map[string]string `json:"missing,omitempty"`
}

// The counters of Telemetry.Added. Those of one pair are differences between the same two readings,
// so their quotient is the value of the window.
const (
	Preempted       = "preemptions"
	CacheQueries    = "cache_queries" // prompt tokens looked up in the prefix cache
	CacheHits       = "cache_hits"    // of them, found
	PrefillTokens   = "prefill_tokens"
	PrefillSeconds  = "prefill_seconds"
	Drafts          = "drafts"           // speculative steps
	DraftTokens     = "draft_tokens"     // proposed in them
	AcceptedTokens  = "accepted_tokens"  // of them, accepted
	GeneratedTokens = "generated_tokens" // output tokens
	// GeneratedSeconds is the time in which they were made, from the first of each answer, added up over the answers.
	GeneratedSeconds = "generated_seconds"
	Aborted          = "aborted"        // requests that the client gave up, fillers among them
	Errors           = "errors"         // requests that ended in an error of the engine
	Rejected         = "rejected"       // requests that were not admitted
	ECCErrors        = "ecc_errors"     // uncorrectable ones of the GPUs' memory
	Energy           = "energy"         // joules, by the GPUs' own counters
	EnergySeconds    = "energy_seconds" // between the readings of them
)

// LastXID is the gauge of the last Xid error that the driver reported of a GPU, by number; 0:
// none since it was loaded.
const LastXID = "gpu_xid"

// AcceptedAt is the counter of the drafts whose token at position i, 0-based,
// was accepted.
func AcceptedAt(i int) string { return fmt.Sprintf("%s[%d]", AcceptedTokens, i) }

// MaxPoints bounds a Series.
const MaxPoints = 500

// Series is one quantity over time, a point for each reading: At[i] is
// milliseconds from the start of the run, ascending, Values[i] is in the base
// unit of the Def called Metric.
type Series struct {
	Metric string    `json:"metric"`
	At     []int64   `json:"at_ms"`
	Values []float64 `json:"values"`
}

// Thin halves the series until it has at most MaxPoints points. Of two
// neighbours the larger one stays: the longest queue is what is looked for.
func (s *Series) Thin() {
	for len(s.At) > MaxPoints {
		n := 0
		for i := 0; i < len(s.At); i += 2 {
			s.At[n], s.Values[n] = s.At[i], s.Values[i]
			if i+1 < len(s.At) && s.Values[i+1] > s.Values[i] {
				s.At[n], s.Values[n] = s.At[i+1], s.Values[i+1]
			}
			n++
		}
		s.At, s.Values = s.At[:n], s.Values[:n]
	}
}

// Gauge is what was read of a quantity in the measured window. What happened
// between two readings was not seen.
type Gauge struct {
	N    int     `json:"n"` // readings, at least 1
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
	// Missed is how many readings more were to be taken there and brought no
	// value, Why the reason of the last of them.
	Missed int    `json:"missed,omitempty"`
	Why    string `json:"why,omitempty"`
}

// patchy says why the readings are too few of those that were to be taken; ""
// where they are not. A server often fails to tell just when it has the most
// to do, so that what was missed may have been the worst: one reading, or one
// in twenty, may be missing.
func (g Gauge) patchy() string {
	if g.Missed <= max(1, (g.N+g.Missed)/20) {
		return ""
	}
	return fmt.Sprintf("%d of %d readings failed: %s", g.Missed, g.N+g.Missed, orNone(g.Why))
}

// Stat is the mean, min or max of the readings.
func (g Gauge) Stat(s Stat) (float64, bool) {
	if g.N == 0 {
		return 0, false
	}
	switch s.Kind {
	case Mean:
		return g.Mean, true
	case Min:
		return g.Min, true
	case Max:
		return g.Max, true
	}
	return 0, false
}

// merge pools the readings of two windows.
func (g Gauge) merge(o Gauge) Gauge {
	if g.N == 0 {
		return o
	}
	if o.N == 0 {
		return g
	}
	n := float64(g.N + o.N)
	return Gauge{
		N:      g.N + o.N,
		Mean:   (g.Mean*float64(g.N) + o.Mean*float64(o.N)) / n,
		Min:    min(g.Min, o.Min),
		Max:    max(g.Max, o.Max),
		Missed: g.Missed + o.Missed,
		Why:    cmp.Or(o.Why, g.Why),
	}
}

// Histogram counts observations in buckets: what a server tells of a quantity
// instead of each single value. What lies in a bucket could be anywhere in it,
// its upper bound included.
type Histogram struct {
	Bounds []float64 `json:"bounds,omitempty"` // upper ones, ascending, finite
	// Counts has one more element than Bounds: the last one counts observations above all bounds.
	Counts []float64 `json:"counts"`
	Sum    float64   `json:"sum"`
}

// N is the number of observations.
func (h Histogram) N() float64 {
	n := 0.0
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Mean is exact: the server adds up the values themselves.
func (h Histogram) Mean() (float64, bool) {
	n := h.N()
	if n <= 0 {
		return 0, false
	}
	return h.Sum / n, true
}

// Over bounds how many observations lie above limit: at least, by the buckets
// that lie above it as a whole, and at most, by those that reach above it.
// They are the same where limit is a bound.
func (h Histogram) Over(limit float64) (least, most float64) {
	lower := math.Inf(-1)
	for i, c := range h.Counts {
		upper := math.Inf(1)
		if i < len(h.Bounds) {
			upper = h.Bounds[i]
		}
		if lower >= limit {
			least += c
		}
		if upper > limit {
			most += c
		}
		lower = upper
	}
	return least, most
}

// Percentile is the bucket (low, high] in which the nearest-rank percentile
// lies, p in (0, 100), and an estimate within it that takes the bucket's
// observations for evenly spread. The first bucket begins at 0; the last has no
// end: high is +Inf, and the estimate is low. ok is false when there is no
// observation or there are no buckets.
func (h Histogram) Percentile(p float64) (estimate, low, high float64, ok bool) {
	n := h.N()
	if n <= 0 || len(h.Bounds) == 0 {
		return 0, 0, 0, false
	}
	rank := max(math.Ceil(p/100*n-1e-9), 1)
	seen := 0.0
	for i, c := range h.Counts {
		if seen+c < rank {
			seen += c
			if i < len(h.Bounds) {
				low = h.Bounds[i]
			}
			continue
		}
		if i == len(h.Bounds) {
			return low, low, math.Inf(1), true
		}
		high = h.Bounds[i]
		low = min(max(low, 0), high)
		return low + (high-low)*(rank-seen)/c, low, high, true
	}
	return low, low, math.Inf(1), true // counts that are no whole numbers
}

// sound reports whether it could have been counted: a record may hold anything.
func (h Histogram) sound() bool {
	return len(h.Counts) == len(h.Bounds)+1 && slices.IsSorted(h.Bounds) && !slices.ContainsFunc(h.Counts, func(c float64) bool { return !(c >= 0) || c > 1e18 })
}

// merge adds up two histograms of the same buckets.
func (h Histogram) merge(o Histogram) (Histogram, bool) {
	if len(h.Counts) == 0 {
		return o, true
	}
	if !slices.Equal(h.Bounds, o.Bounds) || len(h.Counts) != len(o.Counts) {
		return h, false
	}
	sum := Histogram{Bounds: h.Bounds, Counts: slices.Clone(h.Counts), Sum: h.Sum + o.Sum}
	for i, c := range o.Counts {
		sum.Counts[i] += c
	}
	return sum, true
}

// told gathers what the rounds that were run told of name; why is the reason
// of the first that did not. A level has a value only if all of its rounds
// have one: what was not seen may have been the worst.
func (l *Level) told(name string, take func(*Telemetry) bool) (why string) {
	if l.Skipped != "" {
		return "the level was not run: " + l.Skipped
	}
	if len(l.Rounds) == 0 {
		return "no round was run"
	}
	def, _ := Lookup(name)
	for _, r := range l.Rounds {
		switch {
		case r.Telemetry == nil:
			return "nothing was read of the server"
		case take(r.Telemetry):
		case r.Telemetry.Missing[name] != "":
			return r.Telemetry.Missing[name]
		default:
			return orNone(def.NoValue)
		}
	}
	return ""
}

func orNone(why string) string {
	if why == "" {
		return "not told"
	}
	return why
}

// Gauge pools the readings of a PerReading metric over the level's rounds; why
// is the reason when there are none, or too many were missed.
func (l *Level) Gauge(name string) (g Gauge, why string) {
	short := ""
	why = l.told(name, func(t *Telemetry) bool {
		x, ok := t.Gauges[name]
		ok = ok && x.N > 0 // a record may hold anything
		if ok {
			g = g.merge(x)
		}
		if !ok && t.Missing[name] == TooShort {
			short = TooShort // no fault of the source: other rounds may have some
			return true
		}
		return ok
	})
	if why == "" && g.N == 0 {
		why = short
	}
	why = cmp.Or(why, g.patchy())
	if why != "" {
		return Gauge{}, why
	}
	return g, ""
}

// TooShort is the Missing of a gauge of which nothing was read in the window
// although nothing failed.
const TooShort = "the window was too short for a reading in it"

// Histogram adds up the Counted metric of the level's rounds; why is the
// reason when there is none.
func (l *Level) Histogram(name string) (h Histogram, why string) {
	mixed := false
	why = l.told(name, func(t *Telemetry) bool {
		x, ok := t.Histograms[name]
		if ok = ok && x.sound(); ok {
			var same bool
			h, same = h.merge(x)
			mixed = mixed || !same
		}
		return ok
	})
	switch {
	case why != "":
		return Histogram{}, why
	case mixed:
		return Histogram{}, "the server's buckets changed between rounds"
	case h.N() <= 0:
		return Histogram{}, "the server finished no request in the window"
	}
	return h, ""
}

// Added is the increase of a counter over the windows of the level's rounds.
func (l *Level) Added(name string) Value {
	sum := 0.0
	why := l.told(name, func(t *Telemetry) bool {
		x, ok := t.Added[name]
		sum += x
		return ok
	})
	if why != "" {
		return None(why)
	}
	return Some(sum)
}
