package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// Status is how an output shows a verdict. It follows from the verdict's outcome, severity and
// policy. The values are ordered from bad to good.
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
	case v.Severity == "warn" && (v.Outcome == Fail || v.Outcome == Inconclusive || v.Outcome == Error):
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

// Explain writes the result of a verdict in one line.
func (v *Verdict) Explain() string {
	var parts []string
	if v.Outcome == Inconclusive {
		parts = append(parts, "inconclusive")
	}
	if v.Message != "" {
		parts = append(parts, v.Message)
	}
	if spare := v.Headroom(); spare != "" && v.Message != "" {
		parts[len(parts)-1] += "; " + spare
	}
	if v.Outcome == Inconclusive && v.Needs != "" {
		parts = append(parts, v.Needs)
	}
	return strings.Join(parts, ": ")
}

// place writes file:line, which editors and terminals link.
func place(file string, line int) string {
	if line <= 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// effective writes the effective number of requests of a verdict; "" if it is the number of
// requests itself.
func effective(v *Verdict) string {
	if !v.Effective.OK || v.Effective.V >= float64(v.N) {
		return ""
	}
	return fmt.Sprintf(" (effective %s)", metric.Format(metric.Count, v.Effective.V))
}

// Tally counts the requirements and checks of the plan by result.
type Tally struct {
	Required     int // requirements that were judged and can fail the run
	Met          int // requirements that passed
	Failed       int
	Inconclusive int
	Errors       int // checks of any kind that ended with an error
	Warnings     int
	Skipped      int // requirements without a judgement
}

// Tally counts the verdicts.
func (d *Document) Tally() Tally { return tally(d.Verdicts) }

func tally(verdicts []Verdict) Tally {
	var t Tally
	for i := range verdicts {
		v := &verdicts[i]
		if v.Required() && v.Outcome != Skipped {
			t.Required++
			if v.Outcome == Pass {
				t.Met++
			}
		}
		// A requirement counts 1. The summary line of a comparison counts 0, because its changes
		// are counted one by one.
		counted := 0
		if v.Required() {
			counted = 1
		}
		switch v.Status() {
		case StatusError:
			t.Errors++
		case StatusFail:
			t.Failed += counted
		case StatusInconclusive:
			t.Inconclusive += counted
		case StatusWarning:
			t.Warnings++
		case StatusSkipped:
			if v.Outcome == Inconclusive {
				t.Warnings++ // inconclusive, but the plan makes it only a warning
			} else if v.Required() {
				t.Skipped++
			}
		}
	}
	return t
}

// parts returns the counts as short texts, such as "1 of 2 requirements failed".
func (t Tally) parts() []string {
	var parts []string
	switch {
	case t.Failed > 0:
		parts = append(parts, fmt.Sprintf("%d of %s failed", t.Failed, plural(t.Required, "requirement")))
	case t.Required > 0 && t.Met == t.Required:
		parts = append(parts, plural(t.Required, "requirement")+" met")
	case t.Required > 0:
		parts = append(parts, fmt.Sprintf("%d of %s met", t.Met, plural(t.Required, "requirement")))
	case t.Skipped > 0:
		parts = append(parts, "no requirement was judged")
	default:
		parts = append(parts, "nothing was required")
	}
	if t.Inconclusive > 0 {
		parts = append(parts, fmt.Sprintf("%d inconclusive", t.Inconclusive))
	}
	if t.Errors > 0 {
		parts = append(parts, fmt.Sprintf("%d not measured", t.Errors))
	}
	if t.Skipped > 0 {
		parts = append(parts, fmt.Sprintf("%d skipped", t.Skipped))
	}
	if t.Warnings > 0 {
		parts = append(parts, plural(t.Warnings, "warning"))
	}
	return parts
}

// Line returns the counts in one line.
func (t Tally) Line() string { return strings.Join(t.parts(), " · ") }

// Word returns the outcome of the run as one word in capitals.
func (d *Document) Word() string {
	if d.ExitCode == 130 {
		return "INTERRUPTED"
	}
	return strings.ToUpper(string(d.Outcome))
}

// Headline writes a summary of the run in one line, without the word for the outcome.
func (d *Document) Headline() string {
	parts := d.Tally().parts()
	if said := d.Uncompared(); said != "" {
		parts = slices.Insert(parts, 0, said)
	}
	if d.Why != "" {
		parts = append(parts, d.Why)
	}
	if d.Stopped != "" && !strings.EqualFold(d.Stopped, d.Word()) {
		parts = append(parts, "stopped: "+d.Stopped)
	}
	if d.Partial {
		parts = append(parts, "partial")
	}
	if d.Simulated {
		parts = append(parts, "simulated")
	}
	parts = append(parts, fmt.Sprintf("exit %d", d.ExitCode))
	if d.Folder != "" {
		parts = append(parts, "results in "+d.Folder)
	}
	return strings.Join(parts, " · ")
}

// Uncompared says which comparisons had nothing to compare with, because the base branch lacks the
// plan or the server; "" if there are none.
func (d *Document) Uncompared() string {
	var names, why []string
	for i := range d.Verdicts {
		if v := &d.Verdicts[i]; v.BaseMissing {
			names = append(names, v.Name)
			if !slices.Contains(why, v.Message) {
				why = append(why, v.Message)
			}
		}
	}
	switch {
	case len(names) == 0:
		return ""
	case len(names) == len(d.Comparisons):
		return "nothing was compared: " + strings.Join(why, "; ")
	}
	return strings.Join(names, ", ") + " compared nothing: " + strings.Join(why, "; ")
}

// Required reports whether a verdict is on a requirement of the plan, and not on the validity of a
// measurement.
func (v *Verdict) Required() bool {
	judged := verdict.Verdict{Kind: verdict.Kind(v.Kind), Workload: v.Workload, Severity: verdict.Severity(v.Severity)}
	if judged.Kind == verdict.KindCompare && v.Workload == "" {
		// This verdict only summarises the changes of a comparison, unless there was nothing to
		// compare with.
		return v.BaseMissing && v.Severity != "warn" && (v.Outcome == Fail || v.Outcome == Inconclusive)
	}
	return judged.Required() || v.Outcome == Fail && v.Severity != "warn"
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// mostHeadroom is the largest factor that Headroom writes as a number.
const mostHeadroom = 1000

// Headroom writes how far a passed threshold on a time or a speed is from its limit. From a
// factor of two on it is a factor, such as "9.6 × to spare". Below a factor of two it is a share,
// such as "12% to spare". For all other verdicts it is "".
func (v *Verdict) Headroom() string {
	t := v.Threshold
	if v.Outcome != Pass || t == nil || !v.Value.OK || !t.Limit.OK || t.Unit == string(metric.Ratio) {
		return ""
	}
	factor := t.Limit.V / v.Value.V
	if t.Op == ">" || t.Op == ">=" {
		factor = 1 / factor
	}
	switch {
	case math.IsNaN(factor) || factor < 1 || t.Op == "":
		return ""
	case factor > mostHeadroom:
		return fmt.Sprintf("more than %d × to spare", mostHeadroom)
	case factor >= 2:
		return metric.FormatDigits(metric.Count, factor, 2) + " × to spare"
	}
	return metric.FormatDigits(metric.Ratio, factor-1, 2) + " to spare"
}
