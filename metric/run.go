package metric

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Run holds everything that was observed: record writes and reads it, assert judges
// it, and report shows it. It has no thresholds and no verdicts.
type Run struct {
	ID       string `json:"id"`        // unique, and sorts by start time; a simulated run computes it from its plan
	Tool     string `json:"tool"`      // tokgate's version
	Plan     string `json:"plan"`      // as given on the command line
	PlanHash string `json:"plan_hash"` // SHA-256 of the plan's sources and variables, hex
	// Started is the wall-clock time, for people; offsets are monotonic. It is zero
	// in a simulated run, which depends only on its plan and has no date.
	Started time.Time `json:"started,omitzero"`
	Salt    uint64    `json:"salt"` // salt and seed together determine the prompts
	// Simulated means that the servers were simulators in virtual time: nothing was
	// measured on a real server.
	Simulated bool `json:"simulated,omitempty"`

	Servers []*ServerRun `json:"servers"`
	Levels  []*Level     `json:"levels"`
	// Capacities holds the results of the capacity searches, in the order of the
	// plan.
	Capacities []*Capacity `json:"capacities,omitempty"`
	// Comparisons records how the comparisons of the plan were run, in the order of the plan.
	Comparisons []*Comparison `json:"comparisons,omitempty"`
	End         time.Duration `json:"end_ns"` // offset of the end of the run
	// Stopped is the reason why the run ended before the end of the plan, such as "interrupted" or
	// "budget"; "" if it ran to the end.
	Stopped string `json:"stopped,omitempty"`
	// Recording is the SHA-256 sum of the recording's lines, in hexadecimal. It is "" if the run
	// was not recorded, or if an old version recorded it without checks on the lines.
	Recording string `json:"-"`
	// Answers is the SHA-256 sum of the lines of answers.jsonl, in hexadecimal; "" if no answer was
	// kept.
	Answers string `json:"answers,omitempty"`
	// Calibration is the calibration of the generator. It is nil in virtual time, where there is
	// nothing to calibrate, or if there was none.
	Calibration *Calibration `json:"calibration,omitempty"`
}

// ServerRun describes one server under test, as found at its start and at its end.
type ServerRun struct {
	Address     string      `json:"address"` // vllm or vllm["on"]
	Fingerprint Fingerprint `json:"fingerprint"`
	// Unended means that the recording ends before the final state of a server that was started, or
	// before the end of the run. Nobody knows then whether the server stayed the same and could be
	// measured.
	Unended bool `json:"-"`
	// Declared holds what the plan declares about the server, such as "engine" and
	// "flags.max-model-len". It is nil if not recorded.
	Declared Fingerprint `json:"declared,omitempty"`
	// Starts holds the starts of the server, in order. A comparison may start a server several
	// times.
	Starts []Start `json:"starts,omitempty"`
	// Path says how the server's streams were read: PathOwn, or "net/http: " and the reason, such
	// as "net/http: TLS". It is "" in virtual time, or if not recorded.
	Path string `json:"path,omitempty"`
	// Error is the reason why the server could not be measured; "" if it could be measured. The
	// server did not start, never became ready, died, or was replaced by another server before the
	// end.
	Error string `json:"error,omitempty"`
	// EndUnknown is the reason why it is not known whether the server was the same at the end; ""
	// if it is known.
	EndUnknown string `json:"end_unknown,omitempty"`
	// Log is the tail of the server's log if Error is set. Foreign text.
	Log string `json:"log,omitempty"`
}

// PathOwn is the value of ServerRun.Path for streams that are read without net/http; see package
// exec/client.
const PathOwn = "own transport"

// LoadKind is the shape of a level's load.
type LoadKind string

const (
	// ClosedLoop keeps N requests in flight.
	ClosedLoop LoadKind = "closed"
	// Burst sends N requests at once. Each burst is one round.
	Burst LoadKind = "burst"
	// Users keeps N people busy, with thinking time before each message. Its rounds
	// are consecutive parts of one window.
	Users LoadKind = "users"
	// OpenLoop sends requests at a rate, whatever the number of requests in flight. Its rounds are
	// consecutive parts of one window; see Windowed.
	OpenLoop LoadKind = "rate"
	// Speedup is the unit of a capacity search that replays recorded traffic: the factor by which
	// the traffic is replayed faster. The search's levels are of kind OpenLoop.
	Speedup LoadKind = "speedup"
)

// Searched names the unit of a capacity search with this kind of load, as plans write it.
func (k LoadKind) Searched() string {
	if k == ClosedLoop {
		return "concurrency"
	}
	return string(k)
}

// Unit is the unit in which this kind of load is counted. The unit of users and of speedups is
// Count, because they are plain numbers.
func (k LoadKind) Unit() Unit {
	switch k {
	case OpenLoop:
		return PerSecond
	case Users, Speedup:
		return Count
	}
	return Requests
}

// Windowed reports whether the rounds are consecutive parts of one window. Then there is no drain
// between rounds, and each request has a due time of its own.
func (k LoadKind) Windowed() bool { return k == OpenLoop || k == Users }

// Steady reports whether the level offers one constant rate, so that the server either sustains the
// rate or does not. A stage of an open loop and a replay offer changing rates.
func (l *Level) Steady() bool { return l.Kind == OpenLoop && l.Stage == nil && l.Speedup == 0 }

// Cut is the reason why a level of an open loop ended early; "" if it did not. Requests in flight
// at that moment failed with FailUnfinished.
type Cut string

const (
	// CutStalled means that requests waited, but no tokens arrived any more.
	CutStalled Cut = "stalled"
	// CutFull means that the limit of requests in flight was reached.
	CutFull Cut = "full"
)

// Level is one steady load on one server: a case of the plan.
type Level struct {
	Server   string   `json:"server"`
	Workload string   `json:"workload"`
	Name     string   `json:"name"` // "30", "burst 8", "4 req/s"
	Kind     LoadKind `json:"kind"`
	N        int      `json:"n"`              // slots of a closed loop, requests of a burst; else 0
	Rate     float64  `json:"rate,omitempty"` // requests per second of an open loop; otherwise 0
	Cut      Cut      `json:"cut,omitempty"`  // why the level ended early; only for an open loop
	// Of is the mix that this level is a part of; "" if it is not a part. Share is the part's share
	// of the mix's requests, in (0, 1]; 0 if the level is not a part. The rounds of a part are not
	// recorded separately; see Divide.
	Of    string  `json:"of,omitempty"`
	Share float64 `json:"share,omitempty"`
	// Parts holds the parts of the level if the level is a mix; otherwise nil.
	Parts []*Level `json:"-"`
	// Stage is set if the level is a stage of an open loop; otherwise nil. Several stages share one
	// window, and each round of a stage is a part of such a window.
	Stage *Stage `json:"stage,omitempty"`
	// Speedup is the factor by which recorded traffic was replayed faster; 0 if the
	// level is no replay.
	Speedup float64 `json:"speedup,omitempty"`
	// Saturation is the number of requests per second that the server answered while its queue was
	// never empty. It has one value for each consecutive part of that time. It is nil if not known,
	// or if the level is not an open loop.
	Saturation []float64 `json:"saturation_req_s,omitempty"`
	// SaturationAt is the mean number of requests that the server answered at the same time during
	// saturation: they had a token and had not ended. It is 0 if not known.
	SaturationAt float64 `json:"saturation_in_flight,omitempty"`
	Exact        bool    `json:"exact"` // prompts were sized by the server's own tokenizer
	Natural      bool    `json:"natural,omitempty"`
	// Asked describes the requests as the plan of the run asked for them; nil if not recorded.
	Asked  *Asked   `json:"asked,omitempty"`
	Rounds []*Round `json:"rounds"`
	// Voided holds, in order, the rounds that the generator's machine disturbed and that were
	// measured again. No value of the level includes them.
	Voided []*Round `json:"voided,omitempty"`
	// Shed is the number of rounds at the end that were left out because the budget ran short. At
	// least LeastRounds rounds remain.
	Shed int `json:"shed,omitempty"`
	// Skipped is the reason why the level was not run; "" if it was.
	Skipped string `json:"skipped,omitempty"`
	// Probe is set if a capacity search chose the level; nil for a level of the plan.
	Probe *Probe `json:"probe,omitempty"`
	// Looks holds the interim judgements (looks) that took place, in order; the last one decides.
	// The level is judged on its first Looks[last].Requests requests. The allowed error is split
	// over Looks[last].Planned planned looks. Looks is empty if the level was judged once, at its
	// end.
	Looks []Look `json:"looks,omitempty"`
	// Answers holds the findings on a sample of the level's answers; nil if no answer was examined.
	Answers *Answers `json:"answers,omitempty"`
	// Notes are remarks for people, such as why the level ended early or why it was not extended.
	Notes []string `json:"notes,omitempty"`
}

// Stage is one stage of an open loop: the rate at its beginning and at its end, in
// requests per second, with a linear ramp between them.
type Stage struct {
	From float64 `json:"from_req_s"`
	To   float64 `json:"to_req_s"`
}

// LeastRounds is the smallest number of rounds that shows how much the requests of a level depend
// on each other. tokgate leaves out rounds when the budget is short, but keeps this number.
const LeastRounds = 5

// SkippedOnly is the value of Skipped for a level that the user did not select.
const SkippedOnly = "not selected"

// Round is one execution of a level's load, with one seed.
type Round struct {
	Index int   `json:"index"` // 0-based
	Seed  int64 `json:"seed"`
	Due   int   `json:"due"` // measured requests that the plan wants, or that started within Time
	// Time is how long the round kept starting measured requests. It is 0 if the round ends after
	// the number of requests in Due.
	Time time.Duration `json:"time_ns,omitempty"`
	// Start is the time at which the first measured request was due. End is the time at which the
	// last measured request ended.
	Start time.Duration `json:"start_ns"`
	End   time.Duration `json:"end_ns"`
	// WindowStart and WindowEnd are the ends of the measured window. In the window all slots are
	// busy: it leaves out the ramp at the start and the drain at the end. The two are equal if the
	// round had no such time.
	WindowStart time.Duration `json:"window_start_ns"`
	WindowEnd   time.Duration `json:"window_end_ns"`
	// Busy is the share of the slots' time in the window that was spent on a request or on the
	// declared pause, in [0, 1].
	Busy   float64 `json:"busy"`
	Health Health  `json:"health"`
	// Leg is set if the round is one side of a comparison; otherwise nil.
	Leg *Leg `json:"leg,omitempty"`
	// Telemetry holds the server's own metrics; nil if they were not read.
	Telemetry *Telemetry `json:"telemetry,omitempty"`
	// Samples holds every request of the round, including warm-up and fillers, in
	// order of completion. It is empty if the round is Stored.
	Samples []*Sample `json:"-"`
	// Stored reads the requests of a round that are not in memory, so that memory holds only the
	// part of a long run that is in use. Each call may return other pointers for the same request,
	// so callers must not change the requests. nil means that Samples has all requests.
	Stored func() []*Sample `json:"-"`
	// Complete is false when the round was cut short; Stopped says why.
	Complete bool   `json:"complete"`
	Stopped  string `json:"stopped,omitempty"`
	// Void is the reason why the round is in its level's Voided list; "" if the round is judged.
	Void string `json:"void,omitempty"`
}

// Health is what the generator measured about itself over a round.
type Health struct {
	CPU     float64       `json:"cpu"`         // share of the available cores that this process used, in [0, 1]; -1 if unknown
	GCPause time.Duration `json:"gc_pause_ns"` // longest stop-the-world pause
	// Delay is how long a read or send may have waited. It is the larger of two 99th
	// percentiles: how late the Go scheduler ran goroutines that were ready, and how
	// late the generator's own loop was by its heartbeat.
	Delay time.Duration `json:"delay_ns"`
	// Stall is the longest delay of the generator's own loop. A heartbeat measures this delay a
	// hundred times a second. The whole process may have been stopped for that long. Chunks that
	// arrive during a stall are read together afterwards, so they seem to come at once.
	Stall time.Duration `json:"stall_ns"`
}

// All returns every request of the round, in order of completion.
func (r *Round) All() []*Sample {
	if r.Stored != nil {
		return r.Stored()
	}
	return r.Samples
}

// With returns a copy of the round that has the given requests instead of its own.
func (r *Round) With(samples []*Sample) *Round {
	out := *r
	out.Samples, out.Stored = samples, nil
	return &out
}

// InMemory returns the level with the requests of its rounds in memory, for callers that read them
// many times.
func (l *Level) InMemory() *Level {
	out := *l
	out.Rounds = slices.Clone(l.Rounds)
	for i, r := range out.Rounds {
		if r.Stored != nil {
			out.Rounds[i] = r.With(r.Stored())
		}
	}
	return &out
}

// MeasuredSamples returns the requests of the round that are judged, in order
// of start.
func (r *Round) MeasuredSamples() []*Sample { return MeasuredOf(r.All()) }

// MeasuredOf returns the judged requests, in order of start.
func MeasuredOf(all []*Sample) []*Sample {
	out := make([]*Sample, 0, len(all))
	for _, s := range all {
		if s.Phase == Measured {
			out = append(out, s)
		}
	}
	if !inPlace(out) {
		sortByStart(out)
	}
	return out
}

// inPlace sorts the requests of one round by their order numbers. It returns false if the order
// numbers are not exactly 0 to n-1, which means that requests are missing.
func inPlace(samples []*Sample) bool {
	for i := range samples {
		for {
			s := samples[i]
			if s.Order < 0 || s.Order >= len(samples) || s.Round != samples[0].Round {
				return false
			}
			if s.Order == i {
				break
			}
			other := samples[s.Order]
			if other.Order == s.Order {
				return false
			}
			samples[i], samples[s.Order] = other, s
		}
	}
	return true
}

// Calibration is what the generator measured about its own delays while there was no load, with the
// built-in server on loopback. The delays may be too high, because the first server may be starting
// on the same machine at that time. Reports show the calibration; no verdict uses it.
type Calibration struct {
	Streams int           `json:"streams"`    // concurrent streams
	Rate    float64       `json:"rate"`       // chunks a second over all streams
	Delay50 time.Duration `json:"delay50_ns"` // from the server's write to our timestamp, median
	Delay99 time.Duration `json:"delay99_ns"` // and 99th percentile
	CPU     float64       `json:"cpu"`        // as Health.CPU, with the built-in server
	Took    time.Duration `json:"took_ns"`
}

// Asked is the part of a plan that determines the requests of a level. A recorded
// level can be judged with other thresholds, but not as another workload.
type Asked struct {
	Engine  string        `json:"engine"`
	API     string        `json:"api"`
	Input   int           `json:"input_tokens"`
	Output  int           `json:"output_tokens"`
	Jitter  float64       `json:"jitter,omitempty"` // output: Output·(1±Jitter) tokens
	Natural bool          `json:"natural,omitempty"`
	Pause   time.Duration `json:"pause_ns,omitempty"`
	Think   string        `json:"think,omitempty"` // thinking time of people; "" if there is none
	// Arrivals names how the gaps between requests are distributed: "constant", "poisson" or
	// "gamma 0.5". For a replay it names the trace. It is "" for a load without a rate or trace.
	Arrivals string `json:"arrivals,omitempty"`
	// Prompts is a hash of the source of the prompts; "" if the prompts are synthetic and unique.
	Prompts string `json:"prompts,omitempty"`
	// Request is a hash of the other fields of every request, which may contain
	// secrets; "" if there are none.
	Request string `json:"request,omitempty"`
	// Mix lists the parts of a mix, such as "chat 70%, long 30%"; "" if the level is not a mix.
	// Each part has an Asked of its own.
	Mix string `json:"mix,omitempty"`
}

// Digest identifies a by twelve hexadecimal digits. A version of tokgate that knows more fields
// computes the same digest if these are not set.
func (a Asked) Digest() string {
	raw, _ := json.Marshal(a) // numbers and strings never fail
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:6])
}

// Differs lists in words how the requests a differ from the requests b, such as "input_tokens 256,
// not 8192".
func (a Asked) Differs(b Asked) []string {
	var out []string
	note := func(name string, x, y any) {
		if x != y {
			out = append(out, fmt.Sprintf("%s %v, not %v", name, x, y))
		}
	}
	note("engine", a.Engine, b.Engine)
	note("mix", a.Mix, b.Mix)
	note("api", a.API, b.API)
	note("input_tokens", a.Input, b.Input)
	note("output_tokens", a.Output, b.Output)
	note("jitter", a.Jitter, b.Jitter)
	note("natural", a.Natural, b.Natural)
	note("pause", a.Pause, b.Pause)
	note("arrivals", a.Arrivals, b.Arrivals)
	note("think_time", a.Think, b.Think)
	if a.Prompts != b.Prompts {
		out = append(out, "other prompts")
	}
	if a.Request != b.Request {
		out = append(out, "another request block")
	}
	return out
}

// Server returns the record of the server with that address; nil if there is none.
func (r *Run) Server(address string) *ServerRun {
	for _, s := range r.Servers {
		if s != nil && s.Address == address {
			return s
		}
	}
	return nil
}
