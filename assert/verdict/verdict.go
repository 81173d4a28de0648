package verdict

import "github.com/tokgate/tokgate/metric"

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
	Metric metric.Def
	Stat   metric.Stat
	Op     string  // "<", "<=", ">", ">="; "" for success every, which has no limit
	Limit  float64 // in the metric's base unit
	Text   string
}

// Verdict is the outcome of one check, with all facts that explain it.
type Verdict struct {
	Kind     Kind
	Server   string // address; "" for asserts
	Workload string // address; "" if the verdict has no workload
	Level    string // level name; ""
	Name     string // name of the check, without measured values: "sla.ttft.p95 at 30"
	Outcome  Outcome
	Cause    Cause // of an Error
	// Sure means that the load generator cannot have caused this Fail, whatever else it disturbed.
	Sure     bool
	Severity Severity
	Warn     bool // an inconclusive outcome is only a warning, by the plan's policy
	// Message is one line with the value, the limit, the interval and the number of observations.
	Message string
	// Needs says, in words, what would settle an inconclusive verdict; else "".
	Needs string
	// More is the approximate number of further requests that would settle an inconclusive verdict.
	// It is 0 if the number is unknown or the verdict is conclusive, and -1 if no number settles
	// it.
	More int
	// Notes are remarks for people, such as what the verdict covers. Cautions are those of them that
	// matter even if it passed.
	Notes, Cautions []string

	Threshold *Threshold // nil unless KindSLA
	Implied   bool       // the threshold is not in the plan; another threshold implies it
	Decide    string     // how the plan decides it: "certified" or "estimate"; else ""
	Value     metric.Value
	// Low and High are one-sided bounds for Value, each with the confidence of the field
	// Confidence. They have no value if bounds do not apply. If the data give no bound, Low is 0
	// and High is +Inf.
	Low, High metric.Value
	// Confidence is the confidence of each bound and of each test, in (0.5, 1).
	Confidence float64
	N          int     // observations behind the value
	Effective  float64 // independent requests that the N requests are worth; 0 if not used
	Over       float64 // number of requests (or share of gaps) that do not meet the threshold

	// Capacity is the largest level whose recorded samples meet the plan's thresholds. It is nil
	// unless the verdict is of KindCapacity and the capacity is known. Then the field Value equals
	// Capacity.Pass, and Low and High bound the limit.
	Capacity *metric.Capacity
	Demanded bool // for KindCapacity: the plan requires a capacity

	Comparison string // name of the compare block, for KindCompare
	Metric     string // changed metric of a KindCompare verdict; "" for the whole comparison
	Unchanged  bool   // the servers are equal, so nothing was measured; for a whole comparison
	// BaseMissing means that the base branch lacks the plan or the server, so nothing was compared;
	// for a whole comparison.
	BaseMissing bool

	File string // file with the threshold or block, for annotations
	Line int    // 1-based; 0: unknown
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
	case KindSLA, KindCapacity, KindAssert:
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
	case KindSLA, KindAssert:
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

// Caution adds a note that matters even if the verdict is a pass.
func (v *Verdict) Caution(note string) {
	v.Notes, v.Cautions = append(v.Notes, note), append(v.Cautions, note)
}
