// Package terminal renders reports for a terminal or a CI log. What they show is made by package
// page. Whatever text a report contains, a CI system takes no line of it for a command.
package terminal

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/page"
	"github.com/tokgate/tokgate/report/text"
)

const (
	minWidth = 40 // narrower terminals wrap the lines themselves
	logLines = 15 // of a server's log
	// mostPassed is the largest number of passed checks that get a line each, and mostRows that of
	// the rows of a table. The reports in files have all of them.
	mostPassed = 200
	mostRows   = 500
	lineBytes  = 2000 // of one paragraph
)

// Write writes a run: the servers, each comparison, each workload with its checks, and last the
// outcome. The parameter width is the number of columns; 0 means 80. Passed checks are shortened.
func Write(w io.Writer, d *report.Document, width int, color bool) error {
	return write(w, d, page.Terminal(d), width, color)
}

// Summary writes a short form of a run: a line for each comparison and each workload, then what did
// not pass, and last the outcome.
func Summary(w io.Writer, d *report.Document, width int, color bool) error {
	return write(w, d, page.Summary(d), width, color, short)
}

func short(t *terminal) { t.short = true }

func write(w io.Writer, d *report.Document, sections []page.Section, width int, color bool, options ...func(*terminal)) error {
	t := newTerminal(w, width, color)
	for _, o := range options {
		o(t)
	}
	t.para("", bold, page.Heading(d))
	if d.Run.Simulated {
		t.para("SIMULATED  ", bold, report.SimulatedNote)
	}
	t.sections(sections)
	p := colors[page.ClassOf(d)]
	t.line("")
	t.line(t.paint(p, d.Word()) + "  " + text.Line(d.Headline()))
	return t.end()
}

// Together writes several runs side by side, and last the outcome of each.
func Together(w io.Writer, docs []*report.Document, width int, color bool) error {
	list := page.Together(docs)
	return Sections(w, append(list[1:], list[0]), width, color)
}

// Sections writes sections alone.
func Sections(w io.Writer, sections []page.Section, width int, color bool) error {
	t := newTerminal(w, width, color)
	t.sections(sections)
	return t.end()
}

type terminal struct {
	w      *bufio.Writer
	width  int
	color  bool
	short  bool
	lines  int
	passed int             // checks that passed, so far
	noted  map[string]bool // notes of passed checks of this section
	err    error
}

func newTerminal(w io.Writer, width int, color bool) *terminal {
	return &terminal{w: bufio.NewWriter(w), width: max(cmp.Or(width, 80), minWidth), color: color}
}

func (t *terminal) end() error {
	if t.err != nil {
		return t.err
	}
	return t.w.Flush()
}

// paint is a colour of the terminal, as an SGR code. The zero paint changes nothing.
type paint string

const (
	plain paint = ""
	bold  paint = "1"
	dim   paint = "2"
)

var colors = map[string]paint{page.Missing: "1;31", page.Failed: "1;31", page.Unsure: "1;33", page.Worse: "31", page.Passed: "32"}

func (t *terminal) paint(p paint, s string) string {
	if !t.color || p == plain || s == "" {
		return s
	}
	return "\x1b[" + string(p) + "m" + s + "\x1b[0m"
}

// line writes one line. All output goes through it, so that text.Inert makes every line safe.
func (t *terminal) line(s string) {
	t.lines++
	if t.err == nil {
		_, t.err = t.w.WriteString(strings.TrimRight(text.Inert(s), " ") + "\n")
	}
}

// para writes a text that may come from outside tokgate. The parameter lead is written before the
// text. Further lines are indented by the width of lead.
func (t *terminal) para(lead string, p paint, s string) {
	indent := text.Width(lead)
	for i, l := range text.Wrap(text.Line(text.Bytes(s, lineBytes)), max(t.width-indent, 20)) {
		if i > 0 {
			lead = strings.Repeat(" ", indent)
		}
		// Make workflow commands harmless before colour is added. A colour code at the start of the
		// line would hide the command from text.Inert.
		t.line(lead + t.paint(p, text.Inert(l)))
	}
}

func (t *terminal) sections(list []page.Section) {
	for _, s := range list {
		if t.lines > 0 {
			t.line("")
		}
		if s.Title != "" {
			t.para("", bold, s.Title)
		}
		t.noted = map[string]bool{}
		titled := s.Title != ""
		for _, b := range s.Blocks {
			t.block(b, titled)
			titled = false
		}
	}
}

// block writes one block. A table right below a title needs no caption.
func (t *terminal) block(b page.Block, titled bool) {
	if b.Heading != "" {
		t.para("", bold, b.Heading)
	}
	p := map[bool]paint{true: bold}[b.Strong]
	if b.Text != "" {
		t.para("  ", p, b.Text)
	}
	if b.Table != nil {
		t.captioned(b.Table, b.Table.Caption, titled)
	}
	if r := b.Result; r != nil {
		t.para("  ", bold, r.Line)
		for _, fact := range r.Facts {
			t.para("    ", dim, fact)
		}
	}
	for _, item := range b.List {
		t.para("  ", p, item)
	}
	t.checks(b.Checks)
	if b.Left != "" {
		t.line("  … " + b.Left + " in the reports")
	}
	for i, f := range b.Figures {
		if f.Table != nil && !f.Aside {
			t.captioned(f.Table, f.Title, titled && i == 0)
		}
	}
	if b.Fold != nil && b.Fold.Open {
		for _, x := range b.Fold.Blocks {
			t.block(x, false)
		}
	}
	if b.Log != nil {
		t.log(b.Log.Text)
	}
}

func (t *terminal) log(s string) {
	lines := strings.Split(text.Block(s), "\n")
	if cut := len(lines) - logLines; cut > 0 {
		t.line(fmt.Sprintf("  | … %d earlier lines of its log are in the reports", cut))
		lines = lines[cut:]
	}
	for _, l := range lines {
		t.line("  | " + text.Cut(l, t.width-4))
	}
}

// words are the first words of a check's entry.
var words = map[verdict.Status]string{
	verdict.StatusError: "ERROR", verdict.StatusFail: "FAIL", verdict.StatusInconclusive: "UNSURE",
	verdict.StatusWarning: "warn", verdict.StatusSkipped: "skipped", verdict.StatusPass: "pass",
}

// indent is the indentation of a check's text.
const indent = "          "

// mark returns the first word of a check's entry, such as FAIL.
func (t *terminal) mark(c page.Check) string {
	word := text.Pad(words[c.Status], 8, false)
	if c.Skipped || c.Status == verdict.StatusSkipped {
		return "  " + t.paint(dim, word)
	}
	return "  " + t.paint(colors[c.Class], word)
}

// checks writes checks in their order. A check that passed takes one line, and so do those that were
// skipped for the same reason. All others have their details.
func (t *terminal) checks(list []page.Check) {
	left := 0
	for len(list) > 0 {
		c, n := list[0], 1
		for c.Skipped && n < len(list) && list[n].Skipped && list[n].Message == c.Message {
			n++
		}
		brief := c.Skipped || c.Status == verdict.StatusPass
		if brief {
			t.passed += n
		}
		switch {
		case brief && t.passed > mostPassed:
			left += n
		case c.Skipped:
			t.skipped(list[:n])
		case brief:
			t.pass(c)
		default:
			t.check(c)
		}
		list = list[n:]
	}
	if left > 0 {
		t.line(fmt.Sprintf("  … and %d more passed or skipped", left))
	}
}

func (t *terminal) check(c page.Check) {
	if t.short {
		said := c.Name + " of " + c.Where + ": " + c.Message
		t.line(t.mark(c) + text.Cut(said, t.width-len(indent)))
		return
	}
	t.line(t.mark(c) + t.paint(bold, text.Cut(c.Name, t.width-len(indent))))
	if c.Message != "" {
		t.para(indent, plain, c.Message)
	}
	if c.Place != "" {
		t.para(indent, dim, strings.TrimSuffix(c.Place+" · "+c.Source, " · "))
	}
	for _, n := range c.Notes {
		t.para(indent+"note: ", dim, n)
	}
}

// pass writes a check that passed in one line, with as many words of its message as fit.
func (t *terminal) pass(c page.Check) {
	room := t.width - len(indent)
	message := c.Message
	for _, short := range c.Short {
		if message = short; text.Width(c.Name)+2+text.Width(short) <= room {
			break
		}
	}
	if message == "" || text.Width(c.Name)+2+text.Width(message) <= room {
		t.line(t.mark(c) + strings.TrimSpace(c.Name+"  "+message))
	} else {
		t.line(t.mark(c) + text.Cut(c.Name, room))
		t.para(indent, plain, message)
	}
	for _, n := range c.Cautions {
		if !t.noted[n] {
			t.noted[n] = true
			t.para(indent+"note: ", dim, n)
		}
	}
}

// skipped writes checks that were skipped for the same reason as one entry.
func (t *terminal) skipped(list []page.Check) {
	var names []string
	for _, c := range list {
		names = append(names, c.Name)
	}
	first, room := strings.Join(names, ", "), t.width-len(indent)
	message := list[0].Message
	if line := strings.TrimSpace(first + "  " + message); text.Width(line) <= room {
		t.line(t.mark(list[0]) + line)
		return
	}
	for i, l := range text.Wrap(text.Bytes(first, lineBytes), room) {
		t.line(slices.Concat([]string{t.mark(list[0])}, slices.Repeat([]string{indent}, i))[i] + text.Inert(l))
	}
	if message != "" {
		// Only the beginning of the message, because the problem has an entry of its own.
		t.para(indent, dim, text.Cut(message, 3*room/2))
	}
}
