// Package assert judges: it takes what was observed (a metric.Run) and what
// was promised (a plan.Plan) and gives Verdicts. It reads no clock, touches no
// network, and fails closed: no data is never a pass.
package assert

import (
	"fmt"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Outcome is what one check came to. Outcomes are ordered: combining two is
// taking the larger. The zero value is Pending, and pending at the end is an
// error. Skipped stands apart.
type Outcome int

const (
	Pending Outcome = iota
	Skipped         // not judged, with a reason; combines as nothing
	Pass
	Inconclusive
	Fail
	Error // could not be measured, or the measurement is invalid
)

func (o Outcome) String() string {
	switch o {
	case Pending:
		return "pending"
	case Skipped:
		return "skipped"
	case Pass:
		return "pass"
	case Inconclusive:
		return "inconclusive"
	case Fail:
		return "fail"
	case Error:
		return "error"
	}
	return fmt.Sprintf("Outcome(%d)", int(o))
}

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
	// KindCompare is one per compare block (were the two comparable?) and one per
	// change that it requires.
	KindCompare Kind = "compare"
	// KindServer is one per server: did it start, was it the declared one?
	KindServer Kind = "server"
)

// Verdict is the outcome of one check with everything needed to explain it.
type Verdict struct {
	Kind     Kind
	Server   string // address; "" for asserts
	Workload string // address; "" where it does not apply
	Level    string // level name; ""
	Name     string // stable across runs, no measured value in it: "sla.ttft.p95 at 30"
	Outcome  Outcome
	Severity plan.Severity
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

	Threshold *plan.Threshold // nil unless KindSLA
	Implied   bool            // the plan does not have it: another threshold implies it
	Decide    plan.Decide
	Value     metric.Value // the point estimate
	// Low and High are one-sided bounds, each at Confidence, so that they and
	// the tests say the same; no value when there are none. Low is 0 and High
	// +Inf where the data give no bound.
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

	File string // of the threshold or block, for annotations
	Line int    // 1-based; 0: unknown
}

// Verdicts is what a run came to.
type Verdicts struct {
	List    []Verdict // in order of the plan: servers, cases, thresholds, capacities, comparisons, asserts
	Outcome Outcome   // of the run, by the plan's policy; never Pending
	Partial bool      // --only left cases out
	// Comparisons in order of the plan, with what is not required too.
	Comparisons []*Comparison
	// Why explains an Outcome that no verdict of the list explains: nothing
	// was judged. "" otherwise.
	Why string
}

// ExitCode is the exit code of a run that came to v; interrupted outweighs
// everything. What is neither a pass, a failure nor inconclusive could not be
// measured.
func (v Verdicts) ExitCode(interrupted bool) int {
	switch {
	case interrupted:
		return ExitInterrupted
	case v.Outcome == Pass:
		return ExitPass
	case v.Outcome == Fail:
		return ExitFail
	case v.Outcome == Inconclusive:
		return ExitInconclusive
	}
	return ExitError
}

// Counts is what the verdict adds to the whole, of which the largest counts:
// Skipped adds nothing, and what only warns a pass.
func (v Verdict) Counts() Outcome {
	switch {
	case v.Outcome == Pending:
		return Error
	case v.Outcome == Skipped:
		return Skipped
	case v.Severity == plan.SeverityWarn, v.Outcome == Inconclusive && v.Warn:
		return Pass
	}
	return v.Outcome
}

// The exit codes of tokgate, a stable interface.
const (
	ExitPass         = 0
	ExitFail         = 1
	ExitPlan         = 2 // plan, values or command line wrong; nothing was started
	ExitInconclusive = 3
	ExitError        = 4 // could not be measured
	ExitInterrupted  = 130
)
