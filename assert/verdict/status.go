package verdict

import (
	"fmt"
	"math"
	"strings"

	"github.com/tokgate/tokgate/metric"
)

// Status is how reports show a verdict. It follows from the verdict's outcome, severity and policy.
// The values are ordered from bad to good.
type Status int

// The values of Status, from bad to good.
const (
	StatusError Status = iota // also for a check without a result, which must not look fine
	StatusFail
	StatusInconclusive
	StatusWarning // a failed, undecided or invalid check that can only warn
	StatusSkipped
	StatusPass
)

// Status is the status of the verdict in reports.
func (v *Verdict) Status() Status {
	switch {
	case v.Outcome == Pass:
		return StatusPass
	case v.Outcome == Skipped:
		return StatusSkipped
	case v.Severity == SeverityWarn && (v.Outcome == Fail || v.Outcome == Inconclusive || v.Outcome == Error):
		return StatusWarning
	case v.Outcome == Fail:
		return StatusFail
	case v.Outcome == Inconclusive && v.Warn:
		return StatusSkipped
	case v.Outcome == Inconclusive:
		return StatusInconclusive
	}
	return StatusError
}

// Gates reports whether the verdict is on a requirement of the plan, or failed the run.
func (v *Verdict) Gates() bool {
	summary := v.Kind == KindCompare && v.Workload == ""
	return v.Required() || v.Outcome == Fail && v.Severity != SeverityWarn && !summary
}

// Explain writes the result of a verdict in one line.
func (v *Verdict) Explain() string {
	var parts []string
	if v.Outcome == Inconclusive {
		parts = append(parts, "inconclusive")
	}
	if v.Message != "" {
		parts = append(parts, v.Message)
	}
	if spare := v.Spare(); spare != "" && v.Message != "" {
		parts[len(parts)-1] += "; " + spare + " to spare"
	}
	if v.Outcome == Inconclusive && v.Needs != "" {
		parts = append(parts, v.Needs)
	}
	return strings.Join(parts, ": ")
}

// mostSpare is the largest factor that Spare writes as a number.
const mostSpare = 1000

// Spare writes how far a passed threshold on a time or a speed is from its limit. From a factor of two
// on it is a factor, such as "9.6 ×". Below a factor of two it is a share, such as "12%". For all other
// verdicts it is "".
func (v *Verdict) Spare() string {
	t := v.Threshold
	if v.Outcome != Pass || t == nil || !v.Value.OK || !t.Limit.OK || t.Unit() == metric.Ratio {
		return ""
	}
	factor := t.Limit.V / v.Value.V
	if t.Op == ">" || t.Op == ">=" {
		factor = 1 / factor
	}
	switch {
	case math.IsNaN(factor) || factor < 1 || t.Op == "":
		return ""
	case factor > mostSpare:
		return fmt.Sprintf("more than %d ×", mostSpare)
	case factor >= 2:
		return metric.FormatDigits(metric.Count, factor, 2) + " ×"
	}
	return metric.FormatDigits(metric.Ratio, factor-1, 2)
}
