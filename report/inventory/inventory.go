// Package inventory shows what a traffic file contains, as text or as an HTML page. The page loads
// no other files.
package inventory

import (
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/report/chart"
	"github.com/tokgate/tokgate/report/html"
	"github.com/tokgate/tokgate/report/page"
	"github.com/tokgate/tokgate/report/terminal"
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

// Text writes the inventory for a terminal.
func (v *Inventory) Text(w io.Writer) error {
	return terminal.Sections(w, v.sections(v.Title), 100, false)
}

// HTML writes the inventory as an HTML page.
func (v *Inventory) HTML(w io.Writer) error {
	return html.Sections(w, page.Line(v.Title), v.sections("Facts"))
}

// sections returns what the file contains: facts under the given title, lengths, and the requests
// over time.
func (v *Inventory) sections(title string) []page.Section {
	facts := &page.Table{Caption: "Facts", Words: true, Columns: page.Heads("", "")}
	for _, f := range v.Facts {
		facts.Rows = append(facts.Rows, page.Row(f.Name, f.Value))
	}
	out := []page.Section{{ID: "facts", Title: page.Line(title), Blocks: []page.Block{{Table: facts}}}}
	lengths := &page.Table{Caption: "Lengths", Columns: page.Heads("", "Mean", "p5", "p50", "p95", "p99", "Max")}
	var spread []page.Figure
	for _, l := range v.Lengths {
		if cells := l.cells(); cells != nil {
			lengths.Rows = append(lengths.Rows, page.Row(append([]string{l.Name}, cells...)...))
			spread = append(spread, page.Figure{ID: "lengths-" + strconv.Itoa(len(spread)), Title: l.Name, Words: "Share of all lengths up to this one.", Chart: l.chart()})
		}
	}
	if len(lengths.Rows) > 0 {
		out = append(out, page.Section{ID: "lengths", Title: "Lengths", Blocks: []page.Block{{Table: lengths}, {Figures: spread}}})
	}
	if len(v.Rates) > 0 {
		over := page.Figure{ID: "rates", Title: "Requests a second over time", Chart: v.chart(), Table: v.bars()}
		out = append(out, page.Section{ID: "rates", Title: over.Title, Blocks: []page.Block{{Figures: []page.Figure{over}}}})
	}
	if len(v.Notes) > 0 {
		var notes []string
		for _, n := range v.Notes {
			notes = append(notes, page.Line(n))
		}
		out = append(out, page.Section{ID: "notes", Title: "Notes", Blocks: []page.Block{{List: notes}}})
	}
	return out
}

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
		digit := 1.0
		if v < 10 { // a mean of few turns
			digit = 10
		}
		out = append(out, strconv.FormatFloat(math.Round(v*digit)/digit, 'f', -1, 64))
	}
	return out
}

// The width of the longest bar, in characters, and the largest number of bars. If a file has more
// intervals, neighbours are merged.
const (
	barWidth = 40
	mostBars = 20
)

// bars divides the duration of the file into at most mostBars intervals. It returns a table of the
// start of each, its requests a second, and a bar.
func (v *Inventory) bars() *page.Table {
	t := &page.Table{Columns: page.Heads("From", "Requests a second", "")}
	each := (len(v.Rates) + mostBars - 1) / mostBars
	var rates []float64
	for i := 0; i < len(v.Rates); i += each {
		part := v.Rates[i:min(i+each, len(v.Rates))]
		sum := 0.0
		for _, r := range part {
			sum += r
		}
		rates = append(rates, sum/float64(len(part)))
		t.Rows = append(t.Rows, page.Row(chart.Clock(float64(i)*v.Step)))
	}
	most := max(slices.Max(rates), 1e-9)
	for i, r := range rates {
		t.Rows[i] = append(t.Rows[i], page.Row(strconv.FormatFloat(r, 'g', 3, 64), strings.Repeat("█", int(math.Round(r/most*barWidth))))...)
	}
	return t
}

func (v *Inventory) chart() template.HTML {
	s := chart.Series{Name: "requests a second", Steps: true, Plain: true}
	for i, r := range v.Rates {
		s.Points = append(s.Points, chart.Point{X: float64(i) * v.Step, Y: r, Low: math.NaN(), High: math.NaN()})
	}
	if n := len(v.Rates); n > 0 { // the line of a step chart must reach the end of the last interval
		s.Points = append(s.Points, chart.Point{X: float64(n) * v.Step, Y: v.Rates[n-1], Low: math.NaN(), High: math.NaN()})
	}
	c := chart.Chart{Name: "requests a second over time", X: chart.Time(float64(len(v.Rates)) * v.Step), Y: chart.Axis{Title: "requests a second", Zero: true},
		Series: []chart.Series{s}}
	return c.SVG()
}

func (l Lengths) chart() template.HTML {
	values := slices.Sorted(slices.Values(l.Values))
	s := chart.Series{Name: l.Name, Steps: true, Plain: true}
	const most = 200
	for i := range min(len(values), most) {
		at := (i + 1) * len(values) / min(len(values), most)
		s.Points = append(s.Points,
			chart.Point{X: max(values[at-1], 1), Y: 100 * float64(at) / float64(len(values)), Low: math.NaN(), High: math.NaN()})
	}
	c := chart.Chart{Name: l.Name, X: chart.Axis{Title: l.Name, Log: true}, Y: chart.Axis{Title: "% no longer", Zero: true, Max: 100},
		Series: []chart.Series{s}}
	return c.SVG()
}
