package metric

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
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
	Confirmed bool            `json:"confirmed"`
	Probes    []CapacityProbe `json:"probes"`
	Spent     time.Duration   `json:"spent_ns"` // time of the search, without fixed levels
	// Reason explains why the search ended. If the user skipped the search, it is SkippedOnly.
	Reason string   `json:"reason"`
	Notes  []string `json:"notes,omitempty"`
	// Line is the result in one line for people.
	Line string `json:"line"`
}

// CapacityKind says what a Capacity claims.
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
	Outcome  string        `json:"outcome"`
	Binding  string        `json:"binding,omitempty"`
	Shown    string        `json:"shown,omitempty"` // the binding threshold's value
	Note     string        `json:"note,omitempty"`
	Spent    time.Duration `json:"spent_ns"` // of this visit
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
	// Outcome is "pass", "fail" or "inconclusive". It is "" if only the end of the run decides.
	Outcome string `json:"outcome,omitempty"`
}

// Words writes the result in one line, with what is known around the limit:
//
//	39 requests in flight · limited by ttft p95: 7.9 s at 39, 8.1 s at 40
//	~15 requests in flight (12 passes, 18 fails)
//	125+ requests in flight (the search goes up to 125)
//	<8 requests in flight (budget: 3s left, the next probe takes about 2m)
//	64 requests in flight (admission cap)
//	unknown: the generator was saturated at 8
//
// If the load is a rate, the line has an estimate next to the certified value:
//
//	certified 8.1 req/s; estimate 9.3, limited by ttft p95
//
// If the plan sets decide = "estimate", the line says so.
func (c Capacity) Words() string {
	if c.Over == OpenLoop {
		return c.rate()
	}
	one, unit := " request in flight", " requests in flight"
	switch c.Over {
	case Burst:
		one, unit = " request at once", " requests at once"
	case Users:
		one, unit = " user", " users"
	case Speedup:
		one, unit = " times the recorded traffic", " times the recorded traffic"
	}
	at := c.Amount
	if limit := cmp.Or(c.Pass, c.Fail); at(limit) == "1" {
		unit = one
	}
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
			// The load c.Fail failed as a fixed level, above all loads that the search could
			// measure. So the text gives no estimate between the two loads.
			b.WriteString(", and " + at(c.Fail) + " fails")
		}
		b.WriteString(reason)
	case CapacityBelow:
		b.WriteString("does not hold at " + at(c.Fail) + unit)
		if c.Fail > max(c.From, 1) {
			b.WriteString(reason) // the reason also says why no lower level is certified
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

// rate returns the line of Words for a search over rates.
func (c Capacity) rate() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch {
	case c.Kind == CapacityAtLeast && c.Pass > 0:
		add("certified %s+ req/s", c.Amount(c.Pass))
	case c.Pass > 0:
		add("certified %s req/s", c.Amount(c.Pass))
	case c.Fail > 0:
		add("does not hold at %s req/s", c.Amount(c.Fail))
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

// Estimate writes the load at which the first threshold seems to reach its limit. It writes three
// significant digits.
func (c Capacity) Estimate() string {
	return strconv.FormatFloat(c.Crossing*cmp.Or(c.Step, 1), 'g', 3, 64)
}

// particulars returns the rest of the line that Words writes, after the load.
func (c Capacity) particulars() string {
	at := c.Amount
	var b strings.Builder
	if c.Pass > 0 && !c.Confirmed && c.Over != OpenLoop {
		b.WriteString(", not confirmed")
	}
	// At a certified rate the threshold's value is far below its limit, which would mislead. So
	// show it only together with the value at a failed load.
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
		fmt.Fprintf(&b, " · not monotone: %s fails, but the larger %s passes", at(c.NonMonotone[0][0]), at(c.NonMonotone[0][1]))
	}
	return b.String()
}

// Load returns the load of level n, in the unit Over.
func (c Capacity) Load(n int) float64 { return float64(n) * cmp.Or(c.Step, 1) }

// Probed reports whether the probe p measured the load of the level l.
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

// Amount writes the load of level n without its unit, such as "8.1".
func (c Capacity) Amount(n int) string {
	// Six digits are enough. With more, 3 steps of 0.1 would be written as 0.30000000000000004.
	return strconv.FormatFloat(c.Load(n), 'g', 6, 64)
}
