package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// place writes file:line, which editors and terminals link.
func place(file string, line int) string {
	if line <= 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// effective writes the effective number of requests of a verdict; "" if it is the number of
// requests itself.
func effective(v *verdict.Verdict) string {
	if v.Effective >= float64(v.N) {
		return ""
	}
	return fmt.Sprintf(" (effective %s)", metric.Format(metric.Count, v.Effective))
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

func tally(verdicts []verdict.Verdict) Tally {
	var t Tally
	for i := range verdicts {
		v := &verdicts[i]
		if v.Gates() && v.Outcome != verdict.Skipped {
			t.Required++
			if v.Outcome == verdict.Pass {
				t.Met++
			}
		}
		// A requirement counts 1. The summary line of a comparison counts 0, because its changes
		// are counted one by one.
		counted := 0
		if v.Gates() {
			counted = 1
		}
		switch v.Status() {
		case verdict.StatusError:
			t.Errors++
		case verdict.StatusFail:
			t.Failed += counted
		case verdict.StatusInconclusive:
			t.Inconclusive += counted
		case verdict.StatusWarning:
			t.Warnings++
		case verdict.StatusSkipped:
			if v.Outcome == verdict.Inconclusive {
				t.Warnings++ // inconclusive, but the plan makes it only a warning
			} else if v.Gates() {
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
		parts = append(parts, fmt.Sprintf("%d of %s failed", t.Failed, verdict.Count(t.Required, "requirements")))
	case t.Required > 0 && t.Met == t.Required:
		parts = append(parts, verdict.Count(t.Required, "requirements")+" met")
	case t.Required > 0:
		parts = append(parts, fmt.Sprintf("%d of %s met", t.Met, verdict.Count(t.Required, "requirements")))
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
		parts = append(parts, verdict.Count(t.Warnings, "warnings"))
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
	return strings.ToUpper(d.Outcome.String())
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
	if d.Run.Stopped != "" && !strings.EqualFold(d.Run.Stopped, d.Word()) {
		parts = append(parts, "stopped: "+d.Run.Stopped)
	}
	if d.Partial {
		parts = append(parts, "partial")
	}
	if d.Run.Simulated {
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

// News sums up the run in one word: "red", "changed" or "same".
func (d *Document) News() string {
	if d.ExitCode != 0 || d.Outcome != verdict.Pass {
		return "red"
	}
	for _, c := range d.Comparisons {
		if slices.ContainsFunc(c.Decisions, func(x compare.Decision) bool {
			return x.Answer == compare.AnswerYes || x.Answer == compare.AnswerNo || x.Answer == compare.AnswerMixed
		}) {
			return "changed"
		}
	}
	return "same"
}
