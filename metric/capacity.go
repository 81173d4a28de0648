package metric

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Capacity is the result of a search for the largest load, on one server for one workload, that
// meets the thresholds.
type Capacity struct {
	Server   string   `json:"server"`
	Workload string   `json:"workload"`
	Over     LoadKind `json:"over"`
	Step     float64  `json:"step,omitempty"` // size of one level in the unit Over; 0 means 1
	From     int      `json:"from"`
	UpTo     int      `json:"up_to"`
	Require  int      `json:"require,omitempty"` // 0: measured only

	Kind CapacityKind `json:"kind"`
	// Fail is the smallest load that is certified to fail. Pass is the largest load below Fail that
	// is certified to pass. 0 means that there is none. Nothing is claimed about other loads.
	Pass int `json:"pass"`
	Fail int `json:"fail"`
	// Crossing estimates the load at which the first threshold reaches its limit; 0 means that
	// there is no estimate. CrossingLow and CrossingHigh are the ends of the estimate's interval;
	// CrossingHigh 0 means that it has no upper end. Crossing never serves as a bound.
	Crossing     float64 `json:"crossing,omitempty"`
	CrossingLow  float64 `json:"crossing_low,omitempty"`
	CrossingHigh float64 `json:"crossing_high,omitempty"`
	// Binding names the threshold that limits the capacity: the threshold that fails at the load
	// Fail. If no load failed, it is the threshold that comes nearest to its limit at the load
	// Pass. AtPass and AtFail are the values of that threshold at the loads Pass and Fail. A field
	// is "" if unknown.
	Binding string `json:"binding,omitempty"`
	AtPass  string `json:"at_pass,omitempty"`
	AtFail  string `json:"at_fail,omitempty"`
	// NonMonotone lists pairs [fails, passes] of loads: the first load certainly fails, although
	// the second is larger and certainly passes.
	NonMonotone [][2]int `json:"non_monotone,omitempty"`
	// Confirmed means that the load Pass passed a second time, on samples that share no request
	// with the first ones.
	Confirmed bool            `json:"confirmed"`
	Probes    []CapacityProbe `json:"probes"`
	Spent     time.Duration   `json:"spent_ns"` // of the search, without levels with fixed loads
	// Reason explains why the search ended. It is SkippedOnly if the user skipped the search.
	Reason string   `json:"reason"`
	Notes  []string `json:"notes,omitempty"`
	// Line is the result in one line for people.
	Line string `json:"line"`
}

// CapacityKind is the kind of claim that a Capacity makes.
type CapacityKind string

const (
	CapacityUnknown      CapacityKind = "unknown"      // nothing was certified; Reason explains why
	CapacityExact        CapacityKind = "exact"        // Pass and Fail are as close as required
	CapacityInterpolated CapacityKind = "interpolated" // levels between Pass and Fail are undecided
	CapacityAtLeast      CapacityKind = "at_least"     // no level failed
	CapacityBelow        CapacityKind = "below"        // no level passed
	CapacityServerCap    CapacityKind = "server_cap"   // the server admits only Pass requests
)

// CapacityProbe is one visit of the search to a level.
type CapacityProbe struct {
	N       int    `json:"n"`
	Purpose string `json:"purpose"`
	// Set numbers the sets of samples at this N, from 0. The requests of a set belong to no lower
	// set.
	Set int `json:"set"`
	// Level is the name of the level that holds the samples. With is the name of a level of the
	// plan whose samples are judged together with these samples; "" if there is none.
	Level    string        `json:"level"`
	With     string        `json:"with,omitempty"`
	Requests int           `json:"requests"` // judged, over all visits to the set; 0 if cut short
	Planned  int           `json:"planned"`  // number of planned looks, which share the allowed error; 0 if there was no look
	Outcome  string        `json:"outcome"`
	Binding  string        `json:"binding,omitempty"`
	Shown    string        `json:"shown,omitempty"` // the binding threshold's value
	Note     string        `json:"note,omitempty"`
	Spent    time.Duration `json:"spent_ns"` // of this visit
}

// Probe marks a level that a capacity search measured.
type Probe struct {
	Purpose string `json:"purpose"` // of the first visit
	Set     int    `json:"set"`
}

// Look is a planned time at which a running level was judged: an interim judgement, as in
// sequential tests.
type Look struct {
	// Requests is the number of judged requests, counted in order of start.
	Requests int `json:"requests"`
	// Planned is the number of planned looks; at least 1. The looks share the allowed error.
	Planned int `json:"planned"`
	// Spent is the share of the allowed error that the looks up to this one may use, in (0, 1]. 0
	// means that every look has an equal part of the error.
	Spent float64 `json:"spent,omitempty"`
	// Outcome is "pass", "fail" or "inconclusive". It is "" if nothing was decided at this look,
	// because the decision is left to the end of the run.
	Outcome string `json:"outcome,omitempty"`
}

// Words writes the result in one line for people: its kind, and what is known on either side of the
// limit:
//
//	39 requests in flight · limited by ttft p95: 7.9 s at 39, 8.1 s at 40
//	~15 requests in flight (12 passes, 18 fails)
//	125+ requests in flight (the search goes up to 125)
//	<8 requests in flight (budget: 3s left, the next probe takes about 2m)
//	64 requests in flight (admission cap)
//	unknown: the generator was saturated at 8
//
// A rate has an estimate next to the certified value:
//
//	certified 8.1 req/s; estimate 9.3, limited by ttft p95
//
// If the plan sets decide = "estimate", the words show it.
func (c Capacity) Words() string {
	if c.Over == OpenLoop {
		return c.rate()
	}
	unit := " requests in flight"
	switch c.Over {
	case Burst:
		unit = " requests at once"
	case Users:
		unit = " users"
	case Speedup:
		unit = " times the recorded traffic"
	}
	at := c.Amount
	reason := ""
	if c.Reason != "" {
		reason = " (" + c.Reason + ")"
	}
	var b strings.Builder
	switch c.Kind {
	case CapacityExact:
		b.WriteString(at(c.Pass) + unit)
	case CapacityInterpolated:
		estimate := c.Pass
		if c.Crossing > 0 {
			estimate = max(c.Pass, min(c.Fail-1, int(c.Crossing)))
		}
		fmt.Fprintf(&b, "~%s%s (%s passes, %s fails)", at(estimate), unit, at(c.Pass), at(c.Fail))
	case CapacityAtLeast:
		b.WriteString(at(c.Pass) + "+" + unit)
		if c.Fail > 0 {
			// No verdict exists at this load. The text must not suggest that the limit lies between
			// two measured loads.
			b.WriteString(", and " + at(c.Fail) + " fails")
		}
		b.WriteString(reason)
	case CapacityBelow:
		b.WriteString("<" + at(c.Fail) + unit)
		if c.Fail > max(c.From, 1) {
			b.WriteString(reason) // the reason also explains why no lower level was certified
		}
	case CapacityServerCap:
		b.WriteString(at(c.Pass) + unit + " (admission cap)")
	default:
		b.WriteString("unknown")
		if c.Reason != "" {
			b.WriteString(": " + c.Reason)
		}
		return b.String()
	}
	return b.String() + c.particulars()
}

// rate returns the line of Words for a search that counts a rate.
func (c Capacity) rate() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch {
	case c.Kind == CapacityAtLeast && c.Pass > 0:
		add("certified %s+ req/s", c.Amount(c.Pass))
	case c.Pass > 0:
		add("certified %s req/s", c.Amount(c.Pass))
	case c.Fail > 0:
		add("<%s req/s", c.Amount(c.Fail))
	case c.Reason != "":
		add("unknown: %s", c.Reason)
	default:
		add("unknown")
	}
	switch {
	case c.Crossing > 0 && c.Binding != "" && c.AtFail == "":
		add("estimate %s, limited by %s", c.Estimate(), c.Binding)
	case c.Crossing > 0:
		add("estimate %s", c.Estimate())
	}
	if c.Pass > 0 && c.Fail > 0 {
		add("%s fails", c.Amount(c.Fail))
	}
	out := strings.Join(parts, "; ")
	if c.Pass == 0 && c.Fail == 0 {
		return out
	}
	return out + c.particulars()
}

// Estimate writes the load at which the first threshold seems to reach its limit, in three digits.
func (c Capacity) Estimate() string {
	return strconv.FormatFloat(c.Crossing*cmp.Or(c.Step, 1), 'g', 3, 64)
}

// particulars returns what Words adds after the load.
func (c Capacity) particulars() string {
	at := c.Amount
	var b strings.Builder
	if c.Pass > 0 && !c.Confirmed && c.Over != OpenLoop {
		b.WriteString(", not confirmed")
	}
	// At a certified rate the value is far below its limit, so it is shown only beside a failure.
	if c.Binding != "" && (c.Over != OpenLoop || c.AtFail != "") {
		var points []string
		if c.AtPass != "" {
			points = append(points, c.AtPass+" at "+at(c.Pass))
		}
		if c.AtFail != "" {
			points = append(points, c.AtFail+" at "+at(c.Fail))
		}
		b.WriteString(" · limited by " + c.Binding)
		if len(points) > 0 {
			b.WriteString(": " + strings.Join(points, ", "))
		}
	}
	if len(c.NonMonotone) > 0 {
		fmt.Fprintf(&b, " · not monotone: %s fails, %s passes", at(c.NonMonotone[0][0]), at(c.NonMonotone[0][1]))
	}
	return b.String()
}

// Load converts the level n to the unit Over.
func (c Capacity) Load(n int) float64 { return float64(n) * cmp.Or(c.Step, 1) }

// Probed reports whether the level l has the load of the probe p.
func (c Capacity) Probed(p CapacityProbe, l *Level) bool {
	if l.Speedup > 0 {
		return c.Over == Speedup && math.Abs(l.Speedup-c.Load(p.N)) < c.Load(1)/2
	}
	if l.Kind == OpenLoop {
		return c.Over == OpenLoop && math.Abs(l.Rate-c.Load(p.N)) < c.Load(1)/2
	}
	return l.Kind == c.Over && l.N == p.N
}

// Named writes the load of level n, with the unit if it is a rate: "39", "8.1 req/s".
func (c Capacity) Named(n int) string {
	if c.Over == OpenLoop {
		return c.Amount(n) + " " + string(PerSecond)
	}
	return c.Amount(n)
}

// Amount writes the load of level n as a number in the unit Over, without naming the unit.
func (c Capacity) Amount(n int) string {
	// Six digits are enough: 3 steps of 0.1 are written as 0.3 and not as 0.30000000000000004.
	return strconv.FormatFloat(c.Load(n), 'g', 6, 64)
}
