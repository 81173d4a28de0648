package metric

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Telemetry holds the metrics of the server and its GPUs for one round. These are differences and
// statistics over the measured window, and series of values over the whole round. The key of each
// map is the name of a Def or of a counter such as Preempted. If nobody asked for a metric, no map
// has its key.
type Telemetry struct {
	// From and To are the times of the two readings that are nearest to the ends of the window.
	// Added and Histograms are the differences between these readings.
	From time.Duration `json:"from_ns"`
	To   time.Duration `json:"to_ns"`
	// Reads is how often the server's page was read during the round. Failed is how many readings
	// failed or gave no values.
	Reads  int `json:"reads"`
	Failed int `json:"failed,omitempty"`

	Added      map[string]float64   `json:"added,omitempty"`
	Histograms map[string]Histogram `json:"histograms,omitempty"`
	Gauges     map[string]Gauge     `json:"gauges,omitempty"`
	// Series holds gauges over the whole round. It also holds counters, as their increase since the
	// point before. Each series has at most maxPoints points.
	Series []Series `json:"series,omitempty"`
	// Restarted is set if a counter or a histogram of the server decreased in the round. The round then
	// has no value of the server's page.
	Restarted bool `json:"restarted,omitempty"`
	// Missing explains in one line why a value is missing.
	Missing map[string]string `json:"missing,omitempty"`
}

// Replica is what one of several servers behind a gateway did under a load.
type Replica struct {
	URL string `json:"url"`
	// Added holds the increase of its counters, such as GeneratedTokens, from a reading before the
	// load to one after it. The server was at rest at both, so the replicas' counters add up.
	Added map[string]float64 `json:"added,omitempty"`
	// Requests is how many requests it finished in that time; 0 if it does not report them.
	Requests float64 `json:"requests,omitempty"`
	// Gauges summarises its readings in the measured window, by the name of a metric.
	Gauges map[string]Gauge `json:"gauges,omitempty"`
	// Missing explains why Added is empty; "" if it is not.
	Missing string `json:"missing,omitempty"`
}

// These are the counters in Telemetry.Added. For a metric that divides one counter by another, both
// come from the same two readings.
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
	// GeneratedSeconds is the time from each answer's first token to its last, summed over the
	// answers.
	GeneratedSeconds = "generated_seconds"
	Aborted          = "aborted"        // requests that the client cancelled, even unmeasured ones
	Errors           = "errors"         // requests that ended with an error of the engine
	Rejected         = "rejected"       // requests that were not admitted
	ECCErrors        = "ecc_errors"     // uncorrectable errors in the memory of the GPUs
	Energy           = "energy"         // energy in joules, from the GPUs' own counters
	EnergySeconds    = "energy_seconds" // time between the readings of the energy, in seconds
)

// LastXID is the gauge of the last Xid error that the driver reported for a GPU. The value is the
// number of the error; 0 if there was none since the driver was loaded.
const LastXID = "gpu_xid"

// AcceptedAt returns the name of the counter of accepted draft tokens at position i, from 0.
func AcceptedAt(i int) string { return fmt.Sprintf("%s[%d]", AcceptedTokens, i) }

// maxPoints bounds a Series.
const maxPoints = 500

// Series is one quantity over time, with a point for each reading. At holds the times of the
// readings in milliseconds from the start of the run, in ascending order. Values holds the
// readings, in the base unit of the metric that Metric names.
type Series struct {
	Metric string    `json:"metric"`
	At     []int64   `json:"at_ms"`
	Values []float64 `json:"values"`
}

// Thin shortens the series to at most maxPoints points. Of two neighbouring points it keeps the
// larger, because the longest queue matters most.
func (s *Series) Thin() {
	for len(s.At) > maxPoints {
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

// Gauge summarises the readings of a quantity in the measured window. Changes between
// two readings were not seen.
type Gauge struct {
	N    int     `json:"n"` // readings, at least 1
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
	// Missed is the number of planned readings in the window that gave no value. Why is the reason
	// for the last missed reading.
	Missed int    `json:"missed,omitempty"`
	Why    string `json:"why,omitempty"`
}

// patchy explains that too many of the planned readings are missing. It returns "" if at most one
// reading, or one in twenty, is missing. A server often fails to answer when it is busiest, so a
// missed reading may have been the worst reading.
func (g Gauge) patchy() string {
	if g.Missed <= max(1, (g.N+g.Missed)/20) {
		return ""
	}
	return fmt.Sprintf("%d of %d readings failed: %s", g.Missed, g.N+g.Missed, orNone(g.Why))
}

// Stat returns the mean, min or max of the readings.
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

// Histogram counts observations in buckets, because servers report no single values. An observation
// may lie anywhere in its bucket. A bucket includes its upper bound.
type Histogram struct {
	Bounds []float64 `json:"bounds,omitempty"` // upper ones, ascending, finite
	// Counts has the number of observations in each bucket. Its additional last element counts
	// those above all bounds.
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

// Mean returns the mean of the values. It is exact, because the server reports their sum.
func (h Histogram) Mean() (float64, bool) {
	n := h.N()
	if n <= 0 {
		return 0, false
	}
	return h.Sum / n, true
}

// Over returns the fewest and the most observations that can be above the limit. The result least
// counts the buckets that lie wholly above the limit. The result most also counts the bucket that
// contains the limit. Both are equal if the limit is a bound of a bucket.
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

// Percentile estimates a percentile for p in (0, 100), and returns the bucket (low, high] that
// contains it. The estimate assumes that the observations in the bucket are evenly spread. The
// first bucket begins at 0. The last bucket has no end: high is +Inf, and the estimate is low. ok
// is false without observations or buckets.
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
	// With rounding, fractional counts may not add up to the rank.
	return low, low, math.Inf(1), true
}

// sound reports whether the histogram is possible. A recording may contain anything.
func (h Histogram) sound() bool {
	return len(h.Counts) == len(h.Bounds)+1 && slices.IsSorted(h.Bounds) &&
		!slices.ContainsFunc(h.Counts, func(c float64) bool { return !(c >= 0) || c > 1e18 })
}

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

// readRounds calls the function take for each round, to read the metric called name. If one round
// has no value, the level has none either, because the missing value may be the worst. Then
// readRounds returns the reason.
func (l *Level) readRounds(name string, take func(*Telemetry) bool) (why string) {
	if l.Skipped != "" {
		return "the level was not run: " + l.Skipped
	}
	if len(l.Rounds) == 0 {
		return "no round was run"
	}
	def, _ := Lookup(name)
	lacking := 0
	for _, r := range l.Rounds {
		reason := ""
		switch {
		case r.Telemetry == nil:
			reason = "nothing was read from the server's metrics"
		case take(r.Telemetry):
			continue
		default:
			reason = cmp.Or(r.Telemetry.Missing[name], def.NoValue, "the telemetry of the server has no series of this name")
		}
		lacking, why = lacking+1, cmp.Or(why, reason)
	}
	if lacking == 0 || lacking == len(l.Rounds) {
		return why
	}
	_, rounds := l.RoundNames()
	return fmt.Sprintf("it is missing in %d of %d %s: %s", lacking, len(l.Rounds), rounds, why)
}

// Told returns the level with only the rounds at whose edges the server's counters and histograms
// were read. Its values describe these rounds, which is enough to show them, but not to pass a
// threshold: the server may have been too busy to answer. The result lacking says how many rounds
// are left out, and why; "" if none is.
//
// If no round was read so, or if a counter went back, Told returns the level itself.
func (l *Level) Told() (told *Level, lacking string) {
	out, why := *l, ""
	out.Rounds = nil
	for _, r := range l.Rounds {
		switch t := r.Telemetry; {
		case t == nil || t.Restarted:
			return l, ""
		case t.To > 0:
			out.Rounds = append(out.Rounds, r)
		default:
			why = cmp.Or(why, t.Missing[Preempted])
		}
	}
	n := len(out.Rounds)
	if n == 0 || n == len(l.Rounds) {
		return l, ""
	}
	_, rounds := l.RoundNames()
	return &out, fmt.Sprintf("the server's own counters and histograms are those of %d of %d %s. Of the others: %s", n, len(l.Rounds), rounds, orNone(why))
}

func orNone(why string) string {
	if why == "" {
		return "the reason is not known"
	}
	return why
}

// Gauge combines the readings of a PerReading metric from all rounds of the level. A round that is
// too short may lack readings. If another round has none, or too many are missing, why says so.
func (l *Level) Gauge(name string) (g Gauge, why string) {
	if def, _ := Lookup(name); def.Source == Starts {
		return l.startsAs(def)
	}
	short := ""
	why = l.readRounds(name, func(t *Telemetry) bool {
		x, ok := t.Gauges[name]
		ok = ok && x.N > 0 // this check is needed because a recording may contain anything
		if ok {
			g = g.merge(x)
		}
		if !ok && t.Missing[name] == TooShort {
			// A window that is too short is no failure, because other rounds may have readings.
			short = TooShort
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

// TooShort is the value in Missing for a gauge that was not read in the window, although no reading
// failed.
const TooShort = "the window was too short to contain a reading"

// Histogram adds up the histograms of the level's rounds for one metric of the type Counted. If
// there is none, why is the reason.
func (l *Level) Histogram(name string) (h Histogram, why string) {
	mixed := false
	why = l.readRounds(name, func(t *Telemetry) bool {
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
		return Histogram{}, "the buckets of the server's histogram changed between rounds"
	case h.N() <= 0:
		return Histogram{}, "the server finished no request in the window"
	}
	return h, ""
}

// Added returns the increase of a counter, summed over the windows of the level's rounds.
func (l *Level) Added(name string) Value {
	sum := 0.0
	why := l.readRounds(name, func(t *Telemetry) bool {
		x, ok := t.Added[name]
		sum += x
		return ok
	})
	if why != "" {
		return None(why)
	}
	return Some(sum)
}

// WithStarts returns the level with the starts of its server.
func (r *Run) WithStarts(l *Level) *Level {
	out := *l
	if s := r.Server(l.Server); s != nil {
		out.Starts = s.Starts
	}
	return &out
}

// startOf returns the number of the start of the server that served a round; −1 if not known.
func (l *Level) startOf(r *Round) int {
	if r.Leg != nil {
		return min(r.Leg.Start, len(l.Starts)-1)
	}
	last := -1
	for i, s := range l.Starts {
		if s.Ready <= r.Start {
			last = i
		}
	}
	return last
}

// Warm reports whether a warm start of the server served the round.
func (l *Level) Warm(r *Round) bool {
	i := l.startOf(r)
	return i >= 0 && warmAt(l.Starts, i)
}

// startsAs returns how long the starts took that served the level's rounds: the cold or the warm ones.
func (l *Level) startsAs(def Def) (g Gauge, why string) {
	seen := map[int]bool{}
	for _, r := range l.Rounds {
		i := l.startOf(r)
		if i < 0 || seen[i] || warmAt(l.Starts, i) != (def.Name == "start_warm") {
			continue
		}
		seen[i] = true
		took := l.Starts[i].loaded().Seconds()
		g = g.merge(Gauge{N: 1, Mean: took, Min: took, Max: took})
	}
	switch {
	case len(l.Starts) == 0:
		return g, "tokgate did not start the server"
	case g.N == 0:
		return g, def.NoValue
	}
	return g, ""
}
