package verdict

import (
	"slices"
	"strings"

	"github.com/tokgate/tokgate/metric"
)

// Kind says what a verdict is about.
type Kind string

const (
	// KindLoad is the verdict on the measurement of a case. It fails if requests were not sent as
	// planned or did not complete, or if the measurement is not valid.
	KindLoad Kind = "load"
	// KindSLA is the verdict on a threshold at one level on one server.
	KindSLA Kind = "sla"
	// KindAssert is the verdict on an assert block. It uses point estimates.
	KindAssert Kind = "assert"
	// KindCapacity is the verdict on a capacity search: is the required capacity reached?
	KindCapacity Kind = "capacity"
	// KindCompare is the verdict on a compare block. A verdict without a Workload says whether the
	// servers could be compared. Every other verdict is on one required change.
	KindCompare Kind = "compare"
	// KindServer is the verdict on each server. It fails if the server did not start, or is not the
	// declared one.
	KindServer Kind = "server"
	// KindResidue is the verdict on what a server kept of a level.
	KindResidue Kind = "residue"
	// KindAccept is the verdict on each accept block. It only warns: if the block is not needed, too
	// wide, or does not count.
	KindAccept Kind = "accept"
)

// Severity says whether a verdict can fail the run.
type Severity string

const (
	SeverityError Severity = "error"
	SeverityWarn  Severity = "warn"
)

// Cause says who must act on an error. "" means no particular cause.
type Cause string

const (
	CauseServer    Cause = "server"    // the server did not start, died, or completed no request
	CauseGenerator Cause = "generator" // the load generator was too slow to measure the server
	CauseInvalid   Cause = "invalid"   // the measurement does not fulfil the plan
	CauseNotRun    Cause = "not-run"   // nothing was sent
)

// Threshold is a bound on a metric, as the plan's author wrote it.
type Threshold struct {
	Metric metric.Def   `json:"metric"`
	Stat   metric.Stat  `json:"stat"` // "" for a metric of the whole level
	Op     string       `json:"op"`   // "<", "<=", ">", ">="; "" for success every, which has no limit
	Limit  metric.Value `json:"limit"`
	Text   string       `json:"text"` // the whole threshold as its author wrote it
	// Implied means that the threshold is not in the plan: another threshold implies it.
	Implied bool `json:"implied,omitempty"`
	// AtCapacity means that the threshold was judged at the load that a capacity search found.
	AtCapacity bool `json:"at_capacity,omitempty"`
}

// Unit is the unit of the limit, and of the values that are compared with it.
func (t *Threshold) Unit() metric.Unit { return t.Metric.UnitOf(t.Stat) }

// Label names what is bounded as the plan does, such as "ttft p95".
func (t *Threshold) Label() string { return strings.TrimSpace(t.Metric.Name + " " + t.Stat.String()) }

// Title names what is bounded for readers, such as "TTFT p95".
func (t *Threshold) Title() string { return strings.TrimSpace(t.Metric.Title + " " + t.Stat.String()) }

// Breaks reports whether v is on the wrong side of the limit.
func (t *Threshold) Breaks(v float64) bool {
	if !t.Limit.OK {
		return false
	}
	switch t.Op {
	case "<":
		return v >= t.Limit.V
	case "<=":
		return v > t.Limit.V
	case ">":
		return v <= t.Limit.V
	case ">=":
		return v < t.Limit.V
	}
	return false
}

// Interval is what the data say of a value or of a change.
type Interval struct {
	// Low and High are one-sided bounds, each with the confidence of the field Confidence. They have no
	// value if bounds do not apply. If the data give no bound for a value, Low is 0 and High is +Inf.
	Low  metric.Value `json:"low"`
	High metric.Value `json:"high"`
	// Confidence is the confidence of each bound and of each test, in (0.5, 1); 0 if there is none.
	Confidence float64 `json:"confidence,omitempty"`
}

// Test is the result of the test of a value against a limit.
type Test struct {
	Decide    string       `json:"decide,omitempty"` // how the plan decides: "certified" or "estimate"; else ""
	Value     metric.Value `json:"value"`            // the point estimate
	Interval               // of Value
	N         int          `json:"n"`                   // observations behind the value
	Effective float64      `json:"effective,omitempty"` // independent requests that the N requests are worth; 0 if not used
	Over      float64      `json:"over,omitempty"`      // number of requests (or share of gaps) that do not meet the threshold
}

// Compares is what a verdict of KindCompare is about.
type Compares struct {
	Comparison string `json:"comparison,omitempty"` // name of the compare block
	Metric     string `json:"metric,omitempty"`     // changed metric; "" for the whole comparison
	Unchanged  bool   `json:"unchanged,omitempty"`  // the servers are equal, so nothing was measured; for a whole comparison
	// BaseMissing means that the base branch lacks the plan or the server, so nothing was compared;
	// for a whole comparison.
	BaseMissing bool `json:"base_missing,omitempty"`
}

// Place is a line of a plan.
type Place struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"` // 1-based; 0: unknown
}

// Note is a remark for people, such as what the verdict covers.
type Note struct {
	Kind NoteKind `json:"kind,omitempty"`
	Text string   `json:"text"`
}

// NoteKind says what a note is for.
type NoteKind string

const (
	Remark  NoteKind = ""
	Caution NoteKind = "caution" // matters even if the verdict is a pass
	Quote   NoteKind = "quote"   // quotes a bad answer
)

// Verdict is the outcome of one check, with all facts that explain it.
type Verdict struct {
	Kind     Kind    `json:"kind"`
	Server   string  `json:"server,omitempty"`   // address; "" for asserts
	Workload string  `json:"workload,omitempty"` // address; "" if the verdict has no workload
	Level    string  `json:"level,omitempty"`    // level name; ""
	Name     string  `json:"name"`               // name of the check, without measured values: "sla.ttft.p95 at 30"
	Outcome  Outcome `json:"outcome"`
	Cause    Cause   `json:"cause,omitempty"` // of an Error
	// Sure means that the load generator cannot have caused this Fail, whatever else it disturbed.
	Sure     bool     `json:"sure,omitempty"`
	Severity Severity `json:"severity"`
	Warn     bool     `json:"warn"` // an inconclusive outcome is only a warning, by the plan's policy
	// Message is one line with the value, the limit, the interval and the number of observations.
	Message string `json:"message"`
	Lack
	Notes []Note `json:"notes,omitempty"`

	Threshold *Threshold `json:"threshold,omitempty"` // nil unless KindSLA
	Test
	// Capacity is the largest level whose recorded samples meet the plan's thresholds. It is nil
	// unless the verdict is of KindCapacity and the capacity is known. Then the field Value equals
	// Capacity.Pass, and Low and High bound the limit.
	Capacity *metric.Capacity `json:"-"`
	Demanded bool             `json:"demanded,omitempty"` // for KindCapacity: the plan requires a capacity
	Accepted *Accepted        `json:"accepted,omitempty"` // nil unless an accept block sets the bound
	Compares
	Place // line with the threshold or block, for annotations
}

// Lack is what would settle an inconclusive verdict.
type Lack struct {
	Needs string `json:"needs,omitempty"` // what would settle it, in words; "" if it is conclusive
	// More is the approximate number of further requests: 0 if it is unknown or the verdict is
	// conclusive, and -1 if no number settles the verdict.
	More int `json:"more,omitempty"`
}

// NameAt names a check at a level.
func NameAt(check, level string) string { return check + " at " + level }

// Check is the name of the check without its level.
func (v *Verdict) Check() string { return strings.TrimSuffix(v.Name, NameAt("", v.Level)) }

// Accepted says which accept block sets the bound of a verdict, and whether it is needed.
type Accepted struct {
	Name string  `json:"name"`
	Own  Outcome `json:"own"`            // by the plan's own bound
	Wide bool    `json:"wide,omitempty"` // more than twice the change that was measured is accepted
}

// Accept notes that a sets the bound of the verdict, in place of the plan's own. The bound passes or
// fails the value by own. measured and allowed are the changes that a.Wide compares.
func (v *Verdict) Accept(a *metric.Accept, text string, own Outcome, measured, allowed float64) {
	v.Accepted = &Accepted{Name: a.Name, Own: own}
	if own == Pass {
		return
	}
	if v.Outcome == Pass {
		v.Accepted.Wide = own == Fail && a.Wide(measured, allowed)
		v.Caution(a.Holds(text))
	} else {
		v.Note(a.Holds(text))
	}
}

// Remarks returns texts as notes.
func Remarks(texts ...string) (notes []Note) {
	for _, text := range texts {
		notes = append(notes, Note{Remark, text})
	}
	return notes
}

// Note adds remarks.
func (v *Verdict) Note(texts ...string) { v.Notes = append(v.Notes, Remarks(texts...)...) }

// Caution adds a note that matters even if the verdict is a pass.
func (v *Verdict) Caution(text string) { v.Notes = append(v.Notes, Note{Caution, text}) }

// NotesOf returns the texts of the notes of the given kinds; without a kind those of all notes.
func (v *Verdict) NotesOf(kinds ...NoteKind) (texts []string) {
	for _, n := range v.Notes {
		if len(kinds) == 0 || slices.Contains(kinds, n.Kind) {
			texts = append(texts, n.Text)
		}
	}
	return texts
}

// Counts returns what the verdict contributes to the outcome of the run, which is the worst
// contribution. A skipped verdict contributes nothing, and a verdict that only warns contributes a
// pass.
func (v *Verdict) Counts() Outcome {
	switch {
	case v.Outcome == Pending:
		return Error
	case v.Outcome == Skipped:
		return Skipped
	case v.Severity == SeverityWarn, v.Outcome == Inconclusive && v.Warn:
		return Pass
	}
	return v.Outcome
}

// Required reports whether the verdict is on a requirement of the plan. A verdict on the validity
// of a measurement is not.
func (v *Verdict) Required() bool {
	switch v.Kind {
	case KindSLA, KindCapacity, KindAssert, KindResidue:
	case KindCompare:
		// A verdict on a whole comparison only says whether the servers could be compared. If there
		// was nothing to compare with, it can be what the run fails by.
		if v.Workload == "" && !(v.BaseMissing && (v.Outcome == Fail || v.Outcome == Inconclusive)) {
			return false
		}
	default:
		return false
	}
	return v.Severity != SeverityWarn
}

// judges reports whether the verdict decides something that the plan asks for: a threshold, an
// assert, a required capacity or a comparison.
func (v *Verdict) judges() bool {
	switch v.Kind {
	case KindSLA, KindAssert, KindResidue:
		return true
	case KindCapacity:
		return v.Demanded
	case KindCompare:
		return v.Workload != "" || v.Unchanged || v.BaseMissing
	}
	return false
}

// measures reports whether the verdict is about a measured load or a search, or about equal
// servers, which need no measurement.
func (v *Verdict) measures() bool {
	return v.Kind == KindLoad || v.Kind == KindCapacity || v.Unchanged
}
