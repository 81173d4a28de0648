package page

import (
	"slices"
	"strconv"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
)

// mostLoads is the largest number of loads in the table of a figure. Each load has a column.
const mostLoads = 7

// matrix returns a figure's data as a table with one column for each load. It returns nil if there
// are more than mostLoads loads, or only one line.
func (cv curve) matrix(lines []track, of func(*report.Case) metric.Value, unit metric.Unit) *Table {
	var loads []float64
	for _, t := range lines {
		for _, c := range t.line() {
			loads = append(loads, c.Load())
		}
	}
	slices.Sort(loads)
	loads = slices.Compact(loads)
	if len(lines) < 2 || len(loads) > mostLoads {
		return nil
	}
	tab := &Table{Caption: cv.title + " by " + kinds[cv.kind], Columns: Heads("Line")}
	if cv.band {
		tab.Caption += ", with p5 and p95 in brackets"
	}
	for _, l := range loads {
		tab.Columns = append(tab.Columns, Heads("At "+strconv.FormatFloat(l, 'g', 4, 64))...)
	}
	for _, t := range lines {
		row := append([]Cell{text(t.name)}, slices.Repeat([]Cell{text("–")}, len(loads))...)
		for _, c := range t.line() {
			said := of(c).Format(unit)
			if sum := c.Summary(cv.name); cv.band && sum != nil && sum.Percentiles != nil {
				said += " (" + sum.Percentiles.P5.Format(sum.Unit) + " to " + sum.Percentiles.P95.Format(sum.Unit) + ")"
			}
			row[1+slices.Index(loads, c.Load())] = text(said)
		}
		tab.Rows = append(tab.Rows, row)
	}
	return tab
}

func (cv curve) table(lines []track, of func(*report.Case) metric.Value, axis string, unit metric.Unit) *Table {
	if m := cv.matrix(lines, of, unit); m != nil {
		return m
	}
	tab := &Table{Caption: cv.title + " by " + kinds[cv.kind], Columns: Heads("Line", Capital(kinds[cv.kind]), Capital(axis))}
	if cv.band {
		tab.Columns = append(tab.Columns, Heads("p5", "p95")...)
	}
	tab.Columns = append(tab.Columns, Heads("Requests")...)
	for _, t := range lines {
		for _, c := range t.cases {
			v := of(c)
			row := []Cell{text(t.name), text(levelOf(c)), text(v.Format(unit))}
			if cv.band {
				if sum := c.Summary(cv.name); sum != nil && sum.Percentiles != nil {
					row = append(row, text(sum.Percentiles.P5.Format(sum.Unit)), text(sum.Percentiles.P95.Format(sum.Unit)))
				} else {
					row = append(row, text("–"), text("–"))
				}
			}
			tab.Rows = append(tab.Rows, append(row, text(count(c.Completed))))
		}
	}
	if len(lines) == 1 {
		tab.Columns = tab.Columns[1:]
		for i := range tab.Rows {
			tab.Rows[i] = tab.Rows[i][1:]
		}
	}
	return tab
}
