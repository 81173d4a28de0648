package metric

import (
	"cmp"
	"math"
	"time"
)

// Capacity is the result of a search for the largest load that meets the thresholds. The search is
// for one workload on one server.
type Capacity struct {
	Server   string   `json:"server"`
	Workload string   `json:"workload"`
	Over     LoadKind `json:"over"`
	Step     float64  `json:"step,omitempty"` // level n has the load n · Step; 0 means 1
	From     int      `json:"from"`
	UpTo     int      `json:"up_to"`
	Require  int      `json:"require,omitempty"` // 0: measured only

	Bracket
	Probes []CapacityProbe `json:"probes"`
	Spent  time.Duration   `json:"spent_ns"` // time of the search, without fixed levels
	// Reason explains why the search ended. If the user skipped the search, it is SkippedOnly.
	Reason string   `json:"reason"`
	Notes  []string `json:"notes,omitempty"`
	// Line is the result in one line for people.
	Line string `json:"line"`
}

// Bracket is what a search claims about the capacity.
type Bracket struct {
	Kind CapacityKind `json:"kind"`
	// Fail is the smallest load that is certified to fail. Pass is the largest load below Fail that
	// is certified to pass. 0 means that no load is certified. The loads between Pass and Fail are
	// not certified either way.
	Pass int `json:"pass"`
	Fail int `json:"fail"`
	// Crossing estimates the load at which the first threshold reaches its limit. It is 0 without
	// an estimate. CrossingLow and CrossingHigh are the ends of an interval around it; CrossingHigh
	// is 0 if the interval has no upper end. Nothing is certified by Crossing.
	Crossing     float64 `json:"crossing,omitempty"`
	CrossingLow  float64 `json:"crossing_low,omitempty"`
	CrossingHigh float64 `json:"crossing_high,omitempty"`
	// Binding names the threshold that limits the capacity. It is the threshold that fails at the
	// load Fail. If no load failed, it is the threshold nearest to its limit at the load Pass.
	//
	// AtPass and AtFail are the values of that threshold at the loads Pass and Fail. Each of the
	// three fields is "" if unknown.
	Binding string `json:"binding,omitempty"`
	AtPass  string `json:"at_pass,omitempty"`
	AtFail  string `json:"at_fail,omitempty"`
	// NonMonotone lists contradictions as pairs of loads: the first load certainly fails, although
	// the second is larger and certainly passes.
	NonMonotone [][2]int `json:"non_monotone,omitempty"`
	// Confirmed means that the load Pass passed again, on new requests only.
	Confirmed bool `json:"confirmed"`
}

// CapacityKind says what is claimed about a capacity.
type CapacityKind string

const (
	CapacityUnknown      CapacityKind = "unknown"      // nothing is certified; Reason explains why
	CapacityExact        CapacityKind = "exact"        // Pass and Fail are as close as required
	CapacityInterpolated CapacityKind = "interpolated" // no verdict between Pass and Fail
	CapacityAtLeast      CapacityKind = "at_least"     // no level failed
	CapacityBelow        CapacityKind = "below"        // no level passed
	CapacityServerCap    CapacityKind = "server_cap"   // the server admits at most Pass requests
)

// CapacityProbe is one measurement of a level by a capacity search.
type CapacityProbe struct {
	N       int    `json:"n"`
	Purpose string `json:"purpose"`
	// Set is the number of the set of requests at this N, from 0. Each set has new requests.
	Set int `json:"set"`
	// Level is the name of the level that holds these samples. If they are judged together with
	// those of a level of the plan, With is the name of that level; otherwise "".
	Level    string        `json:"level"`
	With     string        `json:"with,omitempty"`
	Requests int           `json:"requests"` // judged requests in all probes of the set; 0 if cut short
	Planned  int           `json:"planned"`  // number of planned looks, which share the allowed error; 0 if there was no look
	Outcome  Outcome       `json:"outcome"`
	Binding  string        `json:"binding,omitempty"`
	Shown    string        `json:"shown,omitempty"` // the binding threshold's value
	Note     string        `json:"note,omitempty"`
	Spent    time.Duration `json:"spent_ns"` // of this visit
	// Values has the value of each threshold on the capacity, in the order of the plan. It is empty
	// if the probe was not judged again.
	Values []ProbeValue `json:"values,omitempty"`
}

// ProbeValue is the value that a threshold bounds, at one probe of a capacity search. Low and High
// are its one-sided bounds; without a value if the data give none.
type ProbeValue struct {
	Threshold string  `json:"threshold"` // "ttft p95"
	Outcome   Outcome `json:"outcome"`
	Value     Value   `json:"value"`
	Low       Value   `json:"low"`
	High      Value   `json:"high"`
}

// Probe holds what a capacity search says about a level that it measured.
type Probe struct {
	Purpose string `json:"purpose"` // of the first visit
	Set     int    `json:"set"`
}

// Look is a planned judgement of a level that still runs, as in sequential tests.
type Look struct {
	// Requests is the number of judged requests, the earliest ones of the level.
	Requests int `json:"requests"`
	// Planned is the number of planned looks; at least 1. The looks share the allowed error.
	Planned int `json:"planned"`
	// Spent is the cumulative share of the allowed error at this look, in (0, 1]. 0 means that
	// every look has an equal part of the error.
	Spent float64 `json:"spent,omitempty"`
	// Outcome is Pending if only the end of the run decides.
	Outcome Outcome `json:"outcome,omitempty"`
}

// OfRate reports whether the search was for a rate.
func (c *Capacity) OfRate() bool { return c.Over == OpenLoop }

// Load returns the load of level n, in the unit Over.
func (c *Capacity) Load(n int) float64 { return float64(n) * cmp.Or(c.Step, 1) }

// Probed reports whether the probe p measured the load of the level l.
func (c *Capacity) Probed(p CapacityProbe, l *Level) bool {
	if l.Speedup > 0 {
		return c.Over == Speedup && math.Abs(l.Speedup-c.Load(p.N)) < c.Load(1)/2
	}
	if l.Kind == OpenLoop {
		return c.Over == OpenLoop && math.Abs(l.Rate-c.Load(p.N)) < c.Load(1)/2
	}
	return l.Kind == c.Over && l.N == p.N
}
