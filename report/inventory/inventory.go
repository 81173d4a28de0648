// Package inventory shows what a traffic file contains, as text or as an HTML page. The page loads
// no other files.
package inventory

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/report/chart"
	"github.com/tokgate/tokgate/report/text"
)

// Inventory is what a traffic file contains. All its texts may come from outside.
type Inventory struct {
	Title string // the file and its format
	Facts []Fact // in order
	// Rates are the requests per second in intervals of Step seconds; nil if the file has no times.
	Rates   []float64
	Step    float64
	Lengths []Lengths
	Notes   []string
}

// Fact is one line of the inventory: a name and a value.
type Fact struct{ Name, Value string }

// Lengths holds all lengths of one kind, in ascending order.
type Lengths struct {
	Name   string // what is measured, and the unit, such as "prompt, tokens"
	Values []float64
}

// columns lists the columns of the table of lengths.
var columns = []string{"mean", "p5", "p50", "p95", "p99", "max"}

// cells returns one row of the table of lengths, in the order of columns.
func (l Lengths) cells() []string {
	values := slices.Sorted(slices.Values(l.Values))
	if len(values) == 0 {
		return nil
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	at := func(p float64) float64 { return values[max(int(math.Ceil(p*float64(len(values))))-1, 0)] }
	var out []string
	for _, v := range []float64{sum / float64(len(values)), at(0.05), at(0.5), at(0.95), at(0.99), values[len(values)-1]} {
		out = append(out, strconv.FormatFloat(math.Round(v), 'f', -1, 64))
	}
	return out
}

// barWidth is the width of the longest bar in the text, in characters.
const barWidth = 40

// mostBars is the largest number of bars in the text. If a file has more intervals, neighbours are
// merged.
const mostBars = 20

// bars divides the duration of the file into at most mostBars intervals. It returns the start of
// each, in seconds, and its requests per second.
func (v *Inventory) bars() (begins, rates []float64) {
	each := (len(v.Rates) + mostBars - 1) / mostBars
	for i := 0; i < len(v.Rates); i += each {
		part := v.Rates[i:min(i+each, len(v.Rates))]
		sum := 0.0
		for _, r := range part {
			sum += r
		}
		begins, rates = append(begins, float64(i)*v.Step), append(rates, sum/float64(len(part)))
	}
	return begins, rates
}

// Text writes the inventory for a terminal.
func (v *Inventory) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintln(&b, text.Line(v.Title))
	widest := 0
	for _, f := range v.Facts {
		widest = max(widest, text.Width(f.Name))
	}
	for _, f := range v.Facts {
		fmt.Fprintf(&b, "  %s%s  %s\n", f.Name, strings.Repeat(" ", widest-text.Width(f.Name)), text.Line(f.Value))
	}
	if len(v.Lengths) > 0 {
		fmt.Fprintf(&b, "\n  %-18s", "")
		for _, c := range columns {
			fmt.Fprintf(&b, "%9s", c)
		}
		fmt.Fprintln(&b)
		for _, l := range v.Lengths {
			fmt.Fprintf(&b, "  %-18s", l.Name)
			for _, c := range l.cells() {
				fmt.Fprintf(&b, "%9s", c)
			}
			fmt.Fprintln(&b)
		}
	}
	if begins, rates := v.bars(); len(rates) > 0 {
		fmt.Fprint(&b, "\n  requests a second over time\n")
		most := max(slices.Max(rates), 1e-9)
		for i, r := range rates {
			line := fmt.Sprintf("  %8s %9s  %s", chart.Clock(begins[i]), strconv.FormatFloat(r, 'g', 3, 64), strings.Repeat("█", int(math.Round(r/most*barWidth))))
			fmt.Fprintln(&b, strings.TrimRight(line, " "))
		}
	}
	for _, n := range v.Notes {
		fmt.Fprintf(&b, "\n  note: %s\n", text.Line(n))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

//go:embed page.html
var source string

var page = template.Must(template.New("page").Parse(source))

// HTML writes the inventory as an HTML page.
func (v *Inventory) HTML(w io.Writer) error {
	type row struct {
		Name  string
		Cells []string
	}
	p := struct {
		Title   string
		Facts   []Fact
		Columns []string
		Rows    []row
		Rates   template.HTML
		Spread  []template.HTML
		Notes   []string
	}{Title: text.Line(v.Title), Columns: columns, Rates: v.chart(), Notes: v.Notes}
	for _, f := range v.Facts {
		p.Facts = append(p.Facts, Fact{f.Name, text.Line(f.Value)})
	}
	for _, l := range v.Lengths {
		p.Rows = append(p.Rows, row{l.Name, l.cells()})
		p.Spread = append(p.Spread, l.chart())
	}
	return page.Execute(w, p)
}

// chart draws the number of requests per second over time.
func (v *Inventory) chart() template.HTML {
	s := chart.Series{Name: "requests a second", Steps: true, Plain: true}
	for i, r := range v.Rates {
		s.Points = append(s.Points, chart.Point{X: float64(i) * v.Step, Y: r, Low: math.NaN(), High: math.NaN()})
	}
	if n := len(v.Rates); n > 0 { // the line of a step chart must reach the end of the last interval
		s.Points = append(s.Points, chart.Point{X: float64(n) * v.Step, Y: v.Rates[n-1], Low: math.NaN(), High: math.NaN()})
	}
	c := chart.Chart{Name: "requests a second over time", X: chart.Time(float64(len(v.Rates)) * v.Step), Y: chart.Axis{Title: "requests a second", Zero: true}, Series: []chart.Series{s}}
	return c.SVG()
}

// chart draws a curve: for each length, the share of all lengths up to it.
func (l Lengths) chart() template.HTML {
	values := slices.Sorted(slices.Values(l.Values))
	s := chart.Series{Name: l.Name, Steps: true, Plain: true}
	const most = 200
	for i := range min(len(values), most) {
		at := (i + 1) * len(values) / min(len(values), most)
		s.Points = append(s.Points, chart.Point{X: max(values[at-1], 1), Y: 100 * float64(at) / float64(len(values)), Low: math.NaN(), High: math.NaN()})
	}
	c := chart.Chart{Name: l.Name, X: chart.Axis{Title: l.Name, Log: true}, Y: chart.Axis{Title: "% no longer", Zero: true, Max: 100}, Series: []chart.Series{s}}
	return c.SVG()
}
