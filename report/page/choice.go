package page

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
)

// choice says which server to take for each workload, such as "Take spec for Chat; keep base for RAG:
// nothing is better there". It returns "" if nothing was compared.
func choice(r Run) string {
	var order []string                 // what to do, in the order of the workloads
	workloads := map[string][]string{} // by what to do
	for _, w := range decided(r) {
		said := take(r, w)
		if !slices.Contains(order, said) {
			order = append(order, said)
		}
		workloads[said] = append(workloads[said], r.title(w))
	}
	var parts []string
	for _, said := range order {
		parts = append(parts, strings.Replace(said, "%", verdict.Enumerate(workloads[said]), 1))
	}
	if len(parts) == 0 {
		return ""
	}
	return Capital(strings.Join(parts, "; ")) + "."
}

func decided(r Run) []string {
	var out []string
	for i := range r.Comparisons {
		for _, d := range r.Comparisons[i].Decisions {
			if !slices.Contains(out, d.Workload) {
				out = append(out, d.Workload)
			}
		}
	}
	return out
}

// take says which server to take for a workload, which stands for the sign % in it.
func take(r Run, workload string) string {
	better, control, unknown := winners(r, workload)
	switch {
	case len(better) > 0:
		var titles []string
		for _, server := range better {
			titles = append(titles, r.title(server))
		}
		return "take " + strings.Join(titles, " or ") + " for %"
	case unknown:
		return "the measurements do not tell which server is better for %"
	}
	return "keep " + control + " for %: no candidate is better there and meets every requirement"
}

// winners returns the candidates to take for a workload: better at some level, worse at none, and
// without a missed requirement of their own. unknown means that a comparison could not tell.
func winners(r Run, workload string) (better []string, control string, unknown bool) {
	for _, c := range r.Comparisons {
		wins, loses := false, missed(r, workload, c.Candidate)
		for _, d := range c.Decisions {
			if d.Workload != workload {
				continue
			}
			control = r.title(c.Control)
			wins, loses, unknown = wins || d.Answer == "yes", loses || d.Answer == "no" || d.Answer == "mixed", unknown || d.Answer == "unknown"
		}
		if wins && !loses {
			better = append(better, c.Candidate)
		}
	}
	return better, control, unknown
}

// missed reports whether a requirement of a workload failed on a server.
func missed(r Run, workload, server string) bool {
	return slices.ContainsFunc(r.Verdicts, func(v verdict.Verdict) bool {
		return v.Workload == workload && v.Server == server && v.Status() <= verdict.StatusFail
	})
}

func compared(r Run) []string {
	var out []string
	if said := choice(r); len(r.Comparisons) > 1 && said != "" {
		out = append(out, said)
	}
	for _, c := range r.Comparisons {
		if said := cmp.Or(c.Skipped, c.Line); said != "" {
			out = append(out, Line(said))
		}
	}
	return out
}

// answers returns the results of comparisons and of capacity searches. If there are more searches
// than most, it leaves them out: the overview has a column of them.
func answers(r Run, most int) []string {
	out := compared(r)
	if len(r.Run.Capacities) > most {
		return out
	}
	for _, c := range r.Run.Capacities {
		said := Line(c.Answer()) + disputed(r, c)
		if len(r.Run.Servers) > 1 {
			said += " (" + r.title(c.Server) + ")"
		}
		out = append(out, said)
	}
	return out
}
