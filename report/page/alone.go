package page

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/chart"
)

// drawPoints draws a chart of lines that have only one point each. The X axis is the length of the
// prompts if all have the same load and different lengths; otherwise each point has its own row.
// svg is "" if a line has several points.
func drawPoints(c chart.Chart, title string, lines []track, unit metric.Unit) (svg template.HTML, words string) {
	if by := byLength(c, title, lines); by != nil {
		return by.SVG(), fmt.Sprintf(" The load is %s, and the chart shows the values by the length of the prompt.", inFlight(lines[0].cases[0]))
	}
	if rows := dots(c, lines, unit); len(lines) > 1 && rows != nil {
		return rows.SVG(), ""
	}
	return "", ""
}

// dots returns a chart with one row for each line. It is for lines of a single point, which cannot
// be drawn as lines. It returns nil if a line has more or fewer points.
func dots(c chart.Chart, lines []track, unit metric.Unit) *chart.Forest {
	f := &chart.Forest{Name: c.Name, Format: metric.In(unit)}
	for i, s := range c.Series {
		if len(s.Points) != 1 {
			return nil
		}
		p := s.Points[0]
		low, high := math.NaN(), math.NaN()
		if s.Band || p.Low < p.High {
			low, high = p.Low, p.High
		}
		f.Rows = append(f.Rows,
			chart.Row{Name: fmt.Sprintf("%s at %d", lines[i].name, int(p.X)), Value: p.Y, Low: low, High: high, Limit: math.NaN(), Tip: p.Tip})
	}
	return f
}

// byLength returns a chart with the length of prompts on the X axis. All lines must be measured at
// the same single load. It returns nil if a line has several loads, or if two lines have the same
// length.
func byLength(c chart.Chart, title string, lines []track) *chart.Chart {
	const fewest = 3
	out := chart.Chart{Name: title + " against the length of the prompt", Y: c.Y, Series: []chart.Series{{}},
		X: chart.Axis{Title: "Tokens of the prompt", Log: true, Format: func(v float64) string { return count(int(v)) }}}
	for i, t := range lines {
		w, points := t.r.Workload(t.workload), c.Series[i].Points
		if w == nil || w.Input == 0 || len(points) != 1 || points[0].X != c.Series[0].Points[0].X ||
			slices.Contains(out.X.Ticks, float64(w.Input)) {
			return nil
		}
		p := points[0]
		p.X = float64(w.Input)
		out.X.Ticks, out.Series[0].Points = append(out.X.Ticks, p.X), append(out.Series[0].Points, p)
	}
	slices.SortFunc(out.Series[0].Points, func(a, b chart.Point) int { return cmp.Compare(a.X, b.X) })
	if len(lines) < fewest {
		return nil
	}
	return &out
}
