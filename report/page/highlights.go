package page

import (
	"cmp"
)

func highlights(runs []Run) (Section, bool) {
	s := Section{ID: "highlights", Title: "Highlights", Lead: "The figures that most people ask for first, and the load at which each figure was measured."}
	if len(runs) == 1 {
		return s, false // page one has them
	}
	t := &Table{Words: true, Caption: "Highlights of each run", Columns: Heads("Figure")}
	var order []string
	figures := map[string][]string{}
	for i, r := range runs {
		t.Columns = append(t.Columns, Heads(r.Name)...)
		alone := r
		alone.Name = ""
		for _, x := range tiles(alone) {
			if figures[x.Label] == nil {
				figures[x.Label] = make([]string, len(runs))
				order = append(order, x.Label)
			}
			figures[x.Label][i] = x.Value + " (" + x.Note + ")"
		}
	}
	for _, label := range order {
		row := []Cell{text(label)}
		for _, v := range figures[label] {
			row = append(row, text(cmp.Or(v, "–")))
		}
		t.Rows = append(t.Rows, row)
	}
	s.Blocks = []Block{{Table: t}}
	return s, len(t.Rows) > 0
}
