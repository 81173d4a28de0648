package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/text"
)

// MarkdownBytes is the largest length of the Markdown, in bytes. GitHub drops a job summary of more
// than 1,048,576 bytes (actions/runner, src/Runner.Worker/FileCommandManager.cs). MarkdownBytes is
// lower, because other steps may write to the same file.
const MarkdownBytes = 900 << 10

// The constants are byte budgets: for each section of a summary of MarkdownBytes, for a table cell,
// and for a message.
const (
	overviewBytes    = 50 << 10
	problemsBytes    = 250 << 10
	passedBytes      = 80 << 10
	comparisonBytes  = 100 << 10
	capacityBytes    = 100 << 10
	levelsBytes      = 150 << 10
	consistencyBytes = 20 << 10
	environmentBytes = 130 << 10
	strengthBytes    = 20 << 10
	cellBytes        = 300
	messageCell      = 1000
)

// Markdown writes the document as the summary of a CI job, in GitHub flavoured Markdown. It writes
// at most MarkdownBytes, and the most important sections first: the verdict and the capacities,
// comparisons, workloads, and what failed or is not certain.
//
// Foreign text is escaped, so that it cannot make markup, links or mentions.
func Markdown(w io.Writer, d *Document) error { return MarkdownWithin(w, d, MarkdownBytes) }

// MarkdownWithin does the same as Markdown with a limit of its own, in bytes. To fit, it shortens
// all sections in proportion, and shows the number of omitted rows. If even the verdict does not
// fit, it writes nothing.
func MarkdownWithin(w io.Writer, d *Document, limit int) error {
	for size := min(limit, MarkdownBytes); size > 0; size /= 2 {
		m := markdown{doc: d, size: size}
		out := m.verdict()
		// Below 4 KiB, write only the verdict.
		if size >= 4<<10 {
			out += m.overview() + m.comparisons() + m.problems()
			out = fitting(out, m.strength(), m.consistency(), m.levels(), m.passed(), m.capacities(), m.environment(), m.definitions())
		}
		if len(out) <= limit {
			_, err := io.WriteString(w, out)
			return err
		}
	}
	return nil
}

// MarkdownLines is the largest number of lines of a summary, about as much as people read. Other
// reports have the rest.
const MarkdownLines = 60

// fitting appends the parts to out, in order. It leaves out parts that would exceed MarkdownLines,
// and then adds a line that names the reports with everything.
func fitting(out string, parts ...string) string {
	const rest = "\nEvery level, probe and check that passed is in `report.html` and `results.json`.\n"
	left := false
	for _, p := range parts {
		if strings.Count(out+p+rest, "\n") <= MarkdownLines {
			out += p
		} else {
			left = true
		}
	}
	if left {
		out += rest
	}
	return out
}

type markdown struct {
	doc  *Document
	size int // bytes for all sections together
}

// share scales the byte budget of a section to the size of this summary. The given budget is for a
// summary of MarkdownBytes.
func (m *markdown) share(bytes int) int { return bytes * m.size / MarkdownBytes }

// section is a part of a summary. It collects rows up to a byte limit, and counts the rows that did
// not fit.
type section struct {
	b      strings.Builder
	budget int
	most   int // largest number of rows; 0: no limit
	rows   int
	left   int
}

// row adds the row that text returns, if the whole row fits. After the first row that does not fit,
// it adds no more rows. So the section shows the first rows without gaps.
func (s *section) row(text func() string) {
	if s.left == 0 && (s.most == 0 || s.rows < s.most) {
		if row := text(); s.b.Len()+len(row) <= s.budget {
			s.rows++
			s.b.WriteString(row)
			return
		}
	}
	s.left++
}

// close returns the text of the section. If rows were left out, a note at its end has their number.
func (s *section) close(noun string) string {
	if s.left == 0 {
		return s.b.String()
	}
	return s.b.String() + "\n… " + plural(s.left, "more "+noun) + " left out here; `results.json` has all of them.\n"
}

var signs = map[Status]string{
	StatusError: "🛑 error", StatusFail: "❌ fail", StatusInconclusive: "❔ inconclusive",
	StatusWarning: "⚠️ warning", StatusSkipped: "⏭️ skipped", StatusPass: "✅ pass",
}

// headline writes one line with the outcome and the plan, and one line that sums up the run.
func (m *markdown) headline() string {
	d := m.doc
	sign := map[Outcome]string{Pass: "✅", Inconclusive: "❔", Fail: "❌"}[d.Outcome]
	if sign == "" || d.Outcome == Pass && d.ExitCode != 0 {
		sign = "🛑"
	}
	out := fmt.Sprintf("## %s %s · %s\n\n%s\n\n", sign, cell(d.Word(), cellBytes), cell(d.Plan.Name, cellBytes), cell(d.Headline(), messageCell))
	if d.Simulated {
		out += "> **Simulated.** " + simulated + "\n\n"
	}
	return out
}

func (m *markdown) verdict() string {
	d := m.doc
	var b strings.Builder
	b.WriteString(m.headline())
	for i := range d.Capacities {
		if len(d.Capacities) > 3 {
			break // not needed here: the table of comparisons shows the capacities
		}
		c := &d.Capacities[i]
		line := cell(c.Answer(), messageCell)
		if len(d.Servers) > 1 {
			line += " (" + cell(c.Server, cellBytes) + ")"
		}
		fmt.Fprintf(&b, "**%s**\n\n", line)
	}
	return b.String()
}

const problemHead = "| | Check | Result | Plan |\n|---|---|---|---|\n"

func (m *markdown) problems() string {
	s := section{budget: m.share(problemsBytes), most: 12}
	n := 0
	// Statuses are ordered from worst to best.
	for st := StatusError; st <= StatusSkipped; st++ {
		for i := range m.doc.Verdicts {
			v := &m.doc.Verdicts[i]
			// Leave out checks that the plan or the budget skipped, because other tables show them.
			if v.Status() != st || st == StatusSkipped && v.Outcome == Skipped {
				continue
			}
			if n++; n == 1 {
				s.b.WriteString(problemHead)
			}
			s.row(func() string { return m.problem(v, st, 5) })
		}
	}
	if n == 0 {
		return ""
	}
	return s.close("row") + "\n"
}

// passed lists the checks that passed, with all details, in a folded section.
func (m *markdown) passed() string {
	s := section{budget: m.share(passedBytes)}
	n := 0
	for i := range m.doc.Verdicts {
		v := &m.doc.Verdicts[i]
		if v.Status() != StatusPass {
			continue
		}
		n++
		s.row(func() string {
			row := "- " + cell(v.Name, cellBytes)
			switch {
			case v.Workload != "" && v.Server != "":
				row += " (" + cell(v.Workload+" on "+v.Server, cellBytes) + ")"
			case v.Workload+v.Server != "":
				row += " (" + cell(v.Workload+v.Server, cellBytes) + ")"
			}
			if said := v.Explain(); said != "" {
				row += ": " + cell(said, messageCell)
			}
			for _, note := range v.Notes[:min(len(v.Notes), 5)] {
				row += "; _" + cell(note, cellBytes) + "_"
			}
			return row + "\n"
		})
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("<details><summary>%s passed</summary>\n\n", plural(n, "check")) + s.close("check") + "\n</details>\n"
}

// comparisons shows, for each comparison, the differences between its servers, the answer for each
// workload, and then the numbers.
func (m *markdown) comparisons() string {
	s := section{budget: m.share(comparisonBytes), most: 24}
	table := func(head []string, n int, row func(i int) []string) {
		lead := "\n| " + strings.Join(head, " | ") + " |\n" + strings.Repeat("|---", len(head)) + "|\n"
		for i := range n {
			s.row(func() string {
				text := lead
				for _, c := range row(i) {
					text += "| " + cell(c, cellBytes) + " "
				}
				lead = ""
				return text + "|\n"
			})
		}
	}
	for i := range m.doc.Comparisons {
		c := &m.doc.Comparisons[i]
		s.row(func() string {
			out := fmt.Sprintf("### %s\n\n", cell(c.Title(), messageCell))
			if line := cmp.Or(c.Skipped, c.Line); line != "" {
				out += "**" + cell(line, messageCell) + "**\n\n"
			}
			return out
		})
		for i := range c.Differences {
			s.row(func() string { return "- " + cell(c.Differences[i].Text(), messageCell) + "\n" })
		}
		table(decisionHead, len(c.Decisions), func(i int) []string { return c.Decisions[i].row() })
		table(changeHead, len(c.Changes), func(i int) []string { return c.Changes[i].row() })
		s.row(func() string { return "\n" })
		for _, note := range append(slices.Clone(c.Notes), c.outliers()...) {
			s.row(func() string { return "- " + cell(note, messageCell) + "\n" })
		}
		s.row(func() string { return "\n" })
	}
	if s.b.Len() == 0 {
		return ""
	}
	return s.close("row")
}

// capacities shows the probes of each capacity search.
func (m *markdown) capacities() string {
	s := section{budget: m.share(capacityBytes)}
	for i := range m.doc.Capacities {
		c := &m.doc.Capacities[i]
		s.row(func() string {
			out := fmt.Sprintf("\n### Capacity of %s on %s\n\n", cell(c.Workload, cellBytes), cell(c.Server, cellBytes))
			for _, fact := range c.Facts() {
				out += "- " + cell(fact, messageCell) + "\n"
			}
			return out
		})
		lead := "\n| " + strings.Join(probeHead, " | ") + " |\n|---:|---|---:|---|---:|---|\n"
		for i := range c.Probes {
			p := &c.Probes[i]
			s.row(func() string {
				row := lead
				for j, text := range p.row(c) {
					if row += "| " + cell(text, cellBytes); j == len(probeHead)-1 && p.Note != "" {
						row += "<br>_" + cell(p.Note, cellBytes) + "_"
					}
					row += " "
				}
				lead = ""
				return row + "|\n"
			})
		}
	}
	return s.close("row")
}

// problem writes a verdict as a row below problemHead. The parameter notes is the largest number of
// the verdict's notes in the row.
func (m *markdown) problem(v *Verdict, st Status, notes int) string {
	name := cell(v.Name, cellBytes)
	if v.Workload != "" {
		name += "<br>" + cell(v.Workload, cellBytes)
		if v.Server != "" {
			name += " on " + cell(v.Server, cellBytes)
		}
	} else if v.Server != "" {
		name += "<br>" + cell(v.Server, cellBytes)
	}
	result := cell(v.Explain(), messageCell)
	for _, note := range v.Notes[:min(len(v.Notes), notes)] {
		result += "<br>_" + cell(note, cellBytes) + "_"
	}
	where := ""
	if v.File != "" {
		where = cell(place(v.File, v.Line), cellBytes)
		if v.Threshold != nil {
			where += "<br>" + cell(fmt.Sprintf("%s = %q", v.Threshold.Metric, v.Threshold.Text), cellBytes)
		}
	}
	return "| " + signs[st] + " | " + name + " | " + result + " | " + where + " |\n"
}

// table writes a title and a table with one row for each case. If no row fits, it writes nothing at
// all.
func (s *section) table(title string, columns []Column, cases []*Case) {
	head := make([]string, len(columns))
	for j, c := range columns {
		head[j] = c.Head
	}
	s.grid(title, head, len(cases), func(i, j int) string { return columns[j].Cell(cases[i]) })
}

// grid writes a table with the given number of rows. The function at returns the text of the cell
// in row i and column j.
func (s *section) grid(title string, head []string, rows int, at func(i, j int) string) {
	lead := title + "| " + strings.Join(head, " | ") + " |\n" + strings.Repeat("|---:", len(head)) + "|\n"
	for i := range rows {
		s.row(func() string {
			row := lead
			for j := range head {
				row += "| " + cell(at(i, j), cellBytes) + " "
			}
			lead = ""
			return row + "|\n"
		})
	}
}

func (m *markdown) levels() string {
	s := section{budget: m.share(levelsBytes)}
	for _, g := range groups(m.doc) {
		if len(g.cases) == 0 {
			continue
		}
		s.table(fmt.Sprintf("\n### %s on %s\n\n", cell(g.workload, cellBytes), cell(g.server, cellBytes)), LevelColumns, g.cases)
		for _, more := range further {
			if columns := present(more.columns, g.cases); columns != nil {
				s.table("\n"+more.head+":\n\n", columns, g.cases)
			}
		}
		turns := TurnRows(g.cases)
		s.grid("\nTurn by turn:\n\n", TurnHead, len(turns), func(i, j int) string { return turns[i][j] })
		rows := RowRows(g.cases)
		s.grid("\nRows of the data set, lengths in tokens:\n\n", RowHead, len(rows), func(i, j int) string { return rows[i][j] })
		for _, c := range g.cases {
			if c.Skipped != "" {
				s.row(func() string {
					return fmt.Sprintf("\n%s was not run: %s\n", cell("Level "+c.Level, cellBytes), cell(c.Skipped, messageCell))
				})
			}
			for _, note := range c.Notes {
				s.row(func() string {
					return fmt.Sprintf("\n%s: %s\n", cell("Level "+c.Level, cellBytes), cell(note, messageCell))
				})
			}
			for _, f := range c.Failures {
				s.row(func() string {
					reason := ""
					if len(f.Messages) > 0 {
						reason = fmt.Sprintf(": %d × %s", f.Messages[0].Count, cell(f.Messages[0].Text, cellBytes))
					}
					return fmt.Sprintf("\n%s: %s failed (%s)%s\n", cell("Level "+c.Level, cellBytes), plural(f.Count, "request"), cell(f.Kind, cellBytes), reason)
				})
			}
		}
	}
	if s.b.Len() == 0 {
		return ""
	}
	return s.close("row")
}

// consistency writes the section on figures that contradict each other.
func (m *markdown) consistency() string {
	s := section{budget: m.share(consistencyBytes)}
	lead := "\n### Figures that contradict each other\n\n"
	for _, found := range Check(m.doc) {
		s.row(func() string {
			row := lead + "- " + cell(found, messageCell) + "\n"
			lead = ""
			return row
		})
	}
	return s.close("finding")
}

func (m *markdown) environment() string {
	d := m.doc
	s := section{budget: m.share(environmentBytes)}
	row := func(key, value string) {
		s.row(func() string { return "| " + cell(key, cellBytes) + " | " + cell(value, cellBytes) + " |\n" })
	}
	s.b.WriteString("\n<details><summary>Environment</summary>\n\n| | |\n|---|---|\n")
	row("tokgate", d.Tool)
	row("run", d.Run)
	row("started", d.When())
	row("plan", d.Plan.Path+", SHA-256 "+d.Plan.Hash)
	if d.Host != "" {
		row("load generator", d.Host)
	}
	row("prompt salt", d.Salt)
	var cases []*Case
	for i := range d.Cases {
		cases = append(cases, &d.Cases[i])
	}
	if seeds := seeds(cases); seeds != "" {
		row("prompt seeds", seeds)
	}
	if c := d.Calibration; c != nil {
		row("generator's own delay", fmt.Sprintf("p50 %s, p99 %s at %s and %s chunks/s (%s)",
			metric.Format(metric.Seconds, c.Delay50), metric.Format(metric.Seconds, c.Delay99), plural(c.Streams, "stream"), c.Rate.Format(""), "measured while no other load ran"))
	}
	for _, server := range d.Servers {
		if len(server.Fingerprint) == 0 {
			row(server.Address, "unknown")
		}
		for _, p := range server.Fingerprint {
			row(server.Address+" "+p.Key, p.Value)
		}
	}
	out := s.close("row") + "\n</details>\n"
	for _, server := range d.Servers[:min(len(d.Servers), 8)] {
		if server.Log == "" {
			continue
		}
		lines := strings.Split(text.Tail(text.Block(server.Log), 6000), "\n")
		for i, l := range lines {
			lines[i] = html(text.Inert(l))
		}
		out += "\n<details><summary>End of the log of " + html(text.Line(text.Bytes(server.Address, cellBytes))) + "</summary>\n\n<pre>\n" +
			// A blank line would end the block of HTML, so remove blank lines.
			strings.Join(slices.DeleteFunc(lines, func(l string) bool { return l == "" }), "\n") + "\n</pre>\n\n</details>\n"
	}
	return out
}

// MarkdownText makes foreign text safe in a line or a table of Markdown. It returns one escaped
// line with at most 500 bytes of the text.
func MarkdownText(s string) string { return cell(s, 500) }

// cell makes foreign text safe inside a table. It returns one line with at most n bytes of the
// text, escaped.
func cell(s string, n int) string {
	// Cut the text before cleaning it, because a message may have megabytes. Then cut it to n
	// bytes.
	return cmp.Or(escape(text.Bytes(text.Inert(text.Line(text.Bytes(s, 8*n))), n)), " ")
}

// html escapes foreign text for use inside an HTML element.
func html(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "@", "&#64;").Replace(s)
}

// escape makes every character of s literal in GitHub flavoured Markdown. It uses
// entities where GitHub would see a link or a mention in spite of a backslash.
func escape(s string) string { return escaper.Replace(s) }

var escaper = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;",
	"://", "&#58;//", "www.", "www&#46;", "WWW.", "WWW&#46;", "@", "&#64;",
	"\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "~", "\\~", "|", "\\|",
	"[", "\\[", "]", "\\]", "#", "\\#", "$", "\\$", "!", "\\!",
)
