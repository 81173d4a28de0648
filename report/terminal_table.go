package report

import (
	"slices"
	"strings"

	"github.com/tokgate/tokgate/report/text"
)

// table writes the table of levels with as many columns as fit. The tables on answers and on the
// server's metrics follow.
func (t *terminal) table(cases []*Case) {
	t.columns(slices.Clone(LevelColumns), cases)
	for _, more := range further {
		if columns := present(more.columns, cases); columns != nil {
			t.columns(columns, cases)
		}
	}
	if turns := TurnRows(cases); turns != nil {
		rows := append([][]string{TurnHead}, turns...)
		for _, row := range rows {
			row[0] = text.Cut(text.Line(row[0]), 24)
		}
		t.rows(rows, fit(rows))
	}
}

// columns writes a table of the cases. It drops columns until the rest fits the width.
func (t *terminal) columns(columns []Column, cases []*Case) {
	rows, widths := layout(columns, cases)
	for sum(widths) > t.width && len(columns) > 2 {
		drop := 0
		for i, c := range columns {
			if c.keep >= columns[drop].keep {
				drop = i
			}
		}
		columns = slices.Delete(columns, drop, drop+1)
		rows, widths = layout(columns, cases)
	}
	t.rows(rows, widths)
}

// rows writes a table with the head in its first row. Numbers are aligned to the right. The
// argument words lists the indices of the columns that hold text.
func (t *terminal) rows(rows [][]string, widths []int, words ...int) {
	for i, row := range rows {
		p := plain
		if i == 0 {
			p = dim
		}
		t.row(p, row, widths, words)
	}
}

// row writes one row of a table. If the last cell has too much text, the text continues on the next
// lines.
func (t *terminal) row(p paint, row []string, widths, words []int) {
	last := len(row) - 1
	for k, part := range text.Wrap(row[last], widths[last]) {
		var b strings.Builder
		for j, cell := range row {
			switch {
			case j == last:
				cell = part
			case k > 0:
				cell = ""
			}
			b.WriteString("  ")
			b.WriteString(text.Pad(cell, widths[j], !slices.Contains(words, j)))
		}
		t.line(t.paint(p, text.Inert(b.String())))
	}
}

// layout returns the rows with the head first, and the widths of the columns.
func layout(columns []Column, cases []*Case) (rows [][]string, widths []int) {
	head := make([]string, len(columns))
	for j, c := range columns {
		head[j] = c.Head
	}
	rows = append(rows, head)
	for _, c := range cases {
		row := make([]string, len(columns))
		for j := range columns {
			row[j] = text.Cut(text.Line(columns[j].Cell(c)), 24)
		}
		rows = append(rows, row)
	}
	return rows, fit(rows)
}

// fit returns the width that each column needs, in characters.
func fit(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for j, cell := range row {
			widths[j] = max(widths[j], text.Width(cell))
		}
	}
	return widths
}

func sum(widths []int) int {
	n := 0
	for _, w := range widths {
		n += w + 2
	}
	return n
}

// writeTable writes a table. The first two columns name the row; if they do not fit, they are
// written on a line of their own above the rows. The last column is wrapped into the remaining
// width. The argument words lists the indices of the columns that hold text; all others hold
// numbers.
func (t *terminal) writeTable(rows [][]string, words ...int) {
	if len(rows) < 2 {
		return
	}
	last := len(rows[0]) - 1
	for _, row := range rows {
		for j := range row {
			row[j] = text.Line(text.Bytes(row[j], lineBytes))
			if j < last {
				row[j] = text.Cut(row[j], 28)
			}
		}
	}
	// least is the smallest width of the last column, in characters.
	const least = 10
	room := func(widths []int) []int {
		widths[len(widths)-1] = min(widths[len(widths)-1], max(t.width-sum(widths[:len(widths)-1])-2, least))
		return widths
	}
	widths := fit(rows)
	if sum(widths[:last])+2+min(widths[last], least) <= t.width {
		t.rows(rows, room(widths), words...)
		return
	}
	words = slices.Clone(words)
	short := make([][]string, len(rows))
	for i, row := range rows {
		short[i] = row[2:]
	}
	for j := range words {
		words[j] -= 2
	}
	widths = room(fit(short))
	for i, row := range rows {
		switch {
		case i == 0:
			continue
		case i == 1 || !slices.Equal(row[:2], rows[i-1][:2]):
			t.para("  ", plain, row[0]+" at "+row[1])
		}
		if i == 1 {
			t.row(dim, short[0], widths, words)
		}
		t.row(plain, short[i], widths, words)
	}
}
