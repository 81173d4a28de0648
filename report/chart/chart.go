// Package chart draws charts as inline SVG for a page that runs no script and
// loads nothing: lines over a numeric axis (Chart), requests over time (Gantt)
// and changes with their intervals (Forest).
//
// A chart holds geometry and text alone. Colours come from the page's style
// sheet by class (s0, s1 … for series; pass, fail, unsure for outcomes), and
// presentation attributes keep it readable where the sheet is blocked. Exact
// values show when a point is pointed at. All text is escaped here.
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
	Name string // what it shows, for screen readers
	// Height in pixels at full size; 0: 300. The width is Width.
	Height float64
	X, Y   Axis
	Zones  []Zone
	Spans  []Span
	Rules  []Rule
	Series []Series
}

// Width of every chart in pixels at full size: two stand side by side on a
// desktop, one fills a phone.
const Width = 480.0

// Axis is one axis. Its range covers the data, and what Include names.
type Axis struct {
	Title   string
	Log     bool
	Zero    bool      // begins at zero; not with Log
	Include []float64 // to be within the range
	Ticks   []float64 // the only candidates; nil: round numbers
	First   []float64 // ticks that are labelled before others
	Min     float64   // with Max: the range, whatever the data; both 0: by the data
	Max     float64
	Format  func(float64) string // of a tick; nil: plain digits
}

// Zone is a horizontal stretch that has a word: "responsive".
type Zone struct {
	From, To float64 // To may be +Inf
	Word     string
	Class    string // of its shade: "z0" (best) to "z4"
}

// Span is a vertical stretch: the loads between which a limit lies.
type Span struct {
	From, To float64
	Word     string
}

// Rule is a line at a limit, horizontal or, with Vertical, at a value of X.
type Rule struct {
	At       float64
	Word     string
	Class    string // "" or a series' class
	Vertical bool
}

// Mark is how a point looks; the zero Mark is that of its series.
type Mark int

// The marks that say an outcome.
const (
	OfSeries Mark = iota
	Pass
	Fail
	Unsure
)

// Series is one line of a chart.
type Series struct {
	Name  string
	Index int  // of its colour, mark and dash
	Band  bool // shade from Low to High
	Bars  bool // draw Low to High at each point
	Loose bool // points that no line joins
	Plain bool // a line without points and tips
	Steps bool // the line keeps its height until the next point
	// Points in order of X.
	Points []Point
}

// Point is one value. NaN leaves a gap; a Low or High that is NaN is none.
type Point struct {
	X, Y      float64
	Low, High float64
	Mark      Mark
	Hollow    bool
	Tip       []string // lines shown when it is pointed at
}

// svg collects elements.
type svg struct{ strings.Builder }

func (s *svg) add(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// num writes a coordinate.
func num(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

// esc makes a text safe inside an element and in a quoted attribute.
func esc(s string) string { return html.EscapeString(text.Line(s)) }

// charWidth is about that of a digit in the widest of the fonts that a page's
// "system-ui" may be, at the largest font size of charts (that of a phone).
const charWidth = 7.8

// width estimates how wide a text is drawn. Too wide is safe, too narrow is
// not.
func width(s string) float64 {
	n := 0.0
	for _, r := range s {
		switch {
		case r >= 0x1100: // wide characters of East Asia and emoji
			n += 2
		case strings.ContainsRune("mMW%∞", r):
			n += 1.5
		case strings.ContainsRune(" .,:'|ijl", r):
			n += 0.55
		default:
			n++
		}
	}
	return n * charWidth
}

// Empty says whether there is nothing to draw.
func (c *Chart) Empty() bool {
	for _, s := range c.Series {
		for _, p := range s.Points {
			if !math.IsNaN(p.X) && finite(p.Y) {
				return false
			}
		}
	}
	return true
}

// finite says whether a value can be drawn. What lies beyond can only be a
// mistake, and arithmetic on it no longer adds up.
func finite(v float64) bool { return math.Abs(v) < 1e15 }

// SVG draws the chart; "" when it is empty.
func (c *Chart) SVG() template.HTML {
	if c.Empty() {
		return ""
	}
	var xs, ys []float64
	for _, s := range c.Series {
		for _, p := range s.Points {
			if !finite(p.X) {
				continue
			}
			xs = append(xs, p.X)
			ys = append(ys, p.Y)
			if s.Band || s.Bars {
				ys = append(ys, p.Low, p.High)
			}
		}
	}
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
	if c.X.Ticks != nil && !c.X.Log && !c.X.Zero && c.X.Min == c.X.Max {
		f.x.pad(14)
	} else if c.X.Log {
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
	// What is pointed at lies over everything that is drawn.
	for i := range c.Series {
		f.tips(&s, &c.Series[i], height)
	}
	s.WriteString("</svg>")
	return template.HTML(s.String())
}

// frame is the drawing area.
type frame struct {
	left, right, top, bottom float64
	x, y                     *scale
}

// at is where a value of Y is drawn, within the frame.
func (f *frame) at(v float64) float64 {
	return min(max(f.y.at(v), f.top), f.bottom)
}

// zones shades the bands and names them beside the frame, where no line runs
// through the words.
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
	for _, t := range f.x.apart() {
		at, label := f.x.at(t), f.x.format(t)
		s.add(`<line class="axis" x1="%s" x2="%[1]s" y1="%s" y2="%s" stroke="currentColor"/>`, num(at), num(f.bottom), num(f.bottom+4))
		s.add(`<text class="tick" x="%s" y="%s" text-anchor="middle">%s</text>`, num(f.x.inside(t)), num(f.bottom+17), esc(label))
	}
	s.add(`<text class="title" x="0" y="13">%s</text>`, esc(c.Y.Title))
	s.add(`<text class="title" x="%s" y="%s" text-anchor="end">%s</text>`, num(f.right), num(height-6), esc(c.X.Title))
}

// rules draws limits, their words where no line runs through them: above the
// limit or below it, on the left or on the right.
func (f *frame) rules(s *svg, rules []Rule, series []Series) {
	var labels []float64 // baselines that are taken
	for _, r := range rules {
		if !finite(r.At) {
			continue
		}
		if r.Vertical {
			x := f.x.at(r.At)
			if x < f.left-1 || x > f.right+1 {
				continue
			}
			s.add(`<line class="rule %s" x1="%s" x2="%[2]s" y1="%s" y2="%s" stroke="currentColor" stroke-dasharray="6 4"/>`, esc(r.Class), num(x), num(f.top), num(f.bottom))
			anchor, dx := "start", 4.0
			if x+width(r.Word) > f.right {
				anchor, dx = "end", -4
			}
			s.add(`<text class="ruleword halo" x="%s" y="%s" text-anchor="%s">%s</text>`, num(x+dx), num(f.top+12), anchor, esc(r.Word))
			continue
		}
		y := f.y.at(r.At)
		if y < f.top-1 || y > f.bottom+1 {
			continue
		}
		s.add(`<line class="rule %s" x1="%s" x2="%s" y1="%s" y2="%[4]s" stroke="currentColor" stroke-dasharray="6 4"/>`, esc(r.Class), num(f.left), num(f.right), num(y))
		if r.Word == "" {
			continue
		}
		at := y - 5
		if at < f.top+10 {
			at = y + 14
		}
		for tries := 0; tries < 12 && taken(labels, at); tries++ {
			at += 14
		}
		if at > f.bottom-2 || taken(labels, at) {
			continue
		}
		left, anchor := f.left+5, "start"
		for _, place := range []struct {
			at    float64
			right bool
		}{{at, false}, {y + 14, false}, {at, true}, {y + 14, true}} {
			x := f.left + 5
			if place.right {
				x = f.right - 5 - width(r.Word)
			}
			if place.at > f.bottom-2 || taken(labels, place.at) || f.crossed(series, x, x+width(r.Word), place.at-10, place.at+2) {
				continue
			}
			if at = place.at; place.right {
				left, anchor = f.right-5, "end"
			}
			break
		}
		labels = append(labels, at)
		s.add(`<text class="ruleword halo" x="%s" y="%s" text-anchor="%s">%s</text>`, num(left), num(at), anchor, esc(r.Word))
	}
}

// crossed says whether a line or a point lies in a rectangle of the picture.
func (f *frame) crossed(series []Series, left, right, top, bottom float64) bool {
	for _, s := range series {
		for i, p := range s.Points {
			x, y := f.x.at(p.X), f.at(p.Y)
			if !finite(p.Y) {
				continue
			}
			if x >= left-4 && x <= right+4 && y >= top-4 && y <= bottom+4 {
				return true
			}
			if s.Loose || i == 0 || !finite(s.Points[i-1].Y) {
				continue
			}
			// The part of the stretch before that lies over the rectangle.
			fromX, fromY := f.x.at(s.Points[i-1].X), f.at(s.Points[i-1].Y)
			if x <= fromX || fromX > right || x < left {
				continue
			}
			along := func(at float64) float64 { return fromY + (y-fromY)*(min(max(at, fromX), x)-fromX)/(x-fromX) }
			a, b := along(left), along(right)
			if max(a, b) >= top && min(a, b) <= bottom {
				return true
			}
		}
	}
	return false
}

func taken(labels []float64, at float64) bool {
	for _, l := range labels {
		if math.Abs(l-at) < 14 {
			return true
		}
	}
	return false
}

// dashes tell lines apart without colour.
var dashes = []string{"", "7 4", "2 3", "9 3 2 3"}

func (f *frame) band(s *svg, line *Series) {
	if !line.Band {
		return
	}
	var up, down []string
	for _, p := range line.Points {
		if !finite(p.X) || math.IsNaN(p.Low) || math.IsNaN(p.High) {
			continue
		}
		up = append(up, num(f.x.at(p.X))+","+num(f.at(p.High)))
		down = append(down, num(f.x.at(p.X))+","+num(f.at(p.Low)))
	}
	if len(up) < 2 {
		return
	}
	for i := len(down) - 1; i >= 0; i-- {
		up = append(up, down[i])
	}
	s.add(`<polygon class="band s%d" points="%s" fill="none"/>`, line.Index%8, strings.Join(up, " "))
}

func (f *frame) line(s *svg, line *Series) {
	if line.Loose {
		return
	}
	var run []string
	last := 0.0
	flush := func() {
		if len(run) > 1 {
			dash := ""
			if d := dashes[line.Index/2%len(dashes)]; d != "" {
				dash = ` stroke-dasharray="` + d + `"`
			}
			s.add(`<polyline class="line s%d" points="%s" fill="none" stroke="currentColor"%s/>`, line.Index%8, strings.Join(run, " "), dash)
		}
		run = nil
	}
	for _, p := range line.Points {
		if !finite(p.X) || !finite(p.Y) {
			flush()
			continue
		}
		x, y := f.x.at(p.X), f.at(p.Y)
		if line.Steps && len(run) > 0 {
			run = append(run, num(x)+","+num(last))
		}
		run = append(run, num(x)+","+num(y))
		last = y
	}
	flush()
}

func (f *frame) marks(s *svg, line *Series) {
	for _, p := range line.Points {
		if !finite(p.X) || !finite(p.Y) {
			continue
		}
		x, y := f.x.at(p.X), f.at(p.Y)
		if line.Bars && !math.IsNaN(p.Low) && !math.IsNaN(p.High) {
			low, high := f.at(p.Low), f.at(p.High)
			s.add(`<path class="whisker s%d" d="M%s %sV%sM%s %[4]sh8M%[5]s %[3]sh8" fill="none" stroke="currentColor"/>`, line.Index%8, num(x), num(low), num(high), num(x-4))
		}
		if !line.Plain {
			s.WriteString(Glyph(line.Index, p.Mark, p.Hollow, x, y))
		}
	}
}

// Glyph is the mark of a point, centred at x, y.
func Glyph(index int, mark Mark, hollow bool, x, y float64) string {
	class := fmt.Sprintf("mark s%d", index%8)
	switch mark {
	case Pass:
		return fmt.Sprintf(`<circle class="mark pass" cx="%s" cy="%s" r="5"/>`, num(x), num(y))
	case Fail:
		return fmt.Sprintf(`<path class="cross" d="M%s %sl9 9m0 -9l-9 9" fill="none" stroke="currentColor"/>`, num(x-4.5), num(y-4.5))
	case Unsure:
		return fmt.Sprintf(`<path class="mark unsure" d="M%s %sl6 6l-6 6l-6 -6z"/>`, num(x), num(y-6))
	}
	if hollow {
		class += " hollow"
	}
	switch index % 4 {
	case 1:
		return fmt.Sprintf(`<rect class="%s" x="%s" y="%s" width="8" height="8"/>`, class, num(x-4), num(y-4))
	case 2:
		return fmt.Sprintf(`<path class="%s" d="M%s %sl5 9h-10z"/>`, class, num(x), num(y-5.5))
	case 3:
		return fmt.Sprintf(`<path class="%s" d="M%s %sl5.5 5.5l-5.5 5.5l-5.5 -5.5z"/>`, class, num(x), num(y-5.5))
	}
	return fmt.Sprintf(`<circle class="%s" cx="%s" cy="%s" r="4.2"/>`, class, num(x), num(y))
}

// Swatch is what a legend shows for a series.
func Swatch(index int) template.HTML {
	dash := ""
	if d := dashes[index/2%len(dashes)]; d != "" {
		dash = ` stroke-dasharray="` + d + `"`
	}
	return template.HTML(fmt.Sprintf(`<svg class="swatch" viewBox="0 0 26 12" width="26" height="12" aria-hidden="true"><line class="line s%d" x1="0" x2="26" y1="6" y2="6" stroke="currentColor"%s/>%s</svg>`,
		index%8, dash, Glyph(index, OfSeries, false, 13, 6)))
}

// Sign is what a legend shows for an outcome.
func Sign(m Mark) template.HTML {
	return template.HTML(`<svg class="swatch" viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">` + Glyph(0, m, false, 7, 7) + `</svg>`)
}

// tips are what shows when a point is pointed at: an invisible disc, and the
// text beside it, inside the picture.
func (f *frame) tips(s *svg, line *Series, height float64) {
	if line.Plain {
		return
	}
	for _, p := range line.Points {
		if !finite(p.X) || !finite(p.Y) || len(p.Tip) == 0 {
			continue
		}
		tip(s, f.x.at(p.X), f.at(p.Y), p.Tip, Width, height)
	}
}

func tip(s *svg, x, y float64, lines []string, across, height float64) {
	w := 0.0
	for _, l := range lines {
		w = max(w, width(l))
	}
	w = min(w+16, across-4)
	h := float64(len(lines))*16 + 10
	left := x + 10
	if left+w > across-2 {
		left = x - 10 - w
	}
	left = min(max(left, 2), across-2-w)
	top := min(max(y-h/2, 2), height-2-h)
	s.add(`<g class="pt"><circle class="hit" cx="%s" cy="%s" r="11" fill="none"/><g class="tip" visibility="hidden"><rect x="%s" y="%s" width="%s" height="%s" rx="5"/>`,
		num(x), num(y), num(left), num(top), num(w), num(h))
	for i, l := range lines {
		s.add(`<text x="%s" y="%s">%s</text>`, num(left+8), num(top+17+16*float64(i)), esc(l))
	}
	s.WriteString(`</g></g>`)
}
