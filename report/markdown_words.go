package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/metric"
)

// definitions writes the definitions of the report's metrics, because other tools define some
// metrics differently.
func (m *markdown) definitions() string {
	used := m.used()
	if len(used) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n<details><summary>How the metrics are defined</summary>\n\n")
	for _, def := range metric.Defs {
		if used[def.Name] {
			fmt.Fprintf(&b, "- **%s** (`%s`, %s): %s No value when: %s.\n", escape(def.Title), def.Name, escape(string(def.Unit)), escape(def.Doc), escape(def.NoValue))
		}
	}
	b.WriteString(m.windows())
	b.WriteString("\nPercentiles are nearest-rank over all requests due; a failed request counts as worse than every other request. " +
		"∞ means that the percentile falls on a failed request, and – that there is no value.\n\n</details>\n")
	return b.String()
}

// windows explains over which part of a level the report's rates are taken.
func (m *markdown) windows() string {
	of := map[string][]string{}
	for i := range m.doc.Cases {
		c := &m.doc.Cases[i]
		if !slices.Contains(of[c.RatesOver], c.Workload) {
			of[c.RatesOver] = append(of[c.RatesOver], c.Workload)
		}
	}
	const steady = "over the time in which every slot was busy, without ramp and drain (`window = \"steady\"`)"
	all := of[string(metric.All)]
	switch {
	case len(all) == 0:
		return "\nThroughput and other rates are " + steady + ".\n"
	case len(of) == 1:
		return "\nThroughput and other rates are " + overAll + ".\n"
	}
	return "\nThroughput and other rates are " + steady + "; those of " + cell(strings.Join(all, ", "), messageCell) + " are " + overAll + ".\n"
}

const overAll = "over the time from the start of the first measured request to the end of the last (`window = \"all\"`)"

// used returns the names of the metrics in the report's thresholds and tables of levels.
func (m *markdown) used() map[string]bool {
	used := map[string]bool{}
	for i := range m.doc.Verdicts {
		if th := m.doc.Verdicts[i].Threshold; th != nil {
			used[th.Metric] = true
		}
	}
	for i := range m.doc.Cases {
		for _, s := range m.doc.Cases[i].Metrics {
			if s.Why == "" && slices.ContainsFunc(slices.Concat(LevelColumns, answerColumns, insideColumns), func(c Column) bool { return c.Metric == s.Metric }) {
				used[s.Metric] = true
			}
		}
	}
	return used
}
