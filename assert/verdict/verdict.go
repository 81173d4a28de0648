package verdict

import "github.com/tokgate/tokgate/metric"

// Kind says what a verdict is about.
type Kind string

const (
	// KindLoad is one per case: were the requests sent as planned, did they
	// complete, is the measurement valid?
	KindLoad Kind = "load"
	// KindSLA is one per threshold and case.
	KindSLA Kind = "sla"
	// KindAssert is one per assert block: a point estimate.
	KindAssert Kind = "assert"
	// KindCapacity is one per capacity search: is the requirement met?
	KindCapacity Kind = "capacity"
	// KindCompare is one per compare block (were the two comparable?), which has
	// no Workload, and one per change that it requires.
	KindCompare Kind = "compare"
	// KindServer is one per server: did it start, was it the declared one?
	KindServer Kind = "server"
)

// Severity reports whether what a verdict is about can fail the run.
type Severity string

const (
	SeverityError Severity = "error"
	SeverityWarn  Severity = "warn"
)

// Cause sorts an error by who has to act on it. It is set where the error is
// found; "" is of no cause in particular.
type Cause string

const (
	CauseServer    Cause = "server"    // it did not start, died, or completed nothing
	CauseGenerator Cause = "generator" // this side was too slow to measure
	CauseInvalid   Cause = "invalid"   // what was measured is not what the plan asked for
	CauseNotRun    Cause = "not-run"   // nothing was sent
)

// Threshold is a bound as the plan's author wrote it.
type Threshold struct {
	Metric metric.Def
	Stat   metric.Stat
	Op     string  // "<", "<=", ">", ">="; "" for "every" of success, which needs no limit
	Limit  float64 // in the metric's base unit
	Text   string
}

// Verdict is the outcome of one check with everything needed to explain it.
type Verdict struct {
	Kind     Kind
	Server   string // address; "" for asserts
	Workload string // address; "" where it does not apply
	Level    string // level name; ""
	Name     string // stable across runs, no measured value in it: "sla.ttft.p95 at 30"
	Outcome  Outcome
	Cause    Cause // of an Error
	Severity Severity
	Warn     bool // the policy that holds here has an inconclusive outcome only warn
	// Message is one line: the value, the limit, the interval, the count.
	Message string
	// Needs says what would settle an inconclusive verdict; "" otherwise.
	Needs string
	// More is about how many more requests that takes; 0: unknown, or the
	// verdict is not inconclusive; -1: no number settles it.
	More int
	// Notes are further lines: labels such as "this run", the requests left
	// out of a mean, warnings.
	Notes []string

	Threshold *Threshold // nil unless KindSLA
	Implied   bool       // the plan does not have it: another threshold implies it
	Decide    string     // "certified" or "estimate", as the plan has it; "" where nothing is estimated
	Value     metric.Value
	// Low and High are one-sided bounds of the point estimate Value, each at
	// Confidence, so that they and the tests say the same; no value when there
	// are none. Low is 0 and High +Inf where the data give no bound.
	Low, High metric.Value
	// Confidence of each bound and each test, in (0.5, 1).
	Confidence float64
	N          int     // observations behind the value
	Effective  float64 // effective number of requests; 0: it plays no part
	Over       float64 // requests (or share of gaps) beyond the limit

	// Capacity is the limit as judged, nil unless KindCapacity and known: from
	// the recorded samples, also where the thresholds are others than those of
	// the search. Value is then its Pass, Low and High the levels between which
	// the limit lies.
	Capacity *metric.Capacity
	Demanded bool // of KindCapacity: the plan requires a level

	Comparison string // of KindCompare: the name of the compare block
	Metric     string // of KindCompare: the name of the metric that changed; "": of the whole
	Unchanged  bool   // of a whole comparison: nothing changed, so nothing had to be measured

	File string // of the threshold or block, for annotations
	Line int    // 1-based; 0: unknown
}

// Counts is what the verdict adds to the whole, of which the largest counts:
// Skipped adds nothing, and what only warns a pass.
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

// Required reports whether a verdict is on something that the plan requires, as
// against what every measurement must hold.
func (v *Verdict) Required() bool {
	switch v.Kind {
	case KindSLA, KindCapacity, KindAssert:
	case KindCompare:
		if v.Workload == "" { // whether there was anything to compare
			return false
		}
	default:
		return false
	}
	return v.Severity != SeverityWarn
}

// judges reports whether the verdict is on a promise of the plan.
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

// measures reports whether there was something to measure behind the verdict: a
// capacity that is not known is an error.
func (v *Verdict) measures() bool {
	return v.Kind == KindLoad || v.Kind == KindCapacity || v.Unchanged
}
