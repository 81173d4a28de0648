package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/report/text"
)

// Limits on a comment, in lines and bytes. GitHub accepts 65,536 characters, but nobody reads more
// than a screen.
const (
	CommentLines = 40
	CommentBytes = 60_000
)

// Comment writes the document as a comment on a pull request, in GitHub flavoured Markdown. Text
// from outside is escaped.
//
// The first two lines are hidden. The first is <!-- tokgate:NAME --> with the plan's name, by which
// a later run finds the comment. The second is <!-- red --> if the run is not green, <!-- changed
// --> if a comparison found a difference, or <!-- same -->.
func Comment(w io.Writer, d *Document) error {
	m := &markdown{doc: d, size: MarkdownBytes}
	head := fmt.Sprintf("<!-- tokgate:%s -->\n<!-- %s -->\n%s", marker(d.Plan.Name), d.news(), m.headline())
	levels := 0
	for i := range d.Cases {
		if d.Cases[i].Of == "" {
			levels++
		}
	}
	foot := fmt.Sprintf("<sub>%s · %s · %s · %s</sub>\n", cell(d.Tool, cellBytes), cell(d.Plan.Path, cellBytes), plural(levels, "level"), text.Clock(d.Duration))
	if g := m.doc.Strength; g != nil {
		foot = "<sub>" + StrengthTitle + ": " + cell(g.Says, messageCell) + "</sub>\n\n" + foot
	}
	lists := []list{m.answers(), m.changed(), m.unmet(), m.passedThresholds()}
	for rows := listRows; ; rows-- {
		out := head
		for _, l := range lists {
			out += l.first(rows)
		}
		out += foot
		if rows == 0 || strings.Count(out, "\n") <= CommentLines && len(out) <= CommentBytes {
			_, err := io.WriteString(w, out)
			return err
		}
	}
}

// list is a list in a comment. It shows the first listRows rows and counts the rest.
type list struct {
	head, noun string
	rows       []string // at most listRows rows
	left       int      // number of rows left out
}

const listRows = 8

func (l *list) add(row func() string) {
	if len(l.rows) == listRows {
		l.left++
		return
	}
	l.rows = append(l.rows, row())
}

// first returns the head and at most n rows of the list. A last line says how many rows are left
// out.
func (l *list) first(n int) string {
	if len(l.rows) == 0 || n == 0 {
		return ""
	}
	n = min(n, len(l.rows))
	out := l.head + strings.Join(l.rows[:n], "") + "\n"
	if left := l.left + len(l.rows) - n; left > 0 {
		out += "… " + plural(left, "more "+l.noun) + " in the report\n\n"
	}
	return out
}

// marker makes a plan's name safe for an HTML comment.
func marker(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, name[:min(len(name), 60)])
	// A double hyphen could end an HTML comment.
	for strings.Contains(name, "--") {
		name = strings.ReplaceAll(name, "--", "-")
	}
	return cmp.Or(strings.Trim(name, "-"), "plan")
}

// news sums up the run in one word, for a hidden line of the comment: "red", "changed" or "same".
func (d *Document) news() string {
	if d.ExitCode != 0 || d.Outcome != Pass {
		return "red"
	}
	for i := range d.Comparisons {
		if slices.ContainsFunc(d.Comparisons[i].Decisions, func(x Decision) bool { return x.Answer == "yes" || x.Answer == "no" || x.Answer == "mixed" }) {
			return "changed"
		}
	}
	return "same"
}

// passedThresholds lists the thresholds that passed, with the distance of each value from its
// limit.
func (m *markdown) passedThresholds() list {
	l := list{noun: "met threshold", head: "Met:\n"}
	for i := range m.doc.Verdicts {
		v := &m.doc.Verdicts[i]
		if spare := v.Headroom(); spare != "" {
			l.add(func() string {
				return "- " + cell(v.Workload+" at "+v.Level, cellBytes) + ": " + cell(inShort(v)[1], cellBytes) + " (" + cell(strings.TrimSpace(v.Threshold.Metric+" "+v.Threshold.Stat), cellBytes) + ")\n"
			})
		}
	}
	return l
}

// answers lists the results of comparisons and capacity searches.
func (m *markdown) answers() list {
	l := list{noun: "answer"}
	for i := range m.doc.Comparisons {
		c := &m.doc.Comparisons[i]
		if line := cmp.Or(c.Skipped, c.Line); line != "" {
			l.add(func() string { return "- **" + cell(line, messageCell) + "**\n" })
		}
	}
	for i := range m.doc.Capacities {
		c := &m.doc.Capacities[i]
		l.add(func() string {
			line := c.Answer()
			if len(m.doc.Servers) > 1 {
				line += " (" + c.Server + ")"
			}
			return "- " + cell(line, messageCell) + "\n"
		})
	}
	return l
}

// changed shows the changes of all comparisons in one table.
func (m *markdown) changed() list {
	heads := changeHead[:len(changeHead)-1] // all but the verdict, which a sign shows
	l := list{noun: "change", head: "| | " + strings.Join(heads, " | ") + " |\n" + strings.Repeat("|---", len(changeHead)) + "|\n"}
	for i := range m.doc.Comparisons {
		c := &m.doc.Comparisons[i]
		for _, x := range c.ranked() {
			l.add(func() string {
				cells := x.row()[:len(heads)]
				if len(m.doc.Comparisons) > 1 {
					cells[0] = c.Name + ": " + cells[0]
				}
				row := "| " + x.sign()
				for _, shown := range cells {
					row += " | " + cell(shown, cellBytes)
				}
				return row + " |\n"
			})
		}
	}
	return l
}

// ranked returns the changes that a comment shows. First come changes that miss their limit, then
// changes of the capacity, then those that decide a workload, then other certain changes.
func (c *Comparison) ranked() []*Change {
	binding := c.binding()
	rank := func(x *Change) int {
		switch {
		case x.status() < StatusSkipped:
			return 1
		case x.Metric == "capacity":
			return 2
		case slices.Contains(binding, x):
			return 3
		case x.Direction != "":
			return 4
		}
		return 0
	}
	var out []*Change
	for i := range c.Changes {
		if rank(&c.Changes[i]) > 0 {
			out = append(out, &c.Changes[i])
		}
	}
	slices.SortStableFunc(out, func(a, b *Change) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.status(), b.status()))
	})
	return out
}

// unmet lists the checks that failed, had an error or were not decided. A note says what would
// decide them. Failed changes are in another table, and are here only if they quote a bad answer.
func (m *markdown) unmet() list {
	l := list{noun: "row", head: problemHead}
	for st := StatusError; st < StatusSkipped; st++ {
		for i := range m.doc.Verdicts {
			v := &m.doc.Verdicts[i]
			if v.Status() == st && (v.Kind != "compare" || st != StatusFail || quotes(v)) {
				l.add(func() string { return m.problem(v, st, 1) })
			}
		}
	}
	return l
}

// quotes reports whether the first note of a verdict quotes a bad answer.
func quotes(v *Verdict) bool {
	return len(v.Notes) > 0 && strings.HasPrefix(v.Notes[0], exampleOf)
}
