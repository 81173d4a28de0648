package page

import (
	"slices"

	"github.com/tokgate/tokgate/report"
)

// Together shows several runs side by side: the outcome of each, and a table for each of a few
// metrics with a row for each load and a column for each run. It gives no verdict of its own.
func Together(docs []*report.Document) []Section {
	names := report.Names(docs)
	ended := &Table{Words: true, Caption: "Outcomes", Columns: Heads("Run", "Outcome", "Result")}
	for i, d := range docs {
		cells := Row(names[i], d.Word(), d.Headline())
		cells[1].Class = ClassOf(d)
		ended.Rows = append(ended.Rows, cells)
	}
	out := []Section{{Blocks: []Block{{Table: ended}}}}
	for _, m := range clientColumns {
		if slices.Contains([]string{"Success", "TTFT mean", "TTFT p95", "Speed mean", "Throughput"}, m.Head) {
			if t := sideBySide(docs, m, names); len(t.Rows) > 0 {
				out = append(out, Section{Title: m.Head, Blocks: []Block{{Table: t}}})
			}
		}
	}
	return out
}

// sideBySide compares the cases of several documents in one metric. Cases of the same workload and
// level share a row. If a document has several servers, the server must be the same too.
func sideBySide(docs []*report.Document, m measure, names []string) *Table {
	t := &Table{Caption: m.Head, Columns: Heads(append([]string{"Load"}, names...)...)}
	for i, d := range docs {
		for j := range d.Cases {
			c := &d.Cases[j]
			if c.Skipped != "" {
				continue
			}
			name := Line(d.TitleOf(c.Workload) + " at " + c.Name)
			if len(d.Run.Servers) > 1 {
				name += " on " + Line(d.TitleOf(c.Server))
			}
			t.row(name, "–")[i+1] = text(m.of(c))
		}
	}
	return t
}
