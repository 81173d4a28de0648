package page

import (
	"fmt"
	"math"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
)

func sign(st verdict.Status) Cell {
	s := statuses[st]
	return Cell{Text: s[2], Class: s[0], Sign: s[1]}
}

// disputed says that the plan's own levels contradict a capacity; "" if none does.
func disputed(r Run, c *metric.Capacity) string {
	failed := r.Disputed(c)
	if len(failed) == 0 {
		return ""
	}
	return Line(", disputed: failed at " + strings.Join(failed, ", "))
}

func lines(list []string) []string {
	var out []string
	for _, l := range list {
		out = append(out, Line(l))
	}
	return out
}

// statuses gives each status of a verdict a class, a sign and a word. So the page shows no status
// by its colour alone.
var statuses = map[verdict.Status][3]string{ // class, sign, word
	verdict.StatusError:        {"error", "!", "not measured"},
	verdict.StatusFail:         {"fail", "✗", "failed"},
	verdict.StatusInconclusive: {"unsure", "?", "inconclusive"},
	verdict.StatusWarning:      {"unsure", "!", "warning"},
	verdict.StatusSkipped:      {"none", "–", "skipped"},
	verdict.StatusPass:         {"pass", "✓", "passed"},
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
func levelStatus(r Run, c *report.Case) (worst verdict.Status, judged bool) {
	worst = verdict.StatusPass
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		if v.Server != c.Server || v.Workload != c.Workload || v.Level != c.Name || v.Outcome == verdict.Skipped || v.Kind == "compare" {
			continue
		}
		// If the verdict on the load failed, the case fails. If it passed, that says nothing about
		// requirements.
		judged = judged || v.Kind == "sla" || v.Status() < verdict.StatusSkipped
		worst = min(worst, v.Status())
	}
	return worst, judged
}

// extreme is the best or the worst value of a metric. It also tells the run and the case that the
// value is from.
type extreme struct {
	v  float64
	r  Run
	c  *report.Case
	ok bool
}

// extremes returns the lowest and the highest value of all levels, with their runs. It includes the
// probes of capacity searches, because the page shows them too.
func extremes(runs []Run, of func(*report.Case) metric.Value) (low, high extreme) {
	measured(runs, func(r Run, c *report.Case) {
		n := of(c)
		if !n.OK || math.IsInf(n.V, 0) {
			return
		}
		if !low.ok || n.V < low.v {
			low = extreme{n.V, r, c, true}
		}
		if !high.ok || n.V > high.v {
			high = extreme{n.V, r, c, true}
		}
	})
	return low, high
}

// big formats a large number with a prefix and three significant digits.
func big(v float64) string {
	switch {
	case v >= 0.9995e9:
		return metric.Format(metric.Count, v/1e9) + " billion"
	case v >= 0.9995e6:
		return metric.Format(metric.Count, v/1e6) + " million"
	case v >= 0.9995e4:
		return metric.Format(metric.Count, v/1e3) + " thousand"
	}
	return metric.Format(metric.Count, math.Round(v))
}
