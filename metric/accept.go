package metric

import (
	"fmt"
	"slices"
	"time"
)

// Accept is a bound that a team accepts for a while in place of a stricter one.
type Accept struct {
	Name string `json:"name"`
	// Of is what the bound is of: a comparison by its name ("compare.upgrade"), AcceptNights, or "" for
	// a threshold.
	Of        string   `json:"of,omitempty"`
	Workloads []string `json:"workloads,omitempty"` // addresses; none: every workload
	At        []string `json:"at,omitempty"`        // names of levels; none: every level
	Metric    string   `json:"metric"`
	Stat      string   `json:"stat,omitempty"` // "" for a metric of a whole level
	// Limit is that of a threshold, in base units. For comparisons and nights it is a change with its
	// sign: a share of the value before or, of metrics that are shares, a difference. Op is that of a
	// threshold.
	Op    string    `json:"op,omitempty"`
	Limit float64   `json:"limit"`
	Text  string    `json:"text"`  // the bound as the plan writes it
	Until time.Time `json:"until"` // it no longer holds from then on
	Why   string    `json:"why"`
}

// AcceptNights is the value of Accept.Of for a bound on nights.
const AcceptNights = "history"

// LongestAccept is the longest time that a bound may be accepted for, from the date of a run.
const LongestAccept = 90 * 24 * time.Hour

// Covers reports whether the bound is that of a statistic of a metric. The level is "" for what
// belongs to no level, such as a capacity.
func (a *Accept) Covers(of, workload, level, metric, stat string) bool {
	return a.Of == of && a.Metric == metric && a.Stat == stat &&
		(len(a.Workloads) == 0 || slices.Contains(a.Workloads, workload)) &&
		(len(a.At) == 0 || level == "" || slices.Contains(a.At, level))
}

// Includes reports whether the bound accepts at least what another one does, wherever that one counts
// and for as long.
func (a *Accept) Includes(b *Accept) bool {
	all := func(of, list []string) bool {
		return len(of) == 0 || len(list) > 0 && !slices.ContainsFunc(list, func(s string) bool { return !slices.Contains(of, s) })
	}
	def, known := Lookup(a.Metric)
	wider := a.Limit >= b.Limit
	if !known || def.Better == HigherIsBetter { // unknown is only the capacity
		wider = a.Limit <= b.Limit
	}
	return a.Of == b.Of && a.Metric == b.Metric && a.Stat == b.Stat && wider && !a.Until.Before(b.Until) &&
		all(a.Workloads, b.Workloads) && all(a.At, b.At)
}

// Lapsed says why the bound does not count for a run of the given date; "" if it does. A simulated run
// has no date, so no end has passed.
func (a *Accept) Lapsed(date time.Time) string {
	switch {
	case date.IsZero():
		return ""
	case !date.Before(a.Until):
		return "expired on " + a.Until.Format(time.DateOnly)
	case a.Until.Sub(date) > LongestAccept:
		return fmt.Sprintf("ends on %s, more than %d days after the run", a.Until.Format(time.DateOnly), int(LongestAccept.Hours()/24))
	}
	return ""
}

// Holds says that the bound holds until its end, in place of which, and why.
func (a *Accept) Holds(own string) string {
	return fmt.Sprintf("accepted until %s by accept.%s: %s instead of %s (%s)", a.Until.Format(time.DateOnly), a.Name, a.Text, own, a.Why)
}

// Wide reports whether the bound allows more than twice the change that was measured. All three are
// differences from the plan's own bound or from the value before, with the same sign.
func (a *Accept) Wide(measured, allowed float64) bool { return allowed > 2*measured }
