package markdown

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/report/page"
	"github.com/tokgate/tokgate/report/text"
)

// Sections returns sections as Markdown. Each block begins with an empty line.
func Sections(list []page.Section) string {
	var w writer
	for _, s := range list {
		if s.Title != "" {
			w.printf("\n### %s\n", escaped(s.Title, messageBytes))
		}
		w.blocks(s.Blocks, s.Title != "")
	}
	return w.String()
}

type writer struct{ strings.Builder }

func (w *writer) printf(format string, args ...any) { fmt.Fprintf(w, format, args...) }

// blocks writes blocks. A table right below a title needs no caption.
func (w *writer) blocks(list []page.Block, titled bool) {
	for _, b := range list {
		w.block(b, titled)
		titled = false
	}
}

func (w *writer) block(b page.Block, titled bool) {
	if b.Heading != "" {
		w.printf("\n### %s\n", escaped(b.Heading, messageBytes))
	}
	strong := map[bool]string{true: "**"}[b.Strong]
	if b.Text != "" {
		w.printf("\n%s%s%s\n", strong, escaped(b.Text, messageBytes), strong)
	}
	if b.Table != nil {
		w.captioned(b.Table, b.Table.Caption, titled)
	}
	if r := b.Result; r != nil {
		w.printf("\n**%s**\n", escaped(r.Line, messageBytes))
		w.list(r.Facts, "")
	}
	w.list(b.List, strong)
	w.checks(b)
	for _, f := range b.Figures {
		if f.Table != nil && !f.Aside {
			w.captioned(f.Table, f.Title, false)
		}
	}
	if b.Fold != nil {
		w.printf("\n<details><summary>%s</summary>\n", html(text.Line(text.Bytes(b.Fold.Title, cellBytes))))
		w.blocks(b.Fold.Blocks, true)
		w.printf("\n</details>\n")
	}
	if b.Log != nil {
		w.log(b.Log)
	}
	for i, d := range b.Definitions {
		w.printf("%s- **%s** (%s): %s No value when: %s.\n", map[bool]string{true: "\n"}[i == 0], escape(d.Term), escape(d.Unit), escape(d.Text), escape(d.NoValue))
	}
}

func (w *writer) list(items []string, strong string) {
	for i, item := range items {
		w.printf("%s- %s%s%s\n", map[bool]string{true: "\n"}[i == 0], strong, escaped(item, messageBytes), strong)
	}
}

func (w *writer) captioned(t *page.Table, caption string, titled bool) {
	if len(t.Rows) > 0 && caption != "" && !titled {
		w.printf("\n%s:\n", escaped(caption, cellBytes))
	}
	w.table(t)
}

// table writes a table without the columns that have no value.
func (w *writer) table(t *page.Table) {
	t = t.Filled()
	if len(t.Rows) > 0 {
		heads, line := "", ""
		for i, c := range t.Columns {
			heads += "| " + strings.TrimSpace(escaped(c.Head, cellBytes)) + " "
			line += "|---"
			if !t.Words && i > 0 && !slices.ContainsFunc(t.Rows, func(r []page.Cell) bool { return i < len(r) && r[i].Sign != "" }) {
				line += ":"
			}
		}
		w.printf("\n%s|\n%s|\n", heads, line)
	}
	for _, r := range t.Rows {
		for _, c := range r {
			w.printf("| %s%s ", signs[c.Class+c.Sign], escaped(c.Text, messageBytes))
		}
		w.printf("|\n")
	}
	w.left(t.Left)
}

func (w *writer) left(words string) {
	if words != "" {
		w.printf("\n… %s in the report\n", escaped(words, cellBytes))
	}
}

func (w *writer) checks(b page.Block) {
	if len(b.Checks) > 0 {
		w.printf("\n| | Check | Result | Plan |\n|---|---|---|---|\n")
	}
	for _, c := range b.Checks {
		name := escaped(c.Name, cellBytes)
		if c.Where != "" {
			name += "<br>" + escaped(c.Where, cellBytes)
		}
		result := escaped(c.Message, messageBytes)
		for _, n := range c.Notes {
			result += "<br>_" + escaped(n, cellBytes) + "_"
		}
		place := escaped(c.Place, cellBytes)
		if c.Source != "" {
			place += "<br>" + escaped(c.Source, cellBytes)
		}
		w.printf("| %s%s | %s | %s | %s |\n", signs[c.Class+c.Sign], c.Word, name, result, place)
	}
	w.left(b.Left)
}

// log writes the end of a server's log, folded.
func (w *writer) log(l *page.Log) {
	lines := strings.Split(text.Tail(text.Block(l.Text), 6000), "\n")
	for i, s := range lines {
		lines[i] = html(text.Inert(s))
	}
	// A blank line would end the block of HTML.
	lines = slices.DeleteFunc(lines, func(s string) bool { return s == "" })
	w.printf("\n<details><summary>%s</summary>\n\n<pre>\n%s\n</pre>\n\n</details>\n", html(text.Line(text.Bytes(l.Title, cellBytes))), strings.Join(lines, "\n"))
}
