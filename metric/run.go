package metric

import (
	"cmp"
	"slices"
	"time"
)

// Run holds everything that was observed. Package record writes and reads it, package assert judges
// it, and package report shows it. It has no thresholds and no verdicts.
type Run struct {
	ID       string `json:"id"`        // unique, and sorts by start time; a simulated run computes it from its plan
	Tool     string `json:"tool"`      // tokgate's version
	Plan     string `json:"plan"`      // path as given on the command line
	PlanHash string `json:"plan_hash"` // SHA-256 of the plan's sources and variables, hex
	// Started is the wall-clock time of the start, for people. It is zero in a simulated run, which
	// depends only on its plan and has no date. All other times are monotonic offsets.
	Started time.Time `json:"started,omitzero"`
	Salt    uint64    `json:"salt"` // determines the prompts, together with a round's seed
	// Host is the name of the machine, and Commit is the commit that the CI job tests; "" if not known.
	Host   string `json:"host,omitempty"`
	Commit string `json:"commit,omitempty"`
	// Attempt is the number of the run among those of the same plan and commit that are known; 0 or 1
	// means the first.
	Attempt int `json:"attempt,omitempty"`
	// SaltedLengths means that Salt also determines the lengths of the answers, so that other runs of
	// the plan ask for other lengths.
	SaltedLengths bool `json:"salted_lengths,omitempty"`
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
	// Stopped is the reason why the run stopped before the end of the plan, such as "interrupted"
	// or "budget"; "" if it did not.
	Stopped string `json:"stopped,omitempty"`
	// Refused says, by name, why accept blocks of the plan did not count in this run, besides their
	// dates.
	Refused map[string]string `json:"refused_accepts,omitempty"`
	// Recording is the SHA-256 sum of the recording's lines, in hexadecimal. It is "" if the run
	// was not recorded, or if its lines have no checksums.
	Recording string `json:"-"`
	// Answers is the SHA-256 sum of the lines of answers.jsonl, in hexadecimal; "" if no answer was
	// kept.
	Answers string `json:"answers,omitempty"`
	// Calibration is the calibration of the load generator. It is nil in virtual time, and if there
	// was none.
	Calibration *Calibration `json:"calibration,omitempty"`
	// Workers are the processes that sent the load; nil if the process of the run did.
	Workers []Worker `json:"workers,omitempty"`
}

// Worker is one of several processes that sent the load of a run.
type Worker struct {
	Name     string `json:"name"`
	Requests int    `json:"requests"` // answers that came back from it
	// Offset bounds by how much its clock may have been wrong against that of the run. Only the times
	// at which requests were due depend on it: latencies are of one clock.
	Offset time.Duration `json:"offset_ns"`
	// Quiet is the longest time in which nothing was heard from it; 0 if there was none to speak of.
	Quiet time.Duration `json:"quiet_ns,omitempty"`
}

// ServerRun describes one server under test, as found at its start and at its end.
type ServerRun struct {
	Address     string      `json:"address"` // vllm or vllm["on"]
	Fingerprint Fingerprint `json:"fingerprint"`
	// Unended means that the recording ends before the server's final state, or before the end of
	// the run. It is then unknown whether the server changed or failed in the meantime.
	Unended bool `json:"-"`
	// Declared holds what the plan declares about the server, such as "engine" and
	// "flags.max-model-len". It is nil if not recorded.
	Declared Fingerprint `json:"declared,omitempty"`
	// Starts holds the starts of the server, in order. A comparison may start a server several
	// times.
	Starts []Start `json:"starts,omitempty"`
	// Series defines what a Prometheus server was asked about the server; nil if nothing.
	Series []Def `json:"series,omitempty"`
	// Path says how the server's streams were read: PathOwn, or "net/http: " and the reason, such
	// as "net/http: TLS". It is "" in virtual time, or if not recorded.
	Path string `json:"path,omitempty"`
	// Error is the reason why the server could not be measured; "" if it could be measured. For
	// example, the server did not start, never became ready, died, or was replaced by another
	// server before the end.
	Error string `json:"error,omitempty"`
	// EndUnknown explains why tokgate does not know whether the server was still the same at the
	// end; "" if it knows.
	EndUnknown string `json:"end_unknown,omitempty"`
	// Log is the end of the server's log if Error is set. tokgate did not write this text.
	Log string `json:"log,omitempty"`
}

// Queried returns the definitions of what a Prometheus server was asked about the server. A recording
// has only their names, units and directions.
func (s *ServerRun) Queried() []Def {
	out := slices.Clone(s.Series)
	for i := range out {
		out[i].Scope, out[i].Source = PerReading, Queried
	}
	return out
}

// Queried returns the definitions of what a Prometheus server was asked about all servers.
func (r *Run) Queried() (out []Def) {
	for _, s := range r.Servers {
		for _, d := range s.Queried() {
			if !slices.ContainsFunc(out, func(x Def) bool { return x.Name == d.Name }) {
				out = append(out, d)
			}
		}
	}
	return out
}

// Program returns the image or the command that started the server; "" if it is not known.
func (s *ServerRun) Program() string { return cmp.Or(s.Declared["image"], s.Declared["command"]) }

// PathOwn is the value of ServerRun.Path if tokgate read the streams without net/http; see package
// exec/direct. PathChosen is its value if the user asked for net/http.
const (
	PathOwn    = "own transport"
	PathChosen = "net/http: --transport"
)

// LoadKind is the kind of a level's load.
type LoadKind string

const (
	// ClosedLoop keeps N requests in flight.
	ClosedLoop LoadKind = "closed"
	// Burst sends N requests at once. Each burst is one round.
	Burst LoadKind = "burst"
	// Users keeps N people busy, with thinking time before each message. The rounds of such a load
	// are consecutive parts of one window of time.
	Users LoadKind = "users"
	// OpenLoop sends requests at a rate, whatever the number of requests in flight. Its rounds are
	// consecutive parts of one window; see Windowed.
	OpenLoop LoadKind = "rate"
	// Speedup is the unit of a capacity search that replays recorded traffic faster than it was
	// recorded. The levels of the search are of kind OpenLoop.
	Speedup LoadKind = "speedup"
)

// Searched returns the plan's word for the unit of a capacity search with this kind of load.
func (k LoadKind) Searched() string {
	if k == ClosedLoop {
		return "concurrency"
	}
	return string(k)
}

// Unit returns the unit of this kind of load. Users and speedups are plain numbers, so their unit
// is Count.
func (k LoadKind) Unit() Unit {
	switch k {
	case OpenLoop:
		return PerSecond
	case Users, Speedup:
		return Count
	}
	return Requests
}

// Text writes a load of this kind, such as "8 requests" or "4 req/s". n is 0 for a rate.
func (k LoadKind) Text(n int, rate float64) string {
	return Format(k.Unit(), cmp.Or(rate, float64(n)))
}

// Windowed reports whether rounds are consecutive parts of one window. Such rounds have no drain
// between them, and each request is due at a time of its own.
func (k LoadKind) Windowed() bool { return k == OpenLoop || k == Users }

// Windowed reports whether the level's rounds are consecutive parts of one window: those of a rate
// or of users, and the batches of a closed loop.
func (l *Level) Windowed() bool { return l.Kind.Windowed() || l.Batches }

// RoundNames returns what people call one round of the level, and several of them.
func (l *Level) RoundNames() (one, many string) {
	if l.Batches {
		return "batch", "batches"
	}
	return "round", "rounds"
}

// Cut is the reason why a level of an open loop ended early; "" if it ran to its end. When a level
// ends early, the requests in flight fail with FailUnfinished.
type Cut string

const (
	// CutStalled means that requests waited but no more tokens arrived.
	CutStalled Cut = "stalled"
	// CutFull means that the limit of requests in flight was reached.
	CutFull Cut = "full"
)

// Level is one load on one server: a case of the plan.
type Level struct {
	Server   string   `json:"server"`
	Workload string   `json:"workload"`
	Name     string   `json:"name"` // such as "30", "burst 8" or "4 req/s"
	Kind     LoadKind `json:"kind"`
	N        int      `json:"n"`              // slots, requests of a burst, or users; else 0
	Rate     float64  `json:"rate,omitempty"` // requests per second of an open loop; else 0
	Cut      Cut      `json:"cut,omitempty"`  // why the level ended early; only for an open loop
	// Of is the mix to which this level belongs as a part; "" if none. Share is the part's share of
	// the mix's requests, in (0, 1]; 0 if the level is no part. The rounds of a part are not
	// recorded separately.
	Of    string  `json:"of,omitempty"`
	Share float64 `json:"share,omitempty"`
	// Parts holds one level for each part of a mix, without requests; nil if the level is not a mix.
	// See Part and Run.All.
	Parts []*Level `json:"-"`
	// Stage is set if the level is a stage of an open loop; otherwise nil. The stages of a load
	// share each window, and each round of a stage is its part of one window.
	Stage *Stage `json:"stage,omitempty"`
	// Speedup is how many times faster than recorded the traffic was replayed; 0 if the level is no
	// replay.
	Speedup float64 `json:"speedup,omitempty"`
	// Saturation is the server's speed while its queue was never empty, in requests per second. It
	// has one value for each interval of time, in order. It is nil if not known, or if the level is
	// not an open loop.
	Saturation []float64 `json:"saturation_req_s,omitempty"`
	// SaturationAt is the mean number of requests that the server answered at a time during the
	// saturation, from the first token of a request to its end. It is 0 if not known.
	SaturationAt float64 `json:"saturation_in_flight,omitempty"`
	// After is the same speed in a saturation that followed the level; nil if none did. It shows
	// whether the server still carried the rate when the level had ended.
	After []float64 `json:"saturation_after_req_s,omitempty"`
	// Unrecovered is set if the server was still busy with its last saturation when the level
	// began. That saturation then certifies nothing.
	Unrecovered bool `json:"unrecovered,omitempty"`
	// Residue is what the server kept of the level; nil if that was not asked.
	Residue *Residue `json:"residue,omitempty"`
	// Batches is set if the level is a closed loop whose rounds are batches of one window: the
	// measured requests in order of start, cut into groups. The load does not stop between batches,
	// so requests of neighbouring batches are in flight together. See Windowed.
	Batches bool `json:"batches,omitempty"`
	Exact   bool `json:"exact"` // whether the server's own tokenizer sized the prompts
	Natural bool `json:"natural,omitempty"`
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
	// Probe is set if a capacity search chose the level; nil if the plan did.
	Probe *Probe `json:"probe,omitempty"`
	// Looks lists the interim judgements (looks) of the level, in order; the last one decides. Its
	// field Requests says how many requests are judged, from the first one on. Its field Planned
	// says over how many looks the allowed error is split. Looks is empty if the level was judged
	// once, at its end.
	Looks []Look `json:"looks,omitempty"`
	// Answers holds the findings on a sample of the level's answers; nil if no answer was examined.
	Answers *Answers `json:"answers,omitempty"`
	// Starts are those of the level's server; nil if not known. See Run.WithStarts.
	Starts []Start `json:"-"`
	// Replicas holds what each server behind a gateway did under all load of the level, in the order of
	// the plan; nil if the plan names none, and for stages.
	Replicas []Replica `json:"replicas,omitempty"`
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
// on each other. tokgate keeps at least this number when the budget runs short.
const LeastRounds = 5

// SkippedOnly is the value of Skipped for a level that the user did not select.
const SkippedOnly = "not selected"

// Round is one execution of a level's load, with one seed.
type Round struct {
	Index int   `json:"index"` // 0-based
	Seed  int64 `json:"seed"`
	Due   int   `json:"due"` // number of measured requests: as planned, or those begun within Time
	// Time is how long the round may start measured requests. It is 0 if the round has a fixed
	// number of requests.
	Time time.Duration `json:"time_ns,omitempty"`
	// Start is the time at which the first measured request was due. End is the time at which the
	// last measured request ended. The times of two neighbouring batches overlap; their windows do
	// not.
	Start time.Duration `json:"start_ns"`
	End   time.Duration `json:"end_ns"`
	// WindowStart and WindowEnd enclose the measured window, in which all slots are busy. It leaves
	// out the ramp at the start and the drain at the end. They are equal if the slots were never
	// all busy. The window of a batch lasts from its first measured request to the start of the
	// request after its last.
	WindowStart time.Duration `json:"window_start_ns"`
	WindowEnd   time.Duration `json:"window_end_ns"`
	// Busy is the share of the slots' time in the window that went to requests and to the pause in
	// the plan, in [0, 1].
	Busy float64 `json:"busy"`
	// Health covers the time from Start to End of a batch, and of any other round its window.
	Health Health `json:"health"`
	// Leg is set if the round is one server's turn (leg) in a comparison; otherwise nil.
	Leg *Leg `json:"leg,omitempty"`
	// Telemetry holds the server's own metrics; nil if they were not read.
	Telemetry *Telemetry `json:"telemetry,omitempty"`
	// Samples holds every request of the round, including warm-up and fillers, in
	// order of completion. It is empty if the round is Stored.
	Samples []*Sample `json:"-"`
	// Stored reads the requests of a long run when they are needed, to save memory. It is nil if
	// Samples has all requests. Two calls may return different pointers for the same request, so
	// callers must not change the requests.
	Stored func() []*Sample `json:"-"`
	// Complete is false when the round was cut short; Stopped says why.
	Complete bool   `json:"complete"`
	Stopped  string `json:"stopped,omitempty"`
	// Unended means that the recording lacks the end of the round, and with it all that the
	// generator measured about itself. It is false while the round still runs.
	Unended bool `json:"-"`
	// Limit is the limit of time at which the round's leg was ended; 0 if it was not. See AtLimit.
	Limit time.Duration `json:"limit_ns,omitempty"`
	// Void is the reason why the round is in its level's Voided list; "" if the round is judged.
	Void string `json:"void,omitempty"`
}

// All returns every request of the round, in the order of completion.
func (r *Round) All() []*Sample {
	if r.Stored != nil {
		return r.Stored()
	}
	return r.Samples
}

// With returns a copy of the round with the given requests in place of its own.
func (r *Round) With(samples []*Sample) *Round {
	out := *r
	out.Samples, out.Stored = samples, nil
	return &out
}

// InMemory returns the level with all its requests in memory, for callers that read them many
// times.
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

// MeasuredSamples returns the measured requests of the round, in the order of their starts.
func (r *Round) MeasuredSamples() []*Sample { return MeasuredOf(r.All()) }

// MeasuredOf returns the measured ones of the given requests, in the order of their starts.
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

// inPlace sorts the requests of one round by their order numbers. If these are not exactly 0 to
// n−1, requests are missing, and it returns false.
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

// Calibration is what the generator measured about its own delays. It used the built-in server on
// loopback, before there was any load. The delays may be too high, because the first server may
// have been starting on the same machine. Reports show the calibration; no verdict uses it.
type Calibration struct {
	Streams int           `json:"streams"`    // concurrent streams
	Rate    float64       `json:"rate"`       // chunks a second over all streams
	Delay50 time.Duration `json:"delay50_ns"` // median time from a server's write to our timestamp
	Delay99 time.Duration `json:"delay99_ns"` // and 99th percentile
	CPU     float64       `json:"cpu"`        // as Health.CPU; includes the built-in server
	Took    time.Duration `json:"took_ns"`
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
