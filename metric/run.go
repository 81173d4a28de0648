package metric

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Run is everything that was observed: what record writes and reads, what
// assert judges and what report shows. It holds no threshold and no verdict.
type Run struct {
	ID       string `json:"id"`        // unique, sortable by start time; of a simulated run, from its plan
	Tool     string `json:"tool"`      // tokgate's version
	Plan     string `json:"plan"`      // the plan file as the user named it
	PlanHash string `json:"plan_hash"` // SHA-256 of the plan's sources and variables, hex
	// Started is by the wall clock, for people; offsets are monotonic. Zero when
	// simulated: such a run is a function of its plan, and has no date.
	Started time.Time `json:"started,omitzero"`
	Salt    uint64    `json:"salt"` // of the prompts; with a seed it reproduces them
	// Simulated says that the servers were the built-in simulator and that time
	// was virtual: nothing was measured of a real server.
	Simulated bool `json:"simulated,omitempty"`

	Servers []*ServerRun `json:"servers"`
	Levels  []*Level     `json:"levels"`
	// Capacities are the answers of the capacity searches, in order of the
	// plan.
	Capacities []*Capacity `json:"capacities,omitempty"`
	// Comparisons says how those of the plan were run, in its order.
	Comparisons []*Comparison `json:"comparisons,omitempty"`
	End         time.Duration `json:"end_ns"` // offset of the end of the run
	// Stopped says why the run ended before the plan did ("interrupted",
	// "budget"); "" when it ran to its end.
	Stopped string `json:"stopped,omitempty"`
	// Recording is the SHA-256 sum of the recording's lines, in hexadecimal; "":
	// not recorded, or by a version that did not protect its lines.
	Recording string `json:"-"`
	// Answers is the SHA-256 sum of the lines of answers.jsonl, in hexadecimal; "":
	// none was kept.
	Answers string `json:"answers,omitempty"`
	// Calibration is nil when the generator was not calibrated: in virtual
	// time there is nothing to calibrate.
	Calibration *Calibration `json:"calibration,omitempty"`
}

// ServerRun is one server under test as it was found and left.
type ServerRun struct {
	Address     string      `json:"address"` // vllm or vllm["on"]
	Fingerprint Fingerprint `json:"fingerprint"`
	// Unended says that the server was started and the recording ends before what
	// was found of it at the end, or before the end of the run: whether it was the
	// same one until then, and could be measured, is unknown.
	Unended bool `json:"-"`
	// Declared is what the plan says of it, by the same kind of keys: "engine",
	// "flags.max-model-len". nil: not recorded.
	Declared Fingerprint `json:"declared,omitempty"`
	// Starts are the starts of the server, in order; more than one if a comparison restarts it.
	Starts []Start `json:"starts,omitempty"`
	// Path is how its streams were read: PathOwn, or "net/http: TLS" with the reason; "":
	// in virtual time, or not recorded.
	Path string `json:"path,omitempty"`
	// Error is why the server could not be measured (it did not start, never
	// got ready, died, or was another one at the end); "" when it could.
	Error string `json:"error,omitempty"`
	// EndUnknown is the reason why it is not known whether the server was the same at the end; ""
	// if it is known.
	EndUnknown string `json:"end_unknown,omitempty"`
	// Log is the tail of the server's log if Error is set. Foreign text.
	Log string `json:"log,omitempty"`
}

// PathOwn is the path of streams that are read past net/http, see package exec/client.
const PathOwn = "own transport"

// LoadKind is the shape of a level's load.
type LoadKind string

const (
	// ClosedLoop keeps N requests in flight.
	ClosedLoop LoadKind = "closed"
	// Burst sends N requests at once; the burst is the round.
	Burst LoadKind = "burst"
	// Users keeps N people busy, who think before each message. Its rounds are
	// consecutive parts of one window.
	Users LoadKind = "users"
	// OpenLoop sends requests at a rate, whatever is in flight. Its rounds are
	// consecutive parts of one window, see Window.
	OpenLoop LoadKind = "rate"
	// Speedup is what a search over recorded traffic counts: how many times as fast as it
	// was recorded. Its levels are of kind OpenLoop.
	Speedup LoadKind = "speedup"
)

// Searched is what a capacity search over loads of the shape counts, as plans write it.
func (k LoadKind) Searched() string {
	if k == ClosedLoop {
		return "concurrency"
	}
	return string(k)
}

// Windowed reports whether rounds are consecutive parts of one window, without a drain
// between them, and requests due at times of their own.
func (k LoadKind) Windowed() bool { return k == OpenLoop || k == Users }

// Steady reports whether the level has one rate from its beginning to its end, which a
// server sustains or does not: it is no stage, and no replay.
func (l *Level) Steady() bool { return l.Kind == OpenLoop && l.Stage == nil && l.Speedup == 0 }

// Cut says why a level of an open loop was ended before its schedule was; "" when
// it was not. What was in flight then failed as unfinished.
type Cut string

const (
	// CutStalled: requests waited, and no token came any more.
	CutStalled Cut = "stalled"
	// CutFull: as many requests were in flight as may be.
	CutFull Cut = "full"
)

// Level is one steady load on one server: a case of the plan.
type Level struct {
	Server   string   `json:"server"`
	Workload string   `json:"workload"`
	Name     string   `json:"name"` // "30", "burst 8", "4 req/s"
	Kind     LoadKind `json:"kind"`
	N        int      `json:"n"`              // slots, or requests of a burst; at least 1; 0 of an open loop
	Rate     float64  `json:"rate,omitempty"` // of an open loop: requests per second; else 0
	Cut      Cut      `json:"cut,omitempty"`  // of an open loop
	// Of is the mix that a part belongs to, and Share its share of the requests, in (0, 1]. "" and
	// 0: the level belongs to no mix. The rounds of a part are not recorded again, see Divide.
	Of    string  `json:"of,omitempty"`
	Share float64 `json:"share,omitempty"`
	// Parts are the parts of a mix; nil if the level is not one.
	Parts []*Level `json:"-"`
	// Stage is what a level has that is a part of a window; nil: it is none. Its rounds
	// are parts of windows that begin with other stages.
	Stage *Stage `json:"stage,omitempty"`
	// Speedup is by how much faster than it was recorded traffic was replayed; 0: the
	// level is no replay.
	Speedup float64 `json:"speedup,omitempty"`
	// Saturation is how many requests a second the server could answer when its
	// queue was never empty, in parts of that time that follow each other; nil: not
	// known, or not of an open loop.
	Saturation []float64 `json:"saturation_req_s,omitempty"`
	// SaturationAt is how many requests were answered at once then, on average: had a
	// token, and had not ended. 0: not known.
	SaturationAt float64 `json:"saturation_in_flight,omitempty"`
	Exact        bool    `json:"exact"` // prompts were sized by the server's own tokenizer
	Natural      bool    `json:"natural,omitempty"`
	// Asked is what was sent, as the plan said it then; nil: not recorded.
	Asked  *Asked   `json:"asked,omitempty"`
	Rounds []*Round `json:"rounds"`
	// Voided are rounds that the generator's machine disturbed and that were
	// measured again, in order: kept, and part of no value.
	Voided []*Round `json:"voided,omitempty"`
	// Shed is how many of the last rounds were left out because the budget was short. At least
	// LeastRounds remain.
	Shed int `json:"shed,omitempty"`
	// Skipped says why the level was not run at all; "" when it was.
	Skipped string `json:"skipped,omitempty"`
	// Probe is set when a capacity search chose the level; nil for a level of
	// the plan.
	Probe *Probe `json:"probe,omitempty"`
	// Looks are those that were held, in order. The last one counts: the level
	// is what its first Looks[last].Requests requests say, at an error split
	// over Looks[last].Planned. Empty: it was judged once, as a whole.
	Looks []Look `json:"looks,omitempty"`
	// Answers is what a sample of its answers came to; nil: none was looked at.
	Answers *Answers `json:"answers,omitempty"`
	// Notes are what a person should know of how it was run: why it ended
	// early, or was not extended.
	Notes []string `json:"notes,omitempty"`
}

// Stage is one stage of an open loop: the rate at its beginning and at its end, in
// requests per second. Between them it is a ramp.
type Stage struct {
	From float64 `json:"from_req_s"`
	To   float64 `json:"to_req_s"`
}

// LeastRounds is how many rounds it takes to show, by their spread, how much
// the requests of a level depend on each other. A short budget never leaves
// fewer.
const LeastRounds = 5

// SkippedOnly is the Skipped of a level that the user left out.
const SkippedOnly = "not selected"

// Round is one pass of a level with one seed.
type Round struct {
	Index int   `json:"index"` // 0-based
	Seed  int64 `json:"seed"`
	Due   int   `json:"due"` // measured requests the plan wanted, or that were started in Time
	// Time is how long measured requests were started for; 0: until Due of them
	// were.
	Time time.Duration `json:"time_ns,omitempty"`
	// Start is when the first measured request was due, End when the last
	// measured one had ended.
	Start time.Duration `json:"start_ns"`
	End   time.Duration `json:"end_ns"`
	// WindowStart and WindowEnd bound the measured window: all slots busy,
	// ramp and drain left out. Equal when there was no such stretch.
	WindowStart time.Duration `json:"window_start_ns"`
	WindowEnd   time.Duration `json:"window_end_ns"`
	// Busy is the share of slot-time in the window spent with a request in
	// flight or in the declared pause, in [0, 1].
	Busy   float64 `json:"busy"`
	Health Health  `json:"health"`
	// Leg is set when the round took turns with those of another server.
	Leg *Leg `json:"leg,omitempty"`
	// Telemetry is what the server reported of itself; nil: it was not asked.
	Telemetry *Telemetry `json:"telemetry,omitempty"`
	// Samples holds every request of the round, warm-up and filler included,
	// in order of completion; of a round that is Stored none.
	Samples []*Sample `json:"-"`
	// Stored reads the requests of a round that are kept elsewhere, so that memory holds no
	// more of a long run than is looked at. A request may be another pointer at each
	// call; nobody changes it. nil: Samples are all.
	Stored func() []*Sample `json:"-"`
	// Complete is false when the round was cut short; Stopped says why.
	Complete bool   `json:"complete"`
	Stopped  string `json:"stopped,omitempty"`
	// Void says why the round is one of its level's Voided; "" where it is judged.
	Void string `json:"void,omitempty"`
}

// Health is what the generator knows about itself over a round.
type Health struct {
	CPU     float64       `json:"cpu"`         // share of all cores it may use that this process used, in [0, 1]; -1: unknown
	GCPause time.Duration `json:"gc_pause_ns"` // longest stop-the-world pause
	// Delay is how long any read or send may have waited: the larger of two 99th
	// percentiles, of how late the Go scheduler ran a goroutine that was ready and of
	// how late the generator's own loop was, by its heartbeat.
	Delay time.Duration `json:"delay_ns"`
	// Stall is the longest lateness of the generator's own loop, by a heartbeat a
	// hundred times a second: the whole process may have stood still for so long.
	// What arrives meanwhile is read in one go, and its chunks seem to have come
	// fast.
	Stall time.Duration `json:"stall_ns"`
}

// All returns every request of the round, in order of completion.
func (r *Round) All() []*Sample {
	if r.Stored != nil {
		return r.Stored()
	}
	return r.Samples
}

// With is the round with other requests.
func (r *Round) With(samples []*Sample) *Round {
	out := *r
	out.Samples, out.Stored = samples, nil
	return &out
}

// MeasuredSamples returns the requests of the round that are judged, in order
// of start.
func (r *Round) MeasuredSamples() []*Sample { return MeasuredOf(r.All()) }

// MeasuredOf are those of the requests that are judged, in order of start.
func MeasuredOf(all []*Sample) []*Sample {
	out := make([]*Sample, 0, len(all))
	for _, s := range all {
		if s.Phase == Measured {
			out = append(out, s)
		}
	}
	sortByStart(out)
	return out
}

// Calibration is what the generator measured of itself against the built-in
// server on loopback, before the run: how late it reads, with nothing but
// itself to blame.
type Calibration struct {
	Streams int           `json:"streams"`    // concurrent streams
	Rate    float64       `json:"rate"`       // chunks a second, all streams together
	Delay50 time.Duration `json:"delay50_ns"` // from the server's write to our stamp, median
	Delay99 time.Duration `json:"delay99_ns"` // and 99th percentile
	CPU     float64       `json:"cpu"`        // as Health.CPU, both sides together
	Took    time.Duration `json:"took_ns"`
}

// Asked is the part of a plan that decides what the requests of a level are
// like: a recorded level can be judged under other thresholds, but not as
// another workload.
type Asked struct {
	Engine  string        `json:"engine"`
	API     string        `json:"api"`
	Input   int           `json:"input_tokens"`
	Output  int           `json:"output_tokens"`
	Jitter  float64       `json:"jitter,omitempty"` // share of Output, see plan
	Natural bool          `json:"natural,omitempty"`
	Pause   time.Duration `json:"pause_ns,omitempty"`
	Think   string        `json:"think,omitempty"` // how long people think; "": not at all
	// Arrivals is how the requests of a rate follow each other: "poisson", "gamma
	// 0.5"; "" of another shape.
	Arrivals string `json:"arrivals,omitempty"`
	// Prompts is a hash of where they come from; "": they are synthetic and unique.
	Prompts string `json:"prompts,omitempty"`
	// Request is a hash of what else every request carries: its fields may
	// hold secrets. "": nothing.
	Request string `json:"request,omitempty"`
	// Mix is what a mix is made of, "chat 70%, long 30%", each of which has an Asked of
	// its own; "": it is none.
	Mix string `json:"mix,omitempty"`
}

// Digest is twelve hexadecimal digits that identify a. Every version of tokgate that knows the
// fields that are set computes the same.
func (a Asked) Digest() string {
	raw, _ := json.Marshal(a) // never fails: numbers and strings
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:6])
}

// Differs names what of a is not as in b: "input_tokens 256, not 8192".
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

// Server is the record of the server at that address; nil if there is none.
func (r *Run) Server(address string) *ServerRun {
	for _, s := range r.Servers {
		if s != nil && s.Address == address {
			return s
		}
	}
	return nil
}
