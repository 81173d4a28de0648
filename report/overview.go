package report

import "strings"

// overview writes a line for each workload and server, with the worst verdict and the requirements.
func (m *markdown) overview() string {
	s := section{budget: m.share(overviewBytes), most: 16}
	lead := "| | Workload | Server | Requirements |\n|---|---|---|---|\n"
	if len(m.doc.Capacities) > 0 {
		lead = "| | Workload | Server | Requirements | Capacity |\n|---|---|---|---|---|\n"
	}
	for _, g := range groups(m.doc) {
		s.row(func() string {
			worst, t := m.worstStatus(g)
			said := t.line()
			if worst == StatusSkipped && t.Required+t.Inconclusive+t.Warnings == 0 {
				said = "not run"
			}
			row := lead + "| " + signs[worst] + " | " + cell(m.doc.TitleOf(g.workload), cellBytes) + " | " + cell(m.doc.TitleOf(g.server), cellBytes) + " | " + cell(said, cellBytes) + " |"
			if len(m.doc.Capacities) > 0 {
				var limits []string
				for _, c := range g.capacities {
					limits = append(limits, c.Carries())
				}
				row += " " + cell(strings.Join(limits, ", "), cellBytes) + " |"
			}
			lead = ""
			return row + "\n"
		})
	}
	out := m.compared()
	if s.b.Len() > 0 {
		out += s.close("row") + "\n"
	}
	return out
}

// compared writes a line for each comparison and workload, with the change that decides the
// comparison.
func (m *markdown) compared() string {
	s := section{budget: m.share(overviewBytes), most: 16}
	for i := range m.doc.Comparisons {
		c := &m.doc.Comparisons[i]
		lead := "| | Workload | Control: " + cell(c.Control, cellBytes) + " | Candidate: " + cell(c.Candidate, cellBytes) + " | Change of " + cell(c.Name, cellBytes) + " |\n|---|---|---|---|---|\n"
		if c.Skipped != "" {
			s.row(func() string {
				return lead + "| " + signs[StatusSkipped] + " |   |   |   | " + cell(c.Skipped, messageCell) + " |\n\n"
			})
			continue
		}
		for _, change := range c.binding() {
			s.row(func() string {
				row := lead + "| " + change.sign() + " | " + cell(change.Workload+" at "+change.Level, cellBytes) +
					" | " + cell(strings.TrimSpace(change.Metric+" "+change.Stat)+" "+change.Control.Format(change.Unit), cellBytes) +
					" | " + cell(change.Candidate.Format(change.Unit), cellBytes) + " | " + cell(change.Message, messageCell) + " |\n"
				lead = ""
				return row
			})
		}
		s.row(func() string { return "\n" })
	}
	if s.b.Len() == 0 {
		return ""
	}
	return s.close("row")
}

// binding returns, for each workload, the change that decides its comparison: the worst change with
// a limit. If no change has a limit, it is the first that was measured.
func (c *Comparison) binding() []*Change {
	var list []*Change
	at := map[string]int{}
	for i := range c.Changes {
		x := &c.Changes[i]
		j, ok := at[x.Workload]
		if !ok {
			at[x.Workload] = len(list)
			list = append(list, x)
			continue
		}
		if worse := x.status() < list[j].status(); x.Limit.OK && (worse || !list[j].Limit.OK) {
			list[j] = x
		}
	}
	return list
}

// sign returns a sign with a word for the change: its outcome, or its direction if it has no limit.
func (c *Change) sign() string {
	if c.Limit.OK || c.Outcome != Skipped {
		return signs[c.status()]
	}
	return map[string]string{"better": "🔼 better", "worse": "🔽 worse", "": "➖ no difference shown"}[c.Direction]
}

// status returns the status of the change, by its outcome and severity.
func (c *Change) status() Status {
	v := Verdict{Outcome: c.Outcome, Severity: c.Severity}
	return v.Status()
}

// worstStatus returns the worst status of a group's verdicts, and how many have each status. A
// group without verdicts counts as an error, because it was not judged.
func (m *markdown) worstStatus(g *group) (Status, Tally) {
	var list []Verdict
	worst := StatusPass
	for _, v := range m.doc.Verdicts {
		if v.Workload == g.workload && v.Server == g.server {
			list = append(list, v)
			worst = min(worst, v.Status())
		}
	}
	if len(list) == 0 {
		worst = StatusError
	}
	return worst, tally(list)
}

// strength shows which regressions the gate would notice. The list of planted regressions is
// folded.
func (m *markdown) strength() string {
	g := m.doc.Strength
	if g == nil {
		return ""
	}
	out := "\n**" + StrengthTitle + "**: " + cell(g.Says, messageCell) + "\n\n"
	if len(g.Planted) == 0 {
		return out
	}
	s := section{budget: m.share(strengthBytes)}
	for _, p := range g.Planted {
		s.row(func() string { return "| " + cell(p.Regression, cellBytes) + " | " + p.Word() + " |\n" })
	}
	return out + "<details><summary>" + plural(len(g.Planted), "regression") + " planted</summary>\n\n" +
		"By " + cell(g.Basis, messageCell) + ".\n\n| Planted | The gate |\n|---|---|\n" + s.close("row") + "\n</details>\n"
}
