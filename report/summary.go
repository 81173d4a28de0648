package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/tokgate/tokgate/report/text"
)

// TerminalSummary writes a short form of the document: one line for each comparison and each
// workload, then the failures, and last the outcome. A CI system takes no line for a command.
func TerminalSummary(w io.Writer, d *Document, width int, color bool) error {
	t := &terminal{w: bufio.NewWriter(w), doc: d, width: max(cmp.Or(width, 80), minWidth), color: color}
	t.header()
	t.line("")
	for i := range d.Comparisons {
		c := &d.Comparisons[i]
		t.para("  ", bold, text.Bytes(cmp.Or(c.Line, c.Name+": "+c.Skipped), lineBytes))
	}
	m := markdown{doc: d}
	rows := [][]string{{"", "Workload", "Result"}}
	for _, g := range groups(d) {
		worst, tally := m.worstStatus(g)
		said := tally.line()
		for _, c := range g.capacities {
			said = c.Holds() + " · " + said
		}
		name := d.TitleOf(g.workload)
		if len(d.Servers) > 1 {
			name += " on " + d.TitleOf(g.server)
		}
		rows = append(rows, []string{marks[worst].word, text.Cut(text.Line(name), t.width/2), text.Line(said)})
	}
	t.rows(rows, fit(rows), 0, 1, 2)
	t.repeat()
	t.last()
	if t.err != nil {
		return t.err
	}
	return t.w.Flush()
}

// mostRepeated is the largest number of failed checks that are repeated at the end.
const mostRepeated = 12

// repeat writes one line for each reason why checks failed or have no result.
func (t *terminal) repeat() {
	var list []*Verdict
	for i := range t.doc.Verdicts {
		if v := &t.doc.Verdicts[i]; v.Status() < StatusWarning {
			list = append(list, v)
		}
	}
	slices.SortStableFunc(list, func(a, b *Verdict) int { return int(a.Status() - b.Status()) })
	if len(list) > 0 {
		t.line("")
	}
	causes := t.causes(list)
	for _, c := range causes[:min(len(causes), mostRepeated)] {
		said := c.first.Name
		if c.first.Workload != "" {
			said += " of " + t.doc.TitleOf(c.first.Workload)
		}
		if c.others > 0 {
			said += fmt.Sprintf(" and %d more for the same reason", c.others)
		}
		if c.first.Message != "" {
			said += ": " + c.first.Message
		}
		t.line(t.mark(c.first.Status()) + text.Cut(text.Line(text.Bytes(said, lineBytes)), t.width-len(verdictIndent)))
	}
	if rest := len(causes) - mostRepeated; rest > 0 {
		t.line(fmt.Sprintf("%s… and %d more", verdictIndent, rest))
	}
}

// because is a group of checks with the same reason. They failed, or were not measured.
type because struct {
	first  *Verdict
	others int
}

// causes groups verdicts for the summary. Errors of the same kind with the same reason form one
// group.
func (t *terminal) causes(list []*Verdict) []*because {
	var out []*because
	of := map[[3]string]*because{}
	for _, v := range list {
		key := [3]string{v.Kind, v.Cause, v.Message}
		if c := of[key]; c != nil && v.Status() == StatusError {
			c.others++
			continue
		}
		of[key] = &because{first: v}
		out = append(out, of[key])
	}
	return out
}
