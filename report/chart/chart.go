// Package chart draws charts as inline SVG: lines over a numeric axis (Chart), requests over time
// (Gantt) and changes with their intervals (Forest). The page with the charts runs no script and
// loads nothing.
//
// A chart contains only geometry and text. Colours come from the page's style sheet by class: s0,
// s1 … for series, and pass, fail and unsure for outcomes. All text is escaped here.
package chart

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/report/text"
)

// Chart is a line chart.
type Chart struct {
	Name string // what the chart shows, for screen readers
	// Height is in pixels at full size; 0 means 300. Every chart has the same width, the constant
	// Width.
	Height float64
	X, Y   Axis
	Zones  []Zone
	Spans  []Span
	Rules  []Rule
	Series []Series
}

// Width is the width of a chart in pixels. Two charts fit next to each other on a desktop, and one
// fits on a phone.
const Width = 480.0

// Axis is one axis. Its range covers the data and the values of Include.
type Axis struct {
	Title   string
	Log     bool
	Zero    bool      // the axis begins at zero; not together with Log
	Whole   bool      // values are counts: no ticks between whole numbers
	Include []float64 // values that the range must cover
	Ticks   []float64 // the only allowed positions of ticks; nil for round numbers
	First   []float64 // ticks that get labels first if there is no room for all labels
	Min     float64   // lower end of a fixed range up to Max; if both are 0, the range of the data
	Max     float64
	Format  func(float64) string // text of a tick; nil for plain digits
}

// Zone is a horizontal band with a name: "responsive".
type Zone struct {
	From, To float64 // To may be +Inf
	Word     string
	Class    string // CSS class of the shade: "z0" (best) to "z4"
}

// Span is a vertical band: the loads between which a limit lies.
type Span struct {
	From, To float64
	Word     string
}

// Rule is a straight line that marks a value, such as a limit. It is horizontal, at a value of Y.
// If Vertical is set, it is vertical, at a value of X.
type Rule struct {
	At       float64
	Word     string
	Class    string // CSS class: "" or the class of a series
	Vertical bool
}

// Mark is the shape of a point. The zero value OfSeries takes the shape of the point's series.
type Mark int

// The marks for outcomes.
const (
	OfSeries Mark = iota
	Pass
	Fail
	Unsure
)

// Series is one line of a chart.
type Series struct {
	Name  string
	Index int  // number of the series, which decides its colour, mark and dashes
	Band  bool // shade the area from Low to High
	Bars  bool // draw a bar from Low to High at each point
	Loose bool // draw the points without a line between them
	Plain bool // draw only the line, without points and tooltips
	Steps bool // the line keeps its height until the next point
	// Points in order of X.
	Points []Point
}

// Point is one value of a line. If X or Y is NaN, the line has a gap. If Low or High is NaN, the
// point has no interval.
type Point struct {
	X, Y      float64
	Low, High float64
	Mark      Mark
	Hollow    bool
	Tip       []string // lines shown while the pointer is on the point
}

// points without a line
type svg struct{ strings.Builder }

func (s *svg) add(format string, args ...any) { fmt.Fprintf(s, format, args...) }

func num(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// esc makes a text safe inside an element and in a quoted attribute.
func esc(s string) string { return html.EscapeString(text.Line(s)) }

// charWidth is an estimate of the width of a digit, in pixels. It is for the largest font size of
// charts (the size on a phone), and for the widest font that "system-ui" may be.
const charWidth = 8.6

// width estimates the drawn width of a text. It estimates rather too much, because overlapping
// labels are worse than wide spaces.
func width(s string) float64 {
	n := 0.0
	for _, r := range s {
		switch {
		case r >= 0x1100: // wide characters of East Asia and emoji
			n += 2
		case strings.ContainsRune("mMW%∞", r):
			n += 1.5
		case r >= 'A' && r <= 'Z':
			n += 1.3
		case strings.ContainsRune(" .,:'|ijl", r):
			n += 0.55
		default:
			n++
		}
	}
	return n * charWidth
}

func (c *Chart) empty() bool {
	for _, s := range c.Series {
		for _, p := range s.Points {
			if !math.IsNaN(p.X) && finite(p.Y) {
				return false
			}
		}
	}
	return true
}

// finite reports whether a value can be drawn. Values of 1e15 or more can only be mistakes, and are
// too large for exact arithmetic.
func finite(v float64) bool { return math.Abs(v) < 1e15 }

// SVG returns the chart as SVG; "" if the chart is empty.
func (c *Chart) SVG() template.HTML {
	if c.empty() {
		return ""
	}
	xs, ys := c.values()
	height := c.Height
	if height == 0 {
		height = 300
	}
	y := c.Y.scale(ys, 5)
	left := 10.0
	for _, t := range y.ticks {
		left = max(left, width(y.format(t))+10)
	}
	f := frame{left: left, right: Width - 12, top: 30, bottom: height - 42, y: y}
	for _, z := range c.Zones {
		f.right = min(f.right, Width-7-width(z.Word))
	}
	f.x = c.X.scale(xs, int((f.right-f.left)/60))
	f.y.place(f.bottom, f.top)
	f.x.place(f.left, f.right)
	if c.X.Log || c.X.Ticks != nil && !c.X.Zero && c.X.Min == c.X.Max {
		f.x.pad(14)
	}

	var s svg
	s.add(`<svg class="chart" viewBox="0 0 %s %s" width="%s" height="%s" role="img" aria-label="%s">`, num(Width), num(height), num(Width), num(height), esc(c.Name))
	f.zones(&s, c.Zones)
	f.spans(&s, c.Spans)
	f.axes(&s, c, height)
	for i := range c.Series {
		f.band(&s, &c.Series[i])
	}
	f.rules(&s, c.Rules, c.Series)
	for i := range c.Series {
		f.line(&s, &c.Series[i])
	}
	for i := range c.Series {
		f.marks(&s, &c.Series[i])
	}
	// The areas that react to the pointer are drawn last, above everything else.
	for i := range c.Series {
		f.tips(&s, &c.Series[i], height)
	}
	s.WriteString("</svg>")
	return template.HTML(s.String())
}

func (c *Chart) values() (xs, ys []float64) {
	// A very long bar would make all other bars too short, so it ends at the edge of the chart.
	most := math.Inf(1)
	for _, r := range c.Rules {
		if !r.Vertical && finite(r.At) {
			most = barRoom * math.Abs(r.At)
		}
	}
	for _, s := range c.Series {
		for _, p := range s.Points {
			if finite(p.Y) && s.Bars && !math.IsInf(most, 1) {
				most = max(most, barRoom*math.Abs(p.Y))
			}
		}
	}
	for _, s := range c.Series {
		for _, p := range s.Points {
			if !finite(p.X) {
				continue
			}
			xs, ys = append(xs, p.X), append(ys, p.Y)
			switch {
			case s.Band:
				ys = append(ys, p.Low, p.High)
			case s.Bars:
				ys = append(ys, p.Low, min(p.High, most))
			}
		}
	}
	return xs, ys
}

// barRoom is how far bars may extend an axis with limits: up to 1.5 times the highest value or
// limit.
const barRoom = 1.5

// frame is the drawing area of a chart.
type frame struct {
	left, right, top, bottom float64
	x, y                     *scale
}

func (f *frame) at(v float64) float64 { return min(max(f.y.at(v), f.top), f.bottom) }

// zones draws the bands and their names next to the frame, where no line crosses the
// words.
func (f *frame) zones(s *svg, zones []Zone) {
	last := math.Inf(1)
	for _, z := range zones {
		from, to := f.at(z.From), f.top
		if finite(z.To) {
			to = f.at(z.To)
		}
		if from-to < 1 {
			continue
		}
		s.add(`<rect class="zone %s" x="%s" y="%s" width="%s" height="%s" fill="none"/>`, esc(z.Class), num(f.left), num(to), num(f.right-f.left), num(from-to))
		if at := (from+to)/2 + 4; math.Abs(last-at) >= 14 {
			s.add(`<text class="zoneword" x="%s" y="%s">%s</text>`, num(f.right+5), num(at), esc(z.Word))
			last = at
		}
	}
}

func (f *frame) spans(s *svg, spans []Span) {
	for _, p := range spans {
		from, to := max(f.x.at(p.From), f.left), min(f.x.at(p.To), f.right)
		if to-from < 0.5 {
			continue
		}
		s.add(`<rect class="span" x="%s" y="%s" width="%s" height="%s" fill="none"><title>%s</title></rect>`, num(from), num(f.top), num(to-from), num(f.bottom-f.top), esc(p.Word))
	}
}

func (f *frame) axes(s *svg, c *Chart, height float64) {
	for _, t := range f.y.ticks {
		at := f.y.at(t)
		s.add(`<line class="grid" x1="%s" x2="%s" y1="%s" y2="%[3]s" stroke="currentColor" stroke-opacity=".15"/>`, num(f.left), num(f.right), num(at))
		s.add(`<text class="tick" x="%s" y="%s" text-anchor="end">%s</text>`, num(f.left-6), num(at+4), esc(f.y.format(t)))
	}
	s.add(`<line class="axis" x1="%s" x2="%s" y1="%s" y2="%[3]s" stroke="currentColor"/>`, num(f.left), num(f.right), num(f.bottom))
	for _, t := range f.x.separateTicks() {
		at, label := f.x.at(t), f.x.format(t)
		s.add(`<line class="axis" x1="%s" x2="%[1]s" y1="%s" y2="%s" stroke="currentColor"/>`, num(at), num(f.bottom), num(f.bottom+4))
		s.add(`<text class="tick" x="%s" y="%s" text-anchor="middle">%s</text>`, num(f.x.labelCenter(t)), num(f.bottom+17), esc(label))
	}
	s.add(`<text class="title" x="0" y="13">%s</text>`, esc(c.Y.Title))
	s.add(`<text class="title" x="%s" y="%s" text-anchor="end">%s</text>`, num(f.right), num(height-6), esc(c.X.Title))
}
