// Package markdown renders reports in GitHub flavoured Markdown: the summary of a CI job, and the
// comment on a pull request. What they show is made by package page. Foreign text is escaped, so
// that it cannot make markup, links or mentions.
package markdown

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/page"
	"github.com/tokgate/tokgate/report/text"
)

// Bytes is the largest length of a summary, in bytes. GitHub drops a job summary of more than
// 1,048,576 bytes (actions/runner, src/Runner.Worker/FileCommandManager.cs). Bytes is lower, because
// other steps may write to the same file.
const Bytes = 900 << 10

// Limits on what people read, in lines, and on a comment, in bytes. GitHub accepts 65,536
// characters.
const (
	Lines        = 60
	CommentLines = 40
	commentBytes = 60_000
)

// The largest lengths of the texts of a cell and of a message, in bytes.
const (
	cellBytes    = 300
	messageBytes = 1000
)

// Write writes a run as the summary of a CI job, in at most Lines lines and Bytes bytes. What failed
// comes first, and whole sections are left out before it is.
func Write(w io.Writer, d *report.Document) error { return Within(w, d, Bytes) }

// rest is the last line of a summary that left sections out.
const rest = "\nEvery level, probe and check that passed is in `report.html` and `results.json`.\n"

// Within does the same as Write with a limit of its own, in bytes. If not even the verdict fits, it
// writes nothing.
func Within(w io.Writer, d *report.Document, limit int) error {
	first, more := page.Job(d)
	out, ok := fitting(headline(d), first, "", Lines-strings.Count(rest, "\n"), limit-len(rest))
	if !ok {
		return nil
	}
	left := false
	for _, s := range more {
		part := Sections([]page.Section{s})
		if strings.Count(out+part+rest, "\n") <= Lines && len(out+part+rest) <= limit {
			out += part
		} else {
			left = true
		}
	}
	if left && len(out+rest) <= limit {
		out += rest
	}
	_, err := io.WriteString(w, out)
	return err
}

// fitting returns the sections between head and foot with as many rows as fit. It returns false if
// not even the head fits.
func fitting(head string, sections []page.Section, foot string, lines, limit int) (string, bool) {
	for n := lines; n >= 0; n-- {
		out := head + Sections(page.Select(sections, n)) + foot
		if len(out) <= limit && strings.Count(out, "\n") <= lines {
			return out, true
		}
	}
	return head + foot, len(head+foot) <= limit
}

// Comment writes a run as a comment on a pull request.
//
// The first two lines are hidden. The first is <!-- tokgate:NAME --> with the plan's name, by which
// a later run finds the comment. The second is <!-- red --> if the run is not green, <!-- changed
// --> if a comparison found a difference, or <!-- same -->.
func Comment(w io.Writer, d *report.Document) error {
	head := fmt.Sprintf("<!-- tokgate:%s -->\n<!-- %s -->\n%s", marker(d.Plan.Name), d.News(), headline(d))
	foot := "\n<sub>" + escaped(page.Foot(d), messageBytes) + "</sub>\n"
	if g := d.Strength; g != nil {
		foot = "\n<sub>" + report.StrengthTitle + ": " + escaped(g.Says, messageBytes) + "</sub>\n" + foot
	}
	if said := page.Culprit(d); said != "" {
		foot = "\n" + escaped(said, messageBytes) + "\n" + foot
	}
	out, _ := fitting(head, page.Comment(d), foot, CommentLines, commentBytes)
	_, err := io.WriteString(w, out)
	return err
}

// Together writes several runs side by side, in at most Bytes bytes.
func Together(w io.Writer, docs []*report.Document) error {
	head := "## Runs side by side\n"
	if slices.ContainsFunc(docs, func(d *report.Document) bool { return d.Run.Simulated }) {
		head += "\n> **Simulated.** " + report.SimulatedNote + "\n"
	}
	sections, rows := page.Together(docs), 0
	for n := 1 << 20; ; n /= 2 {
		rows = n
		if out := head + Sections(page.Select(sections, rows)); len(out) <= Bytes || n == 0 {
			_, err := io.WriteString(w, out)
			return err
		}
	}
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

// signs are the signs of outcomes, by the class and the sign of a cell.
var signs = map[string]string{
	"error!": "🛑 ", "fail✗": "❌ ", "unsure?": "❔ ", "unsure!": "⚠️ ", "none–": "⏭️ ", "pass✓": "✅ ", "pass▲": "🔼 ", "worse▼": "🔽 ",
}

// headline writes one line with the outcome and the plan, and one line that sums up the run.
func headline(d *report.Document) string {
	sign := cmp.Or(map[string]string{page.Passed: "✅", page.Unsure: "❔", page.Failed: "❌"}[page.ClassOf(d)], "🛑")
	out := fmt.Sprintf("## %s %s · %s\n\n%s\n", sign, escaped(d.Word(), cellBytes), escaped(d.Plan.Name, cellBytes), escaped(d.Headline(), messageBytes))
	if d.Run.Simulated {
		out += "\n> **Simulated.** " + report.SimulatedNote + "\n"
	}
	return out
}

// Text makes foreign text safe in a line or a table of Markdown. It returns one escaped line with at
// most 500 bytes of the text.
func Text(s string) string { return escaped(s, 500) }

// escaped makes foreign text safe inside a table. It returns one line with at most n bytes of the
// text.
func escaped(s string, n int) string {
	// Cut the text before cleaning it, because a message may have megabytes. Then cut it to n
	// bytes.
	return cmp.Or(escape(text.Bytes(text.Inert(text.Line(text.Bytes(s, 8*n))), n)), " ")
}

func html(s string) string { return unlinked(entities.Replace(s)) }

var entities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "@", "&#64;")

// reference matches what GitHub links to an issue or a pull request: #1, owner/name#1 and GH-1, but
// not the number of an entity such as &#64;.
var reference = regexp.MustCompile(`(^|[^&])(#|[Gg][Hh]-)(\d)`)

// unlinked keeps references to issues in escaped text from becoming links. GitHub finds them after it
// has resolved backslashes and entities, so only a comment inside them helps.
func unlinked(escaped string) string {
	if !strings.Contains(escaped, "#") && !strings.Contains(escaped, "h-") && !strings.Contains(escaped, "H-") {
		return escaped // most text; a search for the reference takes longer
	}
	for range 2 { // a match takes the character before it, so of two neighbours the first round finds one
		escaped = reference.ReplaceAllString(escaped, "$1$2<!-- -->$3")
	}
	return escaped
}

// escape makes every character of s literal in GitHub flavoured Markdown. It uses
// entities where GitHub would see a link or a mention in spite of a backslash.
func escape(s string) string { return unlinked(escaper.Replace(s)) }

var escaper = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;",
	"://", "&#58;//", "www.", "www&#46;", "WWW.", "WWW&#46;", "@", "&#64;",
	"\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "~", "\\~", "|", "\\|",
	"[", "\\[", "]", "\\]", "#", "\\#", "$", "\\$", "!", "\\!",
)
