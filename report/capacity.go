package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/text"
)

// Capacity is the result of one capacity search on one server: the largest load at
// which every threshold holds.
type Capacity struct {
	Server   string `json:"server"`
	Workload string `json:"workload"`
	Over     string `json:"over"` // kind of load: "closed", "burst", "rate" or "speedup"
	// Step is the size of one level, in the unit of the load; 0 means 1. The fields From, UpTo,
	// Require, Pass, Fail, Crossing and the N of probes are multiples of Step.
	Step    float64 `json:"step,omitempty"`
	From    int     `json:"from"`
	UpTo    int     `json:"up_to"`
	Require int     `json:"require,omitempty"` // the required capacity; 0 if none is required
	// Largest is the largest rate that the server can sustain, in requests per second. It is 0 if
	// unknown, and if the search does not vary a rate.
	Largest float64 `json:"largest_rate,omitempty"`

	// Kind is the kind of claim: "exact", "interpolated", "at_least", "below",
	// "server_cap" or "unknown".
	Kind string `json:"kind"`
	// Pass is the largest load that passes with certainty. Fail is the smallest load that fails
	// with certainty. 0 means that there is none.
	Pass int `json:"pass"`
	Fail int `json:"fail"`
	// Crossing is the estimated load at which a threshold first reaches its limit. CrossingLow and
	// CrossingHigh are the bounds of its interval. CrossingHigh is +Inf if there is no upper bound.
	Crossing     Number `json:"crossing"`
	CrossingLow  Number `json:"crossing_low"`
	CrossingHigh Number `json:"crossing_high"`
	// Binding names the threshold that limits the capacity. AtPass and AtFail are the measured
	// values for this threshold at the loads Pass and Fail; "" if unknown.
	Binding string `json:"binding,omitempty"`
	AtPass  string `json:"at_pass,omitempty"`
	AtFail  string `json:"at_fail,omitempty"`
	// NonMonotone lists contradictions: a higher load passed although a lower one failed.
	NonMonotone []Contradiction `json:"non_monotone"`
	Confirmed   bool            `json:"confirmed"` // Pass was confirmed with fresh requests
	Probes      []Probe         `json:"probes"`    // the probes in the order in which they ran
	Spent       float64         `json:"spent_s"`   // of all probes
	Reason      string          `json:"reason"`    // why the search ended
	Notes       []string        `json:"notes"`
	Line        string          `json:"line"` // the result in one line for people
}

// Contradiction is a pair of loads: the lower one failed, and the higher one passed.
type Contradiction struct {
	Fails  int `json:"fails"`
	Passes int `json:"passes"`
}

// Probe is one measurement of a level by a capacity search.
type Probe struct {
	N        int     `json:"n"`
	Purpose  string  `json:"purpose"`
	Set      int     `json:"set"`      // which set of requests; sets at one N have none in common
	Level    string  `json:"level"`    // name of the level with the probe's requests
	Requests int     `json:"requests"` // judged
	Outcome  string  `json:"outcome"`
	Binding  string  `json:"binding,omitempty"` // threshold that failed or is nearest to its limit
	Shown    string  `json:"shown,omitempty"`   // its value
	Note     string  `json:"note,omitempty"`
	Spent    float64 `json:"spent_s"`
	// Readings has an entry for each threshold on the capacity, in the order of the plan. It is
	// empty if the probe could not be judged again.
	Readings []Reading `json:"readings,omitempty"`
}

func (b *builder) capacity(c *metric.Capacity) Capacity {
	out := Capacity{
		Server: b.clean(c.Server), Workload: b.clean(c.Workload), Over: string(c.Over), Step: c.Step,
		From: c.From, UpTo: c.UpTo, Require: c.Require,
		Kind: cmp.Or(string(c.Kind), string(metric.CapacityUnknown)), Pass: c.Pass, Fail: c.Fail,
		Binding: b.clean(c.Binding), AtPass: b.clean(c.AtPass), AtFail: b.clean(c.AtFail),
		NonMonotone: []Contradiction{}, Confirmed: c.Confirmed, Probes: []Probe{},
		Spent: c.Spent.Seconds(), Reason: b.clean(c.Reason), Notes: b.cleanAll(c.Notes), Line: b.clean(c.Line),
	}
	for _, l := range b.run.Levels {
		if c.Over == metric.OpenLoop && l.Server == c.Server && l.Workload == c.Workload {
			out.Largest = cmp.Or(out.Largest, largest(l))
		}
	}
	if c.Crossing > 0 {
		out.Crossing, out.CrossingLow, out.CrossingHigh = numberOf(c.Crossing), numberOf(c.CrossingLow), numberOf(c.CrossingHigh)
		if c.CrossingHigh == 0 {
			out.CrossingHigh = numberOf(math.Inf(1))
		}
	}
	for _, n := range c.NonMonotone {
		out.NonMonotone = append(out.NonMonotone, Contradiction{Fails: n[0], Passes: n[1]})
	}
	for i, p := range c.Probes {
		out.Probes = append(out.Probes, Probe{
			N: p.N, Purpose: b.clean(p.Purpose), Set: p.Set, Level: b.clean(p.Level), Requests: p.Requests,
			Outcome: b.clean(p.Outcome), Binding: b.clean(p.Binding), Shown: b.clean(p.Shown), Note: b.clean(p.Note),
			Spent: p.Spent.Seconds(), Readings: b.readings(c, &c.Probes[i]),
		})
	}
	return out
}

// judged stores c as the capacity of its server and workload in the document. It replaces an
// earlier one.
func (d *Document) judged(c Capacity) {
	for i := range d.Capacities {
		if old := &d.Capacities[i]; old.Server == c.Server && old.Workload == c.Workload {
			*old = c
			return
		}
	}
	d.Capacities = append(d.Capacities, c)
}

// capacityOf returns the capacity that a verdict is about; nil if it has none.
func (d *Document) capacityOf(v *Verdict) *Capacity {
	if v.Kind != "capacity" {
		return nil
	}
	for i := range d.Capacities {
		if c := &d.Capacities[i]; c.Server == v.Server && c.Workload == v.Workload {
			return c
		}
	}
	return nil
}

// Answers reports whether the verdict states the result of the search. It does not if nothing was
// judged, or if the record contradicts the result.
func (c *Capacity) Answers(v *Verdict) bool {
	return v.Outcome == Pass || v.Outcome == Fail || v.Outcome == Inconclusive || v.Outcome == Error && c.Kind == string(metric.CapacityUnknown)
}

// Answer writes the result for people, with its workload.
func (c *Capacity) Answer() string {
	line := cmp.Or(c.Line, c.Kind)
	if strings.HasPrefix(line, c.Workload+": ") {
		return line
	}
	return c.Workload + ": " + line
}

// Limit writes the result as the shortest text: "39", "15 to 17", "125+", "<1",
// "unknown".
func (c *Capacity) Limit() string {
	switch metric.CapacityKind(c.Kind) {
	case metric.CapacityExact, metric.CapacityServerCap:
		return c.Amount(c.Pass)
	case metric.CapacityInterpolated:
		if c.Fail-1 > c.Pass && !c.OfRate() {
			return c.Amount(c.Pass) + " to " + c.Amount(c.Fail-1)
		}
		return c.Amount(c.Pass)
	case metric.CapacityAtLeast:
		return c.Amount(c.Pass) + "+"
	case metric.CapacityBelow:
		return "<" + c.Amount(c.Fail)
	}
	return string(metric.CapacityUnknown)
}

// Carries returns the text of Limit, with the unit if the load is a rate: "39", "8.1 req/s".
func (c *Capacity) Carries() string { return c.Limit() + c.unit() }

// Holds says in a few words which load the SLA survives: "carries 39", "does not hold at 1", "its
// capacity is unknown".
func (c *Capacity) Holds() string {
	switch metric.CapacityKind(c.Kind) {
	case metric.CapacityBelow:
		return "does not hold at " + c.Amount(c.Fail) + c.unit()
	case metric.CapacityUnknown, "":
		return "its capacity is unknown"
	}
	return "carries " + c.Carries()
}

// unit returns the unit to write after a capacity that is a rate. It returns "" for other loads,
// and if the capacity is not known.
func (c *Capacity) unit() string {
	if !c.OfRate() || c.Kind == string(metric.CapacityUnknown) {
		return ""
	}
	return " " + string(metric.PerSecond)
}

// OfRate reports whether the search was for a rate.
func (c *Capacity) OfRate() bool { return c.Over == string(metric.OpenLoop) }

// Load returns the load at level n, in units of Over. Amount writes the load as text without its
// unit, and Named with its unit.
func (c *Capacity) Load(n int) float64  { return c.steps().Load(n) }
func (c *Capacity) Amount(n int) string { return c.steps().Amount(n) }
func (c *Capacity) Named(n int) string  { return c.steps().Named(n) }

func (c *Capacity) steps() metric.Capacity {
	return metric.Capacity{Over: metric.LoadKind(c.Over), Step: c.Step}
}

// Estimate writes the estimated load at which a threshold reaches its limit, in units of Over, such
// as "9.3".
func (c *Capacity) Estimate() string { return c.estimate(c.Crossing.V) }

func (c *Capacity) estimate(n float64) string {
	if c.Step > 0 {
		return metric.Capacity{Step: c.Step, Crossing: n}.Estimate()
	}
	return metric.Format(metric.Count, n)
}

// Facts returns sentences with what people need to know to trust the result.
func (c *Capacity) Facts() []string {
	var list []string
	if c.Crossing.OK {
		s := cmp.Or(c.Binding, "the first threshold") + " seems to meet its limit near " + c.Estimate() + c.unit()
		if c.CrossingLow.OK && c.CrossingHigh.OK && !c.OfRate() {
			s += fmt.Sprintf(" (%s to %s)", c.estimate(c.CrossingLow.V), c.estimate(c.CrossingHigh.V))
		}
		list = append(list, s+": this is an estimate and certifies nothing")
	}
	if c.Largest > 0 {
		list = append(list, "the largest rate that the server can sustain is "+metric.Format(metric.PerSecond, c.Largest))
	}
	for _, n := range c.NonMonotone {
		list = append(list, fmt.Sprintf("not monotone: %s fails, but the larger load %s passes; the failure at the smaller load counts", c.Named(n.Fails), c.Named(n.Passes)))
	}
	if c.Pass > 0 && !c.OfRate() {
		if c.Confirmed {
			list = append(list, "confirmed: "+c.Amount(c.Pass)+" held again on fresh requests")
		} else {
			list = append(list, "the capacity "+c.Amount(c.Pass)+" was not confirmed on fresh requests")
		}
	}
	end := fmt.Sprintf("%s in %s", plural(len(c.Probes), "probe"), text.Clock(c.Spent))
	if c.Reason != "" {
		end += "; ended: " + c.Reason
	}
	return append(append(list, end), c.Notes...)
}

// purpose returns why a capacity search measured this case; "" for a level that the plan lists.
func (c *Case) purpose() string {
	if c.Probe == nil {
		return ""
	}
	return cmp.Or(c.Probe.Purpose, "probe")
}
