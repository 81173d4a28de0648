// Package nights shows the result of a history: as sections of package page for a terminal
// and a job's summary, as a document for JUnit, and as a page with every series over the nights. It makes no judgement of its own.
package nights

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	judged "github.com/tokgate/tokgate/assert/nights"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/markdown"
	"github.com/tokgate/tokgate/report/page"
	"github.com/tokgate/tokgate/report/terminal"
	"github.com/tokgate/tokgate/report/text"
)

// Options holds the settings of the output.
type Options struct {
	Folder   string   // folder of the history, as the user wrote it
	Problems []string // lines of the history that are ignored, with the reason for each
	Note     string   // remark shown with the result; "" if there is none
	Plan     string   // plan file of the nights, as the user wrote it; "" if not known
	Width    int      // width of the terminal in cells; 0 means 100
	Color    bool
}

// sparkNights is the largest number of nights in a line of small bars.
const sparkNights = 30

// Terminal writes the series that changed with the evidence and whatever else changed that night,
// then the others, and last the outcome. Control characters in recorded text are replaced.
func Terminal(w io.Writer, n judged.Result, o Options) error {
	if err := terminal.Sections(w, sections(n, o), cmp.Or(o.Width, 100), o.Color); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\n"+o.paint(n.Outcome, conclusion(n))+" "+text.Inert(text.Line(summary(n))))
	return err
}

// Markdown writes the same for a job's summary, with the outcome first.
func Markdown(w io.Writer, n judged.Result, o Options) error {
	_, err := fmt.Fprintf(w, "## %s · history\n\n%s\n%s", conclusion(n), markdown.Text(summary(n)), markdown.Sections(sections(n, o)))
	return err
}

// sections returns what a history shows: which nights it has, the series that changed, the others,
// and how to accept a change.
func sections(n judged.Result, o Options) []page.Section {
	first := []page.Block{{Text: heading(n, o)}, {List: append(suspects(n, o), events(n)...)}, {List: remarks(n, o)}}
	out := []page.Section{{Blocks: slices.DeleteFunc(first, page.Block.Empty)}}
	for _, part := range []struct {
		title   string
		changed bool
	}{{"What changed", true}, {"The rest", false}} {
		if s := series(n, part.changed); len(s) > 0 {
			out = append(out, page.Section{Title: part.title, Blocks: s})
		}
	}
	end := []page.Block{{Text: chance(n)}, {Text: accept(n, o)}}
	return append(out, page.Section{Blocks: slices.DeleteFunc(end, page.Block.Empty)})
}

// remarks returns what else readers must know: what differs, void nights, lines that do not count.
func remarks(n judged.Result, o Options) []string {
	var out []string
	for _, p := range slices.Concat([]string{differs(n), voids(n)}, n.Remarks, o.Problems) {
		if p != "" {
			out = append(out, page.Line(p))
		}
	}
	return out
}

// series returns a table of the series that changed, or of all others, and the evidence for each
// change.
func series(n judged.Result, changed bool) []page.Block {
	t := &page.Table{Words: true, Columns: []page.Column{{}, {Head: "Workload"}, {Head: "Level"}, {Head: "Metric"}, {Head: "Tonight"},
		{Head: "Expected"}, {Head: "Noise", Rank: 2}, {Head: "Nights", Rank: 1}}}
	var evidence []string
	for _, x := range n.Trends {
		if hasDetail(x) != changed {
			continue
		}
		row := page.Row(append([]string{word(x), place(x)}, cells(x)...)...)
		row[0].Class = classes[x.Outcome]
		t.Rows = append(t.Rows, row)
		if changed {
			evidence = append(evidence, page.Line(subject(x)+": "+x.Message))
		}
		for _, c := range x.Changes {
			evidence = append(evidence, change(x, c))
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return []page.Block{{Table: t}, {List: evidence}}
}

var classes = map[verdict.Outcome]string{verdict.Pass: page.Passed, verdict.Fail: page.Failed, verdict.Error: page.Missing}

// hasDetail reports whether the output says more about a series than its line in the table.
func hasDetail(t judged.Trend) bool {
	return t.Outcome == verdict.Fail || t.Outcome == verdict.Error || t.Suspect || alarmed(t) || len(t.Changes) > 0
}

// place names the workload of a series, its server and, if there are several, its runner.
func place(t judged.Trend) string {
	s := t.Workload
	if t.Server != "" {
		s += " on " + t.Server
	}
	if t.Runner != "" {
		s += " (" + t.Runner + ")"
	}
	return text.Line(s)
}

// subject names a series in a sentence: its workload, level and metric and, if there are several, its
// runner. A series of another tool has only a name.
func subject(t judged.Trend) string {
	s := t.Workload
	if t.Metric != metric.MetricForeign {
		s += fmt.Sprintf(" at %s, %s", t.Level, name(t))
	}
	if t.Runner != "" {
		s += " (" + t.Runner + ")"
	}
	return s
}

func name(t judged.Trend) string { return strings.TrimSpace(t.Metric + " " + t.Stat) }

// suspects returns a line for each series whose last night alone is worse, with the command that
// measures its workload again, and for each series that is red, with the command that bisects it.
func suspects(n judged.Result, o Options) []string {
	var out []string
	for _, t := range n.Trends {
		if s := culprit(t, o); s != "" {
			out = append(out, page.Line(s))
		}
		if !t.Suspect || t.Tonight == nil {
			continue
		}
		last := t.Points[len(t.Points)-1].Value
		by := signed(t.Unit, t.Tonight.Center, last)
		s := fmt.Sprintf("Suspect: %s %s; the next night decides", subject(t), by)
		if t.Metric != metric.MetricForeign {
			s += fmt.Sprintf(". To know now: tokgate run %s --only %s", cmp.Or(o.Plan, "PLAN"), t.Workload)
		}
		out = append(out, page.Line(s))
	}
	return out
}

// culprit returns the command that finds who made a series red; "" if it is not red, or no bisection
// measures it.
func culprit(t judged.Trend, o Options) string {
	if t.Outcome != verdict.Fail || t.Tonight == nil {
		return ""
	}
	def, _ := metric.Lookup(t.Metric)
	return page.Bisect(o.Plan, def, name(t), t.Workload, t.Level, signed(t.Unit, t.Tonight.Center, t.Points[len(t.Points)-1].Value))
}

// signed writes a change of a value, such as "+9.8%" or, for a share, "-1.2 points".
func signed(unit metric.Unit, from, to float64) string {
	sign := either(to < from, "-", "+")
	if unit == metric.Ratio {
		return sign + strings.TrimSuffix(metric.Format(metric.Ratio, math.Abs(to-from)), "%") + " points"
	}
	return sign + metric.Format(metric.Ratio, math.Abs(to/from-1))
}

func events(n judged.Result) []string {
	var out []string
	for _, e := range n.Events {
		least, most := metric.Format(metric.Ratio, e.Least), metric.Format(metric.Ratio, e.Most)
		by := "by " + least
		if least != most {
			by += " to " + most
		}
		s := fmt.Sprintf("%s (run %s): %s %s %s", e.Started.UTC().Format("2 January"), e.Run, verdict.Count(len(e.Trends), "series"), either(e.Worse, "worse", "better"), by)
		out = append(out, page.Line(s+facts(e.Differs, e.Job)))
	}
	return out
}

// facts says what else changed on the night of a change.
func facts(differs []string, j *metric.Job) string {
	s := "; no recorded fact of the server changed on that night"
	if len(differs) > 0 {
		s = "; these facts of the server changed on the same night: " + strings.Join(differs, ", ")
	}
	if said := job(j); said != "" {
		s += "; " + said
	}
	return s
}

func alarmed(t judged.Trend) bool { return len(t.Points) > 0 && t.Points[len(t.Points)-1].Alarm }

// cells returns the table row of a series: level, metric, tonight's value, the expected range and
// so on.
func cells(t judged.Trend) []string {
	expected, noise := "", ""
	if b := t.Tonight; b != nil {
		expected = b.Span(metric.In(t.Unit))
		if t.Outcome == verdict.Fail {
			expected = "about " + metric.Format(t.Unit, b.Center)
		}
		noise = "±" + metric.Format(metric.Ratio, b.Noise)
	}
	row := []string{t.Level, name(t), tonight(t), expected, noise, spark(t)}
	for i, c := range row {
		row[i] = text.Line(c)
	}
	return row
}

func tonight(t judged.Trend) string {
	if len(t.Points) == 0 {
		return "no value"
	}
	return metric.Format(t.Unit, t.Points[len(t.Points)-1].Value)
}

// spark draws the last nights as a line of bars. The smallest value has the lowest bar, and the
// largest value the highest.
func spark(t judged.Trend) string {
	points := t.Points[max(0, len(t.Points)-sparkNights):]
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range points {
		low, high = math.Min(low, p.Value), math.Max(high, p.Value)
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, p := range points {
		i := len(bars) / 2
		if high > low {
			i = int((p.Value - low) / (high - low) * float64(len(bars)-1))
		}
		b.WriteRune(bars[i])
	}
	return b.String()
}

func change(t judged.Trend, c judged.Move) string {
	day, from, to := c.Started.UTC().Format("2006-01-02"), metric.Format(t.Unit, c.Before), metric.Format(t.Unit, c.After)
	if c.Weekly != 0 {
		return text.Line(fmt.Sprintf("creeps since %s (run %s): from %s to %s", day, c.Run, from, to))
	}
	return text.Line(fmt.Sprintf("changed on %s (run %s): from %s to %s", day, c.Run, from, to) + facts(c.Differs, c.Job))
}

// job describes the CI job that ran the tests of a night: "commit 1a2b3c4 of refs/heads/main on
// gpu-0, https://…".
func job(j *metric.Job) string {
	if j == nil {
		return ""
	}
	var parts []string
	for _, p := range []struct{ lead, value string }{{"commit ", j.Commit[:min(len(j.Commit), 12)]}, {"of ", j.Ref}, {"on ", j.Runner}} {
		if p.value != "" {
			parts = append(parts, p.lead+p.value)
		}
	}
	said := strings.Join(parts, " ")
	if said != "" && j.URL != "" {
		said += ", "
	}
	return said + j.URL
}

// differs describes how the servers differ from those of the night before; "" if they do not
// differ.
func differs(n judged.Result) string {
	if len(n.Differs) == 0 {
		return ""
	}
	return text.Line("Different from the night before: " + strings.Join(n.Differs, " · "))
}

// voids names the nights that were taken out, and why; "" if there are none.
func voids(n judged.Result) string {
	var out []string
	for _, v := range n.Voids {
		out = append(out, fmt.Sprintf("%s (%s)", v.Run, v.Why))
	}
	if len(out) == 0 {
		return ""
	}
	return text.Line("Void, so not judged: " + strings.Join(out, ", "))
}

// accept returns a line with the command that accepts the failed change; "" if nothing failed.
func accept(n judged.Result, o Options) string {
	if n.Accept == "" {
		return ""
	}
	return text.Line(fmt.Sprintf(`To accept the change: tokgate history pin %s %s --why "…"`, cmp.Or(o.Folder, "HISTORY"), n.Accept))
}

func heading(n judged.Result, o Options) string {
	parts := []string{"tokgate history", o.Folder}
	switch p := n.Pinned; {
	case p != nil:
		parts = append(parts, fmt.Sprintf("%s since run %s was pinned on %s (%s)", verdict.Count(n.Since, "nights"), p.Run, p.At.UTC().Format("2006-01-02"), p.Why))
	default:
		parts = append(parts, verdict.Count(n.Since, "nights"))
	}
	if n.Run != "" {
		parts = append(parts, fmt.Sprintf("the last night is run %s of %s", n.Run, n.Started.UTC().Format("2006-01-02 15:04 MST")))
	}
	if j := job(n.Job); j != "" {
		parts = append(parts, j)
	}
	if o.Note != "" {
		parts = append(parts, o.Note)
	}
	return text.Line(strings.Join(parts, " · "))
}

func conclusion(n judged.Result) string {
	if n.Recorded && n.Outcome == verdict.Pass {
		return "RECORDED"
	}
	return strings.ToUpper(n.Outcome.String())
}

// summary returns the last line of the output, without the outcome at its beginning.
func summary(n judged.Result) string {
	if n.Why != "" {
		return n.Why
	}
	if n.Recorded {
		return "there are too few nights to judge anything"
	}
	counts := map[verdict.Outcome]int{}
	for _, t := range n.Trends {
		counts[t.Outcome]++
	}
	var parts []string
	for _, c := range []struct {
		outcome verdict.Outcome
		said    string
	}{{verdict.Error, "not measured"}, {verdict.Fail, "worse"}, {verdict.Pass, "as expected or better"}, {verdict.Skipped, "only recorded"}} {
		if k := counts[c.outcome]; k > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", k, c.said))
		}
	}
	return fmt.Sprintf("%s: %s", verdict.Count(len(n.Trends), "series"), strings.Join(parts, ", "))
}

// chance returns a sentence about false alarms: how often this history would fail by chance if
// nothing changed. It returns "" if that is not known.
func chance(n judged.Result) string {
	if n.ByChance == 0 {
		return ""
	}
	return fmt.Sprintf("If nothing changed, at most %d of 50 mornings would be red by chance.", n.ByChance)
}

func either(cond bool, a, b string) string {
	if cond {
		return a
	}
	return b
}

func word(t judged.Trend) string {
	switch {
	case t.Outcome == verdict.Fail, t.Outcome == verdict.Error:
		return strings.ToUpper(t.Outcome.String())
	case t.Outcome == verdict.Skipped:
		return "recorded"
	case t.Suspect:
		return "suspect"
	case t.Accepted != "":
		return "accepted"
	}
	return t.Outcome.String()
}

func (o Options) paint(outcome verdict.Outcome, s string) string {
	if !o.Color {
		return s
	}
	color := map[verdict.Outcome]string{verdict.Pass: "32", verdict.Fail: "1;31", verdict.Error: "1;31"}[outcome]
	if color == "" {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

// Document returns the verdicts on a history as a report.Document, for the writer of JUnit XML.
func Document(n judged.Result, d report.Document) *report.Document {
	d.Run, d.Outcome, d.Why = cmp.Or(d.Run, &metric.Run{}), n.Outcome, n.Why
	d.Verdicts = append(d.Verdicts, verdict.Verdict{
		Kind: verdict.KindServer, Name: "history.servers", Outcome: verdict.Pass, Severity: verdict.SeverityError,
		Message: cmp.Or(differs(n), "no recorded fact of the servers differs from the night before"),
	})
	for _, t := range n.Trends {
		var cause verdict.Cause
		if t.Outcome == verdict.Error {
			cause = verdict.CauseInvalid
		}
		d.Verdicts = append(d.Verdicts, verdict.Verdict{
			Kind: "history", Server: t.Server, Workload: t.Workload, Level: t.Level,
			Name: strings.TrimSuffix("history."+t.Metric+"."+t.Stat, ".") +
				either(t.Level == "", "", " at "+t.Level) + either(t.Runner == "", "", " on "+t.Runner),
			Outcome: t.Outcome, Severity: verdict.SeverityError, Cause: cause, Message: t.Message,
		})
	}
	return &d
}
