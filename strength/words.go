package strength

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/plan"
)

// Headline says in one sentence which regressions the gate lets pass. It names the largest one of
// each kind of slowdown, and other regressions only if no slowdown passes. It is "" if no
// regression was tried.
func (r *Result) Headline() string {
	var pass, some []string
	tried := 0
	for _, kind := range []string{Decode, Prefill, Overhead} {
		if f := r.worst(kind); f != nil {
			pass = append(pass, f.words())
		}
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Runs() > 0 {
			tried++
		}
		if !slices.Contains(plan.Slower, f.Kind) && f.passes() {
			some = append(some, f.words())
		}
	}
	switch {
	case tried == 0:
		return ""
	case len(pass) > 0:
		return "A server that " + strings.Join(pass, ", or ") + " would pass."
	case len(some) > 0:
		return "Every slowdown that was planted is noticed; a server that " + strings.Join(some, ", or ") + " would pass."
	}
	if slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Undecided > f.Failed }) {
		return "No regression that was planted passes, but not every one fails."
	}
	return "Every regression that was planted is noticed."
}

func (f *Finding) passes() bool { return f.Runs() > 0 && f.Passes() > 0.5 }

// worst returns the largest regression of the given kind that the gate lets pass. It returns nil if
// there is none.
func (r *Result) worst(kind string) *Finding {
	var out *Finding
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Kind == kind && f.passes() && (out == nil || f.Size > out.Size) {
			out = f
		}
	}
	return out
}

// Basis says how many runs the result is based on, and of which kind.
func (r *Result) Basis() string {
	per := r.Unchanged.Runs()
	if r.Recorded {
		return fmt.Sprintf("an approximation for closed loops: the recorded run, stretched and judged again %d times", r.Runs())
	}
	return fmt.Sprintf("%d simulated runs of the plan, %d of each", r.Runs(), per)
}

// Row returns a row of the report. It has the regression, how often the gate fails with it, and how
// often the outcome is undecided.
func (f *Finding) Row() []string {
	if f.Absent {
		return []string{f.String(), "–", "nothing of the kind"}
	}
	return f.row(f.String())
}

func (t Tally) row(name string) []string {
	undecided := ""
	if t.Undecided > 0 {
		undecided = fmt.Sprintf("undecided in %d", t.Undecided)
	}
	return []string{name, fmt.Sprintf("%d of %d", t.Failed, t.Runs()), undecided}
}

// Rows returns a row for the unchanged server, and then a row for each finding.
func (r *Result) Rows() [][]string {
	rows := [][]string{r.Unchanged.row("the server as it is")}
	for i := range r.Findings {
		rows = append(rows, r.Findings[i].Row())
	}
	return rows
}
