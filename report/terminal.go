package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/text"
)

const (
	minWidth = 40 // narrower terminals wrap the lines themselves
	logLines = 15 // of a server's log
	// mostBrief is the largest number of verdicts, or of probes of a search, that get one line
	// each. The reports in files list all of them.
	mostBrief = 200
	mostCases = 500
)

// Terminal writes the document for a terminal or a CI log. The parameter width is the number of
// columns; 0 means 80. Passed checks are shortened. All their bounds and notes are in the other
// outputs.
//
// The servers come first. Then each workload on each server has a table of its levels, its capacity
// with the probes, and its verdicts. The asserts follow. The last line is the outcome.
//
// Whatever text the document contains, a CI system takes no line for a command.
func Terminal(w io.Writer, d *Document, width int, color bool) error {
	if width == 0 {
		width = 80
	}
	t := &terminal{w: bufio.NewWriter(w), doc: d, width: max(width, minWidth), color: color}
	t.header()
	t.servers()
	t.comparisons()
	t.workloads()
	t.asserts()
	t.strength()
	t.consistency()
	t.last()
	if t.err != nil {
		return t.err
	}
	return t.w.Flush()
}

type terminal struct {
	w     *bufio.Writer
	doc   *Document
	width int
	color bool
	brief int             // one-line verdicts so far
	noted map[string]bool // notes of passed verdicts that were written before
	err   error
}

// paint is a colour of the terminal, as an SGR code. The zero paint changes nothing.
type paint string

const (
	plain  paint = ""
	bold   paint = "1"
	dim    paint = "2"
	red    paint = "31"
	green  paint = "32"
	yellow paint = "33"
	redB   paint = "1;31"
	greenB paint = "1;32"
	yellB  paint = "1;33"
)

func (t *terminal) paint(p paint, s string) string {
	if !t.color || p == plain || s == "" {
		return s
	}
	return "\x1b[" + string(p) + "m" + s + "\x1b[0m"
}

// line writes one line. All output goes through it, so that text.Inert makes every line safe.
func (t *terminal) line(s string) {
	if t.err == nil {
		_, t.err = t.w.WriteString(strings.TrimRight(text.Inert(s), " ") + "\n")
	}
}

// para writes a text that may come from outside tokgate. The parameter lead is written before the
// text. Further lines are indented by the width of lead.
func (t *terminal) para(lead string, p paint, s string) {
	indent := text.Width(lead)
	for i, l := range text.Wrap(text.Line(s), max(t.width-indent, 20)) {
		if i > 0 {
			lead = strings.Repeat(" ", indent)
		}
		// Make workflow commands harmless before colour is added. A colour code at the start of the
		// line would hide the command from text.Inert.
		t.line(lead + t.paint(p, text.Inert(l)))
	}
}

func (t *terminal) header() {
	d := t.doc
	parts := []string{"tokgate " + d.Tool, cmp.Or(d.Plan.Path, d.Plan.Name)}
	if date := d.Date("2006-01-02 15:04 MST"); date != "" {
		parts = append(parts, date)
	}
	parts = append(parts, d.Took())
	if d.Partial {
		parts = append(parts, "partial: some cases were left out")
	}
	t.para("", bold, strings.Join(parts, " · "))
	if d.Simulated {
		t.para("SIMULATED  ", bold, simulated)
	}
}

func (t *terminal) servers() {
	for i := range t.doc.Servers {
		s := &t.doc.Servers[i]
		t.line("")
		facts := make([]string, 0, len(s.Fingerprint))
		for _, p := range s.Fingerprint {
			if fact, _ := metric.FactOf(p.Key); !fact.Detail || p.Value == metric.Unknown {
				facts = append(facts, p.Key+" "+p.Value)
			}
		}
		t.para("server ", plain, strings.Join(append([]string{s.Address}, facts...), " · "))
		said := false
		t.verdicts(func(v *Verdict) bool {
			mine := v.Kind == "server" && v.Server == s.Address
			said = said || mine && strings.HasPrefix(text.Line(s.Error), strings.TrimSuffix(text.Line(v.Message), "…"))
			return mine
		})
		if s.Error != "" && !said {
			t.para("  error: ", red, s.Error)
		}
		t.log(s.Log)
	}
}

// log writes the end of a server's log.
func (t *terminal) log(s string) {
	if s == "" {
		return
	}
	lines := strings.Split(text.Block(s), "\n")
	if cut := len(lines) - logLines; cut > 0 {
		t.line(fmt.Sprintf("  | … %s of its log are in the reports", plural(cut, "earlier line")))
		lines = lines[cut:]
	}
	for _, l := range lines {
		t.line("  | " + text.Cut(l, t.width-4))
	}
}

func (t *terminal) workloads() {
	shown := 0
	for _, g := range groups(t.doc) {
		t.line("")
		t.para("", bold, g.workload+" on "+g.server)
		cases := g.cases[:min(len(g.cases), mostCases-shown)]
		shown += len(cases)
		if len(cases) > 0 {
			t.table(cases)
		}
		for _, c := range cases {
			t.failures(c)
			for _, n := range c.Notes {
				t.para("  ", dim, text.Bytes("at "+c.Level+": "+n, 400))
			}
		}
		for _, c := range g.capacities {
			t.capacity(c)
		}
		t.noted = map[string]bool{}
		t.verdicts(func(v *Verdict) bool {
			return v.Kind != "server" && v.Workload == g.workload && v.Server == g.server
		})
	}
	planned := 0
	for i := range t.doc.Cases {
		if t.doc.Cases[i].Probe == nil {
			planned++
		}
	}
	if rest := planned - shown; rest > 0 {
		t.line(fmt.Sprintf("… and %s more in the reports", plural(rest, "case")))
	}
}

// failures writes how many requests of a case failed in each way, with the most frequent message.
func (t *terminal) failures(c *Case) {
	for _, f := range c.Failures {
		message := ""
		if len(f.Messages) > 0 {
			message = fmt.Sprintf(": %d × %s", f.Messages[0].Count, text.Line(f.Messages[0].Text))
		}
		t.para("  ", yellow, text.Bytes(fmt.Sprintf("at %s, %s failed (%s)%s", c.Level, plural(f.Count, "request"), f.Kind, message), 400))
	}
}

func (t *terminal) capacity(c *Capacity) {
	t.para("  ", bold, c.Answer())
	rows := [][]string{probeHead}
	last := len(probeHead) - 1
	for i := range c.Probes[:min(len(c.Probes), mostBrief)] {
		p := &c.Probes[i]
		row := p.row(c)
		switch {
		case p.Binding == "" && p.Note != "":
			row[last] = p.Note
		case p.Note != "":
			row[last] += ": " + p.Note
		}
		for j := range row {
			row[j] = text.Line(text.Bytes(row[j], lineBytes))
			if j < last {
				row[j] = text.Cut(row[j], 24)
			}
		}
		rows = append(rows, row)
	}
	if len(rows) > 1 {
		widths := fit(rows)
		// The last column takes the remaining width.
		widths[last] = min(widths[last], max(t.width-sum(widths[:last])-2, 10))
		for _, row := range rows {
			row[last] = text.Cut(row[last], widths[last])
		}
		t.rows(rows, widths, 1, 3, last)
	}
	if rest := len(c.Probes) - len(rows) + 1; rest > 0 {
		t.line(fmt.Sprintf("    … and %s more in the reports", plural(rest, "probe")))
	}
	for _, fact := range c.Facts() {
		t.para("    ", dim, text.Bytes(fact, lineBytes))
	}
}

var marks = map[Status]struct {
	word  string
	paint paint
}{
	StatusError:        {"ERROR", redB},
	StatusFail:         {"FAIL", redB},
	StatusInconclusive: {"UNSURE", yellB},
	StatusWarning:      {"warn", yellow},
	StatusSkipped:      {"skipped", dim},
	StatusPass:         {"pass", green},
}

// verdictIndent is the indentation of a verdict's text.
const verdictIndent = "          "

// verdicts writes the verdicts that the callback of selects. A passed or skipped verdict takes one
// line. All other verdicts are written with all details.
func (t *terminal) verdicts(of func(*Verdict) bool) {
	left := 0
	var list []*Verdict
	for i := range t.doc.Verdicts {
		if v := &t.doc.Verdicts[i]; of(v) {
			list = append(list, v)
		}
	}
	for len(list) > 0 {
		v, n := t.withoutRepeats(list[0]), 1
		st := v.Status()
		if st != StatusPass && v.Outcome != Skipped {
			t.verdict(v, st)
			list = list[1:]
			continue
		}
		// Skipped verdicts with the same reason become one entry.
		for v.Outcome == Skipped && n < len(list) && list[n].Outcome == Skipped && list[n].Message == v.Message {
			n++
		}
		if t.brief += n; t.brief > mostBrief {
			left += n
		} else if v.Outcome == Skipped {
			t.skipped(list[:n])
		} else {
			t.passed(v)
		}
		list = list[n:]
	}
	if left > 0 {
		t.line(fmt.Sprintf("  … and %d more passed or skipped", left))
	}
}

// withoutRepeats returns a copy of a verdict for the terminal. The copy lacks what the lines above
// it already say: for a capacity, the result of the search.
func (t *terminal) withoutRepeats(v *Verdict) *Verdict {
	c := t.doc.capacityOf(v)
	if c == nil {
		return v
	}
	short := *v
	said := strings.Join(c.Facts(), "\n")
	short.Notes = slices.DeleteFunc(slices.Clone(v.Notes), func(n string) bool { return strings.Contains(said, n) })
	if rest, ok := strings.CutPrefix(v.Message, c.Line); ok && c.Line != "" {
		short.Message = strings.TrimLeft(rest, "; ")
	}
	return &short
}

// mark returns the first word of a verdict's entry, such as FAIL.
func (t *terminal) mark(st Status) string {
	return "  " + t.paint(marks[st].paint, text.Pad(marks[st].word, 8, false))
}

// verdict writes all details of a verdict.
func (t *terminal) verdict(v *Verdict, st Status) {
	t.line(t.mark(st) + t.paint(bold, text.Cut(text.Line(v.Name), t.width-len(verdictIndent))))
	if message := v.Explain(); message != "" {
		t.para(verdictIndent, plain, text.Bytes(message, lineBytes))
	}
	if v.File != "" {
		source := ""
		if v.Threshold != nil {
			source = fmt.Sprintf(" · %s = %q", v.Threshold.Metric, v.Threshold.Text)
		}
		t.para(verdictIndent, dim, place(v.File, v.Line)+source)
	}
	for _, n := range v.Notes {
		t.para(verdictIndent+"note: ", dim, text.Bytes(n, lineBytes))
	}
}

// passed writes a passed verdict in one line: value, bounds, limit and number of requests. If the
// line is too long, it omits the bounds first, and then the number of requests.
func (t *terminal) passed(v *Verdict) {
	room := t.width - len(verdictIndent)
	name := text.Line(v.Name)
	fits := func(message string) bool { return text.Width(name)+2+text.Width(message) <= room }
	message := text.Line(v.Explain())
	if v.Threshold != nil {
		// The name of the verdict already contains the metric and the statistic. So drop them here.
		message = strings.TrimPrefix(message, strings.TrimSpace(v.Threshold.Metric+" "+v.Threshold.Stat)+" ")
	}
	for _, short := range inShort(v) {
		if !fits(message) {
			message = short
		}
	}
	if message == "" || fits(message) {
		t.line(t.mark(StatusPass) + strings.TrimSpace(name+"  "+message))
	} else {
		t.line(t.mark(StatusPass) + text.Cut(name, room))
		t.para(verdictIndent, plain, text.Bytes(message, lineBytes))
	}
	for _, n := range v.Notes {
		if t.noted[n] || v.Kind == "sla" && !warning(n) {
			continue
		}
		if t.noted != nil {
			t.noted[n] = true
		}
		t.para(verdictIndent+"note: ", dim, text.Bytes(n, lineBytes))
	}
}

// inShort returns a threshold's value, limit and headroom as text. The first text includes the
// number of requests, the second does not. It returns nil if the verdict has no value or limit.
func inShort(v *Verdict) []string {
	th := v.Threshold
	if th == nil || !v.Value.OK || !th.Limit.OK || th.Op == "" {
		return nil
	}
	value, limit := metric.FormatPair(metric.Unit(th.Unit), v.Value.V, th.Limit.V)
	if def, _ := metric.Lookup(th.Metric); def.Scope == metric.Counted && th.Stat != "mean" {
		value = "~" + value // within a bucket
	}
	short, count := fmt.Sprintf("%s %s %s", value, th.Op, limit), fmt.Sprintf(", n = %d", v.N)
	if spare := v.Headroom(); spare != "" {
		return []string{short + "; " + spare + count, short + "; " + spare}
	}
	return []string{short + count}
}

// warning reports whether a note on a passed threshold is a warning. Other notes only explain the
// result.
func warning(note string) bool {
	for _, kind := range []string{"lock-step", "certified by its margin", "point estimate", "drift", "standstill", "synthetic prompts"} {
		if strings.HasPrefix(note, kind) {
			return true
		}
	}
	return false
}

// skipped writes the verdicts of list as one entry. All were skipped for the same reason.
func (t *terminal) skipped(list []*Verdict) {
	var names []string
	for _, v := range list {
		names = append(names, text.Line(v.Name))
	}
	first, message := strings.Join(names, ", "), text.Line(list[0].Explain())
	if line := strings.TrimSpace(first + "  " + message); text.Width(line) <= t.width-len(verdictIndent) {
		t.line(t.mark(StatusSkipped) + line)
		return
	}
	for i, l := range text.Wrap(text.Bytes(first, lineBytes), t.width-len(verdictIndent)) {
		lead := verdictIndent
		if i == 0 {
			lead = t.mark(StatusSkipped)
		}
		t.line(lead + text.Inert(l))
	}
	if message != "" {
		// Write only the beginning of the message, because the problem has an entry of its own.
		t.para(verdictIndent, dim, text.Cut(message, 3*(t.width-len(verdictIndent))/2))
	}
}

// comparisons writes for each comparison its result, the servers' differences, the
// decision for each workload, and every change.
func (t *terminal) comparisons() {
	for i := range t.doc.Comparisons {
		c := &t.doc.Comparisons[i]
		t.line("")
		t.para("", bold, c.Title())
		t.verdicts(func(v *Verdict) bool { return v.Kind == "compare" && v.Workload == "" && v.Name == "compare."+c.Name })
		rows := [][]string{decisionHead}
		for i := range c.Decisions[:min(len(c.Decisions), mostCases)] {
			rows = append(rows, c.Decisions[i].row())
		}
		t.writeTable(rows, 0, 1, 2, 3)
		rows = [][]string{changeHead}
		for i := range c.Changes[:min(len(c.Changes), mostCases)] {
			rows = append(rows, c.Changes[i].row())
		}
		t.writeTable(rows, 0, 1, 2, 7, 8)
		outliers := c.outliers()
		for _, o := range outliers[:min(len(outliers), 20)] {
			t.para("    ", dim, text.Bytes(o, lineBytes))
		}
	}
}

// asserts writes verdicts that belong to no server and workload.
func (t *terminal) asserts() {
	listed := map[string]bool{}
	for i := range t.doc.Servers {
		listed[t.doc.Servers[i].Address] = true
	}
	other := func(v *Verdict) bool {
		return v.Kind != "server" && v.Kind != "compare" && v.Workload == "" || v.Kind == "server" && !listed[v.Server]
	}
	if slices.ContainsFunc(t.doc.Verdicts, func(v Verdict) bool { return other(&v) }) {
		t.line("")
		t.verdicts(other)
	}
}

// mostFound is how many contradictions of the run's own figures the terminal shows at most.
const mostFound = 5

func (t *terminal) consistency() {
	found := Check(t.doc)
	if len(found) > 0 {
		t.line("")
	}
	for i, f := range found {
		if i == mostFound {
			t.line(fmt.Sprintf("  … and %s that contradict each other", plural(len(found)-i, "more figure")))
			break
		}
		t.para("  check   ", yellow, text.Bytes(f, lineBytes))
	}
}

// strength writes which regressions the gate would notice, as a summary. The other reports list all
// planted regressions.
func (t *terminal) strength() {
	if s := t.doc.Strength; s != nil {
		t.line("")
		t.line(t.paint(bold, StrengthTitle))
		t.para("  ", plain, text.Bytes(s.Says, lineBytes))
		if s.Basis != "" {
			t.para("  ", dim, "By "+text.Bytes(s.Basis, lineBytes)+".")
		}
	}
}

// last writes the last line: the outcome and the exit code.
func (t *terminal) last() {
	p := map[Outcome]paint{Pass: greenB, Inconclusive: yellB, Fail: redB, Error: redB}[t.doc.Outcome]
	if t.doc.ExitCode != 0 && p == greenB {
		p = redB
	}
	t.line("")
	t.line(t.paint(p, t.doc.Word()) + "  " + text.Line(t.doc.Headline()))
}
