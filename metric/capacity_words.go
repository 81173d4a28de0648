package metric

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// This file has every short text about a capacity.

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
func (c *Capacity) Words() string {
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
func (c *Capacity) rate() string {
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

// Estimate writes the load at which the first threshold seems to reach its limit, such as "9.3".
func (c *Capacity) Estimate() string { return c.estimate(c.Crossing) }

func (c *Capacity) estimate(n float64) string {
	if c.Step > 0 {
		return strconv.FormatFloat(n*c.Step, 'g', 3, 64)
	}
	return Format(Count, n)
}

// Estimated says near which load the first threshold seems to reach its limit; "" if unknown.
func (c *Capacity) Estimated() string {
	if c.Crossing <= 0 {
		return ""
	}
	s := cmp.Or(c.Binding, "the first threshold") + " seems to meet its limit near " + c.Estimate() + c.unit()
	if !c.OfRate() {
		high := "∞"
		if c.CrossingHigh > 0 {
			high = c.estimate(c.CrossingHigh)
		}
		s += fmt.Sprintf(" (%s to %s)", c.estimate(c.CrossingLow), high)
	}
	return s + ": this is an estimate and certifies nothing"
}

// particulars returns the rest of the line that Words writes, after the load.
func (c *Capacity) particulars() string {
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

// Answer writes the result for people, with its workload.
func (c *Capacity) Answer() string {
	line := cmp.Or(c.Line, string(c.Kind))
	if strings.HasPrefix(line, c.Workload+": ") {
		return line
	}
	return c.Workload + ": " + line
}

// Limit writes the result as the shortest text: "39", "15 to 17", "125+", "<1",
// "unknown".
func (c *Capacity) Limit() string {
	switch c.Kind {
	case CapacityExact, CapacityServerCap:
		return c.Amount(c.Pass)
	case CapacityInterpolated:
		if c.Fail-1 > c.Pass && !c.OfRate() {
			return c.Amount(c.Pass) + " to " + c.Amount(c.Fail-1)
		}
		return c.Amount(c.Pass)
	case CapacityAtLeast:
		return c.Amount(c.Pass) + "+"
	case CapacityBelow:
		return "<" + c.Amount(c.Fail)
	}
	return string(CapacityUnknown)
}

// Carries returns the text of Limit, with the unit if the load is a rate: "39", "8.1 req/s".
func (c *Capacity) Carries() string { return c.Limit() + c.unit() }

// Holds says in a few words which load the SLA survives: "carries 39", "does not hold at 1", "its
// capacity is unknown".
func (c *Capacity) Holds() string {
	switch c.Kind {
	case CapacityBelow:
		return "does not hold at " + c.Amount(c.Fail) + c.unit()
	case CapacityUnknown, "":
		return "its capacity is unknown"
	}
	return "carries " + c.Carries()
}

// unit returns the unit to write after a capacity that is a rate. It returns "" for other loads,
// and if the capacity is not known.
func (c *Capacity) unit() string {
	if !c.OfRate() || c.Kind == CapacityUnknown {
		return ""
	}
	return " " + string(PerSecond)
}

// Named writes the load of level n, with the unit if it is a rate: "39", "8.1 req/s".
func (c *Capacity) Named(n int) string {
	if c.Over == OpenLoop {
		return c.Amount(n) + " " + string(PerSecond)
	}
	return c.Amount(n)
}

// Amount writes the load of level n without its unit, such as "8.1".
func (c *Capacity) Amount(n int) string {
	// Six digits are enough. With more, 3 steps of 0.1 would be written as 0.30000000000000004.
	return strconv.FormatFloat(c.Load(n), 'g', 6, 64)
}
