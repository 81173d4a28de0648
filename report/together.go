package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/tokgate/tokgate/report/text"
)

// Names returns a different one-line name for each document. It is the last part of the document's
// folder, or the run's id if there is no folder. A name that repeats an earlier one gets a number.
func Names(docs []*Document) []string {
	out := make([]string, len(docs))
	seen := map[string]int{}
	for i, d := range docs {
		name := ""
		if d.Folder != "" {
			name = path.Base(strings.TrimRight(strings.ReplaceAll(d.Folder, "\\", "/"), "/"))
		}
		name = text.Line(text.Bytes(cmp.Or(name, d.Run, d.Plan.Name, "run"), cellBytes))
		if seen[name]++; seen[name] > 1 {
			name = fmt.Sprintf("%s (%d)", name, seen[name])
		}
		out[i] = name
	}
	return out
}

// comparisonTable is a table that compares documents side by side, in one metric. It has a row for
// each load and a column for each document.
type comparisonTable struct {
	title string
	rows  [][]string // table rows; the first is the head
}

// sideBySide groups the cases of several documents: cases of the same workload and level form a
// group. If a document has several servers, the server must be the same too.
func sideBySide(docs []*Document) []comparisonTable {
	type key struct{ server, workload, level string }
	var order []key
	at := map[key][]*Case{}
	for i, d := range docs {
		for j := range d.Cases {
			c := &d.Cases[j]
			if c.Skipped != "" {
				continue
			}
			k := key{"", c.Workload, c.Level}
			if len(d.Servers) > 1 {
				k.server = c.Server
			}
			if at[k] == nil {
				at[k] = make([]*Case, len(docs))
				order = append(order, k)
			}
			at[k][i] = c
		}
	}
	var out []comparisonTable
	for _, column := range LevelColumns {
		switch column.Head {
		case "Success", "TTFT mean", "TTFT p95", "Speed mean", "Throughput":
		default:
			continue
		}
		b := comparisonTable{title: column.Head, rows: [][]string{append([]string{"Load"}, Names(docs)...)}}
		for _, k := range order {
			name := k.workload + " at " + k.level
			if k.server != "" {
				name += " on " + k.server
			}
			row := []string{name}
			for _, c := range at[k] {
				shown := "–"
				if c != nil {
					shown = column.Cell(c)
				}
				row = append(row, shown)
			}
			b.rows = append(b.rows, row)
		}
		if len(b.rows) > 1 {
			out = append(out, b)
		}
	}
	return out
}

// outcomes returns the rows of a table: a header row, and then the name, outcome and result of each
// document.
func outcomes(docs []*Document) [][]string {
	rows := [][]string{{"Run", "Outcome", "Result"}}
	for i, name := range Names(docs) {
		rows = append(rows, []string{name, docs[i].Word(), docs[i].Headline()})
	}
	return rows
}

// TerminalTogether writes several documents for a terminal: the outcome of each, and a table that
// shows equal loads side by side. It gives no verdict of its own.
func TerminalTogether(w io.Writer, docs []*Document, width int, color bool) error {
	t := &terminal{w: bufio.NewWriter(w), doc: docs[0], width: max(cmp.Or(width, 80), minWidth), color: color}
	table := func(rows [][]string, words ...int) {
		for _, row := range rows {
			for j := range row {
				row[j] = text.Cut(text.Line(text.Bytes(row[j], lineBytes)), max(t.width/2, 24))
			}
		}
		t.rows(rows, fit(rows), words...)
	}
	for i, b := range sideBySide(docs) {
		if i > 0 {
			t.line("")
		}
		t.line(t.paint(bold, b.title))
		rows := b.rows
		if len(rows) > mostCases {
			rows = rows[:mostCases]
		}
		table(rows, 0)
		if rest := len(b.rows) - len(rows); rest > 0 {
			t.line(fmt.Sprintf("  … and %d more", rest))
		}
	}
	t.line("")
	for i, name := range Names(docs) {
		t.para(t.paint(bold, text.Inert(name))+"  ", plain, docs[i].Word()+" · "+docs[i].Headline())
	}
	if t.err != nil {
		return t.err
	}
	return t.w.Flush()
}

// MarkdownTogether writes several documents side by side, in at most MarkdownBytes bytes.
func MarkdownTogether(w io.Writer, docs []*Document) error {
	m := markdown{doc: docs[0], size: MarkdownBytes}
	var b strings.Builder
	b.WriteString("## Runs side by side\n\n")
	for _, d := range docs {
		if d.Simulated {
			b.WriteString("> **Simulated.** " + simulated + "\n\n")
			break
		}
	}
	tables := append([]comparisonTable{{"", outcomes(docs)}}, sideBySide(docs)...)
	for _, t := range tables {
		s := section{budget: m.share(MarkdownBytes / (len(tables) + 1))}
		lead := ""
		if t.title != "" {
			lead = "\n### " + t.title + "\n\n"
		}
		for i, row := range t.rows {
			s.row(func() string {
				out := lead
				for _, c := range row {
					out += "| " + cell(c, messageCell) + " "
				}
				out += "|\n"
				if i == 0 {
					out += strings.Repeat("|---", len(row)) + "|\n"
				}
				lead = ""
				return out
			})
		}
		b.WriteString(s.close("row"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
