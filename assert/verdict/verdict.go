package verdict

import "github.com/tokgate/tokgate/metric"

// Kind is the kind of thing that a verdict is about.
type Kind string

const (
	// KindLoad is the verdict on the measurement of each case: were the requests sent as planned,
	// did they complete, is the measurement valid?
	KindLoad Kind = "load"
	// KindSLA is the verdict on each threshold and case.
	KindSLA Kind = "sla"
	// KindAssert is the verdict on each assert block, a point estimate.
	KindAssert Kind = "assert"
	// KindCapacity is the verdict on each capacity search: is the requirement met?
	KindCapacity Kind = "capacity"
	// KindCompare is the verdict on a compare block. One verdict, without a Workload, says whether
	// the servers could be compared. The others are on the changes that the block requires.
	KindCompare Kind = "compare"
	// KindServer is the verdict on each server: did it start, and was it the declared
	// one?
	KindServer Kind = "server"
)

// Severity decides whether a verdict can fail the run.
type Severity string

const (
	SeverityError Severity = "error"
	SeverityWarn  Severity = "warn"
)

// Cause sorts errors by who has to act on them. The code that finds an error sets its cause; ""
// means no particular cause.
type Cause string

const (
	CauseServer    Cause = "server"    // the server did not start, died, or completed nothing
	CauseGenerator Cause = "generator" // the load generator was too slow to measure
	CauseInvalid   Cause = "invalid"   // the measurement is not what the plan asked for
	CauseNotRun    Cause = "not-run"   // nothing was sent
)

// Threshold is a bound as the plan's author wrote it.
type Threshold struct {
	Metric metric.Def
	Stat   metric.Stat
	Op     string  // "<", "<=", ">", ">="; "" for the statistic "every" of success, which has no limit
	Limit  float64 // in the metric's base unit
	Text   string
}

// Verdict is the outcome of one check with everything needed to explain it.
type Verdict struct {
	Kind     Kind
	Server   string // address; "" for asserts
	Workload string // address; "" if not applicable
	Level    string // level name; ""
	Name     string // stable across runs, without measured values: "sla.ttft.p95 at 30"
	Outcome  Outcome
	Cause    Cause // of an Error
	Severity Severity
	Warn     bool // an inconclusive outcome only warns, by the policy in the plan
	// Message is one line with the value, the limit, the interval and the count.
	Message string
	// Needs describes what would settle an inconclusive verdict; else "".
	Needs string
	// More is about how many more requests would settle an inconclusive verdict. It is 0 if that is
	// unknown or the verdict is not inconclusive, and -1 if no number would settle it.
	More int
	// Notes are further lines for people, such as what the verdict covers, which requests a mean
	// leaves out, and warnings.
	Notes []string

	Threshold *Threshold // nil unless KindSLA
	Implied   bool       // another threshold implies this one, which is not in the plan
	Decide    string     // "certified" or "estimate", as in the plan; "" if nothing is estimated
	Value     metric.Value
	// Low and High are one-sided bounds of the point estimate Value. Each has the confidence in
	// Confidence, as the tests have, so that bounds and tests agree. They have no value if bounds
	// do not apply. If the data give no bound, Low is 0 and High is +Inf.
	Low, High metric.Value
	// Confidence is the confidence of each bound and each test, in (0.5, 1).
	Confidence float64
	N          int     // observations behind the value
	Effective  float64 // effective number of requests; 0 if it is not used
	Over       float64 // number of requests (or share of gaps) that miss the limit

	// Capacity is the limit as judged from the recorded samples, by the present thresholds of the
	// plan. It is nil unless the verdict is KindCapacity and the limit is known. Then the field
	// Value is Capacity.Pass, and the limit lies between the levels Low and High.
	Capacity *metric.Capacity
	Demanded bool // for KindCapacity: the plan requires a capacity

	Comparison string // for KindCompare: name of the compare block
	Metric     string // for KindCompare: the name of the changed metric; "" for the verdict on the whole comparison
	Unchanged  bool   // for a whole comparison: equal servers, so nothing was measured

	File string // place of the threshold or block, for annotations
	Line int    // 1-based; 0: unknown
}

// Counts returns the outcome that the verdict gives to the run. The run's outcome is the largest of
// all. Skipped gives nothing, and a verdict that only warns gives a pass.
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

// Required reports whether the verdict is on a requirement of the plan, and not on the validity of
// a measurement.
func (v *Verdict) Required() bool {
	switch v.Kind {
	case KindSLA, KindCapacity, KindAssert:
	case KindCompare:
		if v.Workload == "" { // this verdict is on whether the servers could be compared
			return false
		}
	default:
		return false
	}
	return v.Severity != SeverityWarn
}

// judges reports whether the verdict is on a requirement of the plan, or on the result of a search
// or comparison.
func (v *Verdict) judges() bool {
	switch v.Kind {
	case KindSLA, KindAssert:
		return true
	case KindCapacity:
		return v.Demanded
	case KindCompare:
		return v.Workload != "" || v.Unchanged
	}
	return false
}

// measures reports whether the verdict shows that something was measured. A search without a result
// counts, because its verdict is an error already. So does a comparison of equal servers, which
// needs no measurement.
func (v *Verdict) measures() bool {
	return v.Kind == KindLoad || v.Kind == KindCapacity || v.Unchanged
}
