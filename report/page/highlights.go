package page

func highlights(runs []Run) (Section, bool) {
	s := Section{ID: "highlights", Title: "Highlights", Lead: "The figures that most people ask for first, and the load at which each figure was measured."}
	if len(runs) == 1 {
		return s, false // page one has them
	}
	t := &Table{Words: true, Caption: "Highlights of each run", Columns: Heads("Figure")}
	for _, r := range runs {
		t.Columns = append(t.Columns, Heads(r.Name)...)
	}
	for i, r := range runs {
		r.Name = ""
		for _, x := range tiles(r) {
			t.row(x.Label, "–")[i+1] = text(x.Value + " (" + x.Note + ")")
		}
	}
	s.Blocks = []Block{{Table: t}}
	return s, len(t.Rows) > 0
}
