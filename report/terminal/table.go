package terminal

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/report/page"
	"github.com/tokgate/tokgate/report/text"
)

const (
	widest    = 28 // cells of a table that is too wide, in characters
	narrowest = 8
)

// figure matches the cells that are aligned to the right.
var figure = regexp.MustCompile(`^([-+<>~±]?\d|∞|–$|skipped$|$)`)

// captioned writes a table, below its caption unless it stands right below a title.
func (t *terminal) captioned(table *page.Table, caption string, titled bool) {
	if len(table.Rows) == 0 {
		return
	}
	if !titled && caption != "" {
		t.para("  ", dim, caption)
	}
	t.table(table.Filled())
}

// table writes a table. While it is too wide, the columns of the highest rank go. Then the last
// column is wrapped, and the widest of the others are cut.
func (t *terminal) table(table *page.Table) {
	rows := make([][]string, 0, len(table.Rows)+1)
	head := make([]string, len(table.Columns))
	keep := make([]int, len(head))
	for j, c := range table.Columns {
		head[j], keep[j] = c.Head, j
	}
	rows = append(rows, head)
	for _, r := range table.Rows[:min(len(table.Rows), mostRows)] {
		cells := make([]string, len(head))
		for j := range min(len(head), len(r)) {
			cells[j] = text.Line(text.Bytes(r[j].Text, lineBytes))
		}
		rows = append(rows, cells)
	}
	widths := fit(rows)
	for sum(widths, keep) > t.width {
		drop := 0
		for i, j := range keep {
			if table.Columns[j].Rank >= table.Columns[keep[drop]].Rank {
				drop = i
			}
		}
		if table.Columns[keep[drop]].Rank == 0 {
			break
		}
		keep = slices.Delete(keep, drop, drop+1)
	}
	t.narrow(widths, keep)
	right := make([]bool, len(head))
	for j := range right {
		right[j] = !table.Words && !slices.ContainsFunc(rows[1:], func(r []string) bool { return !figure.MatchString(r[j]) })
	}
	for i, r := range rows {
		var classes []page.Cell
		if i > 0 {
			classes = table.Rows[i-1]
		} else if strings.Join(r, "") == "" {
			continue
		}
		t.row(r, classes, keep, widths, right)
	}
	if rest := len(table.Rows) - len(rows) + 1; rest > 0 {
		t.line(fmt.Sprintf("  … and %d more in the reports", rest))
	}
	if table.Left != "" {
		t.line("  … " + table.Left + " in the reports")
	}
}

// narrow reduces the widths of columns until the table fits: first those of the widest, then that of
// the last, whose text continues on further lines, then any.
func (t *terminal) narrow(widths, keep []int) {
	last := len(keep) - 1
	for _, step := range []struct {
		columns []int
		least   int
	}{{keep[:last], widest}, {keep[last:], widest}, {keep, narrowest}} {
		for len(step.columns) > 0 && sum(widths, keep) > t.width {
			most := step.columns[0]
			for _, j := range step.columns {
				if widths[j] > widths[most] {
					most = j
				}
			}
			if widths[most] <= step.least {
				break
			}
			widths[most]--
		}
	}
}

// row writes one row of a table. The cells are nil for the head. If the last cell has too much text,
// the text continues on the next lines.
func (t *terminal) row(r []string, cells []page.Cell, keep, widths []int, right []bool) {
	last := keep[len(keep)-1]
	for k, part := range text.Wrap(r[last], widths[last]) {
		var b strings.Builder
		for _, j := range keep {
			cell := text.Cut(r[j], widths[j])
			switch {
			case j == last:
				cell = part
			case k > 0:
				cell = ""
			}
			p := plain
			if cells == nil {
				p = dim
			} else if j < len(cells) {
				p = colors[cells[j].Class]
			}
			b.WriteString("  " + t.paint(p, text.Pad(text.Inert(cell), widths[j], right[j])))
		}
		t.line(b.String())
	}
}

func fit(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for j, cell := range row {
			widths[j] = max(widths[j], text.Width(cell))
		}
	}
	return widths
}

func sum(widths, keep []int) int {
	n := 0
	for _, j := range keep {
		n += widths[j] + 2
	}
	return n
}
