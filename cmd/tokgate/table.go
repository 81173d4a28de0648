package main

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/report/text"
)

// table is a table of `tokgate plan`. A row with a single cell is a heading for the rows after it,
// so it must not be the last row.
type table struct {
	numbers []int // columns that are aligned to the right
	rows    [][]string
}

const (
	titleIndent = 2
	rowIndent   = 4
)

// cellWidth is the largest width of a cell in a column that is not the last.
const cellWidth = 32

func (t table) write(out io.Writer, width int) {
	widths := make([]int, len(t.rows[len(t.rows)-1]))
	last := len(widths) - 1
	for _, row := range t.rows {
		for j, cell := range row {
			if len(row) == 1 {
				continue
			}
			if n := text.Width(cell); j == last || n <= cellWidth {
				widths[j] = max(widths[j], n)
			} else {
				widths[j] = cellWidth
			}
		}
	}
	left := width - rowIndent
	for _, w := range widths[:last] {
		left -= w + 2
	}
	widths[last] = min(widths[last], max(left, 16))
	for _, row := range t.rows {
		if len(row) == 1 {
			para(out, width, strings.Repeat(" ", titleIndent), row[0])
			continue
		}
		var cells [][]string
		lines := 1
		for j, cell := range row {
			cells = append(cells, text.Wrap(cell, widths[j]))
			lines = max(lines, len(cells[j]))
		}
		for i := range lines {
			line := strings.Repeat(" ", rowIndent)
			for j, cell := range cells {
				part := ""
				if i < len(cell) {
					part = cell[i]
				}
				line += text.Pad(part, widths[j], slices.Contains(t.numbers, j)) + "  "
			}
			io.WriteString(out, strings.TrimRight(line, " ")+"\n")
		}
	}
}

// All lines after the first are indented by the width of lead.
func para(out io.Writer, width int, lead, s string) {
	indent := text.Width(lead)
	for _, line := range text.Wrap(s, max(width-indent, 20)) {
		io.WriteString(out, lead+line+"\n")
		lead = strings.Repeat(" ", indent)
	}
}

// grouped writes a number with commas between thousands.
func grouped(n int) string {
	s := strconv.Itoa(n)
	var b strings.Builder
	for i, r := range s {
		if i > 0 && (len(s)-i)%3 == 0 && s[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return b.String()
}
