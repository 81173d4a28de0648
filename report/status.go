package report

import (
	"fmt"
	"strings"

	"github.com/tokgate/tokgate/metric"
)

// statusKind is how an output shows a verdict: its outcome under its severity
// and the policy.
type statusKind int

const (
	statusError statusKind = iota // also pending: what was not judged is not fine
	statusFail
	statusInconclusive
	statusWarning // of severity warn, and not a pass
	statusSkipped
	statusPass
)

func status(v *Verdict) statusKind {
	switch {
	case v.Outcome == Pass:
		return statusPass
	case v.Outcome == Skipped:
		return statusSkipped
	case v.Severity == "warn" && (v.Outcome == Fail || v.Outcome == Inconclusive || v.Outcome == Error):
		return statusWarning
	case v.Outcome == Fail:
		return statusFail
	case v.Outcome == Inconclusive && v.Warn:
		return statusSkipped
	case v.Outcome == Inconclusive:
		return statusInconclusive
	}
	return statusError
}

// explain is the one line that says what a verdict came to.
func explain(v *Verdict) string {
	var parts []string
	if v.Outcome == Inconclusive {
		parts = append(parts, "inconclusive")
	}
	if v.Message != "" {
		parts = append(parts, v.Message)
	}
	if v.Outcome == Inconclusive && v.Needs != "" && !strings.Contains(v.Message, v.Needs) {
		parts = append(parts, v.Needs)
	}
	return strings.Join(parts, ": ")
}

// place is file:line, as editors and terminals link it.
func place(file string, line int) string {
	if line <= 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// effective says how many independent requests the n were worth, where that
// differs.
func effective(v *Verdict) string {
	if !v.Effective.OK || v.Effective.V >= float64(v.N) {
		return ""
	}
	return fmt.Sprintf(" (effective %s)", metric.Format(metric.Count, v.Effective.V))
}

// tally counts what the plan required.
type tally struct {
	required     int // that can fail the run and were judged
	met          int // of them, those that passed
	failed       int
	inconclusive int
	errors       int // of any kind: not measured
	warnings     int
	skipped      int // requirements that were not judged
}

func count(d *Document) tally {
	var t tally
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if required(v) && v.Outcome != Skipped {
			t.required++
			if v.Outcome == Pass {
				t.met++
			}
		}
		switch status(v) {
		case statusError:
			t.errors++
		case statusFail:
			t.failed++
		case statusInconclusive:
			t.inconclusive++
		case statusWarning:
			t.warnings++
		case statusSkipped:
			if v.Outcome == Inconclusive {
				t.warnings++ // the policy shows it so
			} else if required(v) {
				t.skipped++
			}
		}
	}
	return t
}

// verdictWord is the outcome of the run in one word.
func verdictWord(d *Document) string {
	if d.ExitCode == 130 {
		return "INTERRUPTED"
	}
	return strings.ToUpper(string(d.Outcome))
}

// verdictLine is the run in one line, without the outcome's word.
func verdictLine(d *Document) string {
	t := count(d)
	var parts []string
	switch {
	case t.failed > 0:
		parts = append(parts, fmt.Sprintf("%d of %s failed", t.failed, plural(t.required, "requirement")))
	case t.required > 0 && t.met == t.required:
		parts = append(parts, plural(t.required, "requirement")+" met")
	case t.required > 0:
		parts = append(parts, fmt.Sprintf("%d of %s met", t.met, plural(t.required, "requirement")))
	case t.skipped > 0:
		parts = append(parts, "no requirement was judged")
	default:
		parts = append(parts, "nothing was required")
	}
	if t.inconclusive > 0 {
		parts = append(parts, fmt.Sprintf("%d inconclusive", t.inconclusive))
	}
	if t.errors > 0 {
		parts = append(parts, fmt.Sprintf("%d not measured", t.errors))
	}
	if t.skipped > 0 {
		parts = append(parts, fmt.Sprintf("%d skipped", t.skipped))
	}
	if t.warnings > 0 {
		parts = append(parts, plural(t.warnings, "warning"))
	}
	if d.Why != "" {
		parts = append(parts, d.Why)
	}
	if d.Stopped != "" {
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

// required says whether a verdict is on something that the plan's author
// required, as against what every measurement must hold.
func required(v *Verdict) bool {
	return (v.Kind == "sla" || v.Kind == "capacity" || v.Kind == "assert" || v.Outcome == Fail) && v.Severity != "warn"
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
