package page

import (
	"fmt"
	"strings"

	"github.com/tokgate/tokgate/report"
)

// sign returns the cell of a status: its sign, its word and its colour.
func sign(st report.Status) Cell {
	s := statuses[st]
	return Cell{Text: s[2], Class: s[0], Sign: s[1]}
}

// disputed says that the plan's own levels contradict a capacity; "" if none does.
func disputed(r Run, c *report.Capacity) string {
	failed := r.Disputed(c)
	if len(failed) == 0 {
		return ""
	}
	return line(", disputed: failed at " + strings.Join(failed, ", "))
}

func lines(list []string) []string {
	var out []string
	for _, l := range list {
		out = append(out, line(l))
	}
	return out
}

// statuses gives each status of a verdict a class, a sign and a word. So the page shows no status
// by its colour alone.
var statuses = map[report.Status][3]string{ // class, sign, word
	report.StatusError:        {"error", "!", "not measured"},
	report.StatusFail:         {"fail", "✗", "failed"},
	report.StatusInconclusive: {"unsure", "?", "inconclusive"},
	report.StatusWarning:      {"unsure", "!", "warning"},
	report.StatusSkipped:      {"none", "–", "skipped"},
	report.StatusPass:         {"pass", "✓", "passed"},
}

// mostLines is the largest number of lines of the plan's source on the page.
const mostLines = 2000

// anchor returns the link to a line of the plan on the page; "" if the plan is not on
// the page.
func anchor(r Run, file string, lineNo int) string {
	for i := range r.sources {
		if r.Plan.Sources[i].File == file && lineNo > 0 && lineNo <= mostLines && lineNo <= len(r.sources[i]) {
			return fmt.Sprintf("#%sL%d-%d", r.ID, i+1, lineNo)
		}
	}
	return ""
}

// evenly picks at most n elements at even distances, including the first and the last.
func evenly[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	var out []T
	for i := range n {
		out = append(out, list[i*(len(list)-1)/(n-1)])
	}
	return out
}

// levelStatus returns the worst status of the requirements on a case. What a server carries is one
// statement; whether it changed as a comparison requires is another, so it is left out here. If the case has no
// requirements, judged is false.
func levelStatus(r Run, c *report.Case) (worst report.Status, judged bool) {
	worst = report.StatusPass
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		if v.Server != c.Server || v.Workload != c.Workload || v.Level != c.Level || v.Outcome == report.Skipped || v.Kind == "compare" {
			continue
		}
		// If the verdict on the load failed, the case fails. If it passed, that says nothing about
		// requirements.
		judged = judged || v.Kind == "sla" || v.Status() < report.StatusSkipped
		worst = min(worst, v.Status())
	}
	return worst, judged
}
