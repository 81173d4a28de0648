package report

import (
	"cmp"
	"fmt"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/report/text"
)

// Problem is something that the user should look at: a requirement that was not met or not decided,
// or a failed measurement. It is shown as a note at a line of the plan.
type Problem struct {
	Warning bool   // true if the problem does not fail the run
	Title   string // one line: what was checked, and where
	Message string // one line: its result
	File    string // "" if there is no file
	Line    int    // 1-based; 0 if unknown
}

// Problems lists the problems of a run: the worst first, then in plan order. A run that did not
// succeed has at least one. Titles and messages are single lines without control characters. They
// may quote text that tokgate did not write.
func Problems(d *Document) []Problem {
	var list []Problem
	for st := verdict.StatusError; st <= verdict.StatusSkipped; st++ {
		for i := range d.Verdicts {
			v := &d.Verdicts[i]
			if v.Status() != st || st == verdict.StatusSkipped && v.Outcome == verdict.Skipped {
				continue
			}
			message := v.Explain()
			for _, note := range v.Notes[:min(len(v.Notes), 5)] {
				message += " · " + note.Text
			}
			list = append(list, Problem{
				Warning: st >= verdict.StatusWarning,
				Title:   attr(problemTitle(v, st)),
				Message: attr(message),
				File:    cmp.Or(v.File, d.Plan.Path),
				Line:    v.Line,
			})
		}
	}
	if d.ExitCode != 0 && (len(list) == 0 || list[0].Warning) {
		p := Problem{
			Title:   attr("tokgate: " + d.Word()),
			Message: attr(fmt.Sprintf("%s (exit code %d)", cmp.Or(d.Why, d.Run.Stopped, "the outcome of the run is "+d.Outcome.String()), d.ExitCode)),
			File:    d.Plan.Path,
		}
		list = append([]Problem{p}, list...)
	}
	return list
}

// problemTitle returns a title such as "fail: sla.ttft.p95 at 30 (chat on vllm)".
func problemTitle(v *verdict.Verdict, st verdict.Status) string {
	word := map[verdict.Status]string{
		verdict.StatusError: "error", verdict.StatusFail: "fail", verdict.StatusInconclusive: "inconclusive",
		verdict.StatusWarning: "warning", verdict.StatusSkipped: "inconclusive",
	}[st]
	title := word + ": " + text.Bytes(cmp.Or(v.Name, string(v.Kind)), nameBytes)
	switch {
	case v.Workload != "" && v.Server != "":
		title += " (" + v.Workload + " on " + v.Server + ")"
	case v.Workload+v.Server != "":
		title += " (" + v.Workload + v.Server + ")"
	}
	return title
}
