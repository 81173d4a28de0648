package chart

import (
	"html/template"
	"math"
)

// Forest shows changes in percent, one row each, with their intervals and limits.
type Forest struct {
	Name   string
	Rows   []Row
	Format func(float64) string // of a change
	// Cut shortens a bar that is more than ten times as long as every other bar. The short bar ends
	// at the edge of the chart and shows its value there.
	Cut bool
	// Sides writes "worse" left of zero and "better" right of zero. Each row then starts at a
	// hollow dot at zero, which stands for the old value. It ends at the new value.
	Sides bool
}

// Row is one row of the chart. NaN values are not drawn. If Low or High is NaN, the interval has
// no end on that side.
type Row struct {
	Name             string
	Detail           string // second line under the name; "" for none
	Value, Low, High float64
	Limit            float64
	Mark             Mark
	Tip              []string
}

// SVG draws the rows. It returns "" if no row has a value.
func (f *Forest) SVG() template.HTML {
	var values []float64
	for _, r := range f.Rows {
		if finite(r.Value) {
			values = append(values, r.Value, r.Low, r.High, r.Limit)
		}
	}
	if len(values) == 0 {
		return ""
	}
	low, high := f.span(values)
	row, left := 24.0, 60.0
	for _, r := range f.Rows {
		left = max(left, min(max(width(r.Name), width(r.Detail))+12, 270))
		if r.Detail != "" {
			row = 36
		}
	}
	top := 12.0
	if f.Sides {
		top = 26
	}
	height := top + row*float64(len(f.Rows)) + 30
	axis := Axis{Include: []float64{low, high}, Format: f.Format}
	x := axis.scale(nil, 4)
	x.place(left+8, Width-14)
	at := func(v float64) float64 { return min(max(x.at(v), left+4), Width-10) }
	bottom := top + row*float64(len(f.Rows))
	var s svg
	s.add(`<svg class="chart" viewBox="0 0 %s %s" width="%s" height="%s" role="img" aria-label="%s">`, num(Width), num(height), num(Width), num(height), esc(f.Name))
	for _, t := range x.separateTicks() {
		s.add(`<line class="grid" x1="%s" x2="%[1]s" y1="%s" y2="%s" stroke="currentColor" stroke-opacity=".15"/>`, num(x.at(t)), num(top-4), num(bottom))
		s.add(`<text class="tick" x="%s" y="%s" text-anchor="middle">%s</text>`, num(x.labelCenter(t)), num(bottom+17), esc(x.format(t)))
	}
	s.add(`<line class="axis" x1="%s" x2="%[1]s" y1="%s" y2="%s" stroke="currentColor"/>`, num(x.at(0)), num(top-4), num(bottom))
	if f.Sides {
		f.sides(&s, x.at(0))
	}
	for i, r := range f.Rows {
		f.row(&s, r, x, left, top+row*float64(i)+row/2)
	}
	for i, r := range f.Rows {
		if finite(r.Value) && len(r.Tip) > 0 {
			tip(&s, at(r.Value), top+row*float64(i)+row/2, r.Tip, Width, height)
		}
	}
	s.WriteString("</svg>")
	return template.HTML(s.String())
}

func (f *Forest) row(s *svg, r Row, x *scale, left, y float64) {
	at := func(v float64) float64 { return min(max(x.at(v), left+4), Width-10) }
	baseline := y + 4
	if r.Detail != "" {
		baseline = y - 3
		s.add(`<text class="tick" x="%s" y="%s" text-anchor="end">%s</text>`, num(left-4), num(y+12), esc(clip(r.Detail, left-8)))
	}
	s.add(`<text class="tick" x="%s" y="%s" text-anchor="end">%s</text>`, num(left-4), num(baseline), esc(clip(r.Name, left-8)))
	if finite(r.Limit) {
		s.add(`<path class="limit" d="M%s %sv16" fill="none" stroke="currentColor"/>`, num(at(r.Limit)), num(y-8))
	}
	low, high := r.Low, r.High
	switch {
	case math.IsNaN(low) && !math.IsNaN(high):
		low = math.Inf(-1)
	case math.IsNaN(high) && !math.IsNaN(low):
		high = math.Inf(1)
	}
	if !math.IsNaN(low) {
		s.add(`<path class="whisker s0" d="M%s %sH%s" fill="none" stroke="currentColor"/>`, num(at(low)), num(y), num(at(high)))
		// An interval that extends beyond the picture has an arrow at its end.
		if x.at(low) < left+4 {
			s.add(`<path class="whisker arrow s0" d="M%s %sl-6 4l6 4" fill="none" stroke="currentColor"/>`, num(left+10), num(y-4))
		}
		if x.at(high) > Width-10 {
			s.add(`<path class="whisker arrow s0" d="M%s %sl6 4l-6 4" fill="none" stroke="currentColor"/>`, num(Width-16), num(y-4))
		}
	}
	if !finite(r.Value) {
		return
	}
	if f.Sides {
		s.add(`<path class="shift" d="M%s %sH%s" fill="none" stroke="currentColor"/>`, num(at(0)), num(y), num(at(r.Value)))
		s.WriteString(glyph(0, OfSeries, true, at(0), y))
	}
	s.WriteString(glyph(0, r.Mark, false, at(r.Value), y))
	switch edge := x.at(r.Value); {
	case f.Cut && edge > Width:
		s.add(`<text class="tick halo" x="%s" y="%s" text-anchor="end">%s →</text>`, num(at(r.Value)-10), num(y+4), esc(f.Format(r.Value)))
	case f.Cut && edge < left:
		s.add(`<text class="tick halo" x="%s" y="%s">← %s</text>`, num(at(r.Value)+10), num(y+4), esc(f.Format(r.Value)))
	}
}

// sides writes "worse" and "better" next to zero, if there is room.
func (f *Forest) sides(s *svg, zero float64) {
	if worse := "← worse"; zero-8-width(worse) > 0 {
		s.add(`<text class="ruleword" x="%s" y="14" text-anchor="end">%s</text>`, num(zero-8), worse)
	}
	if better := "better →"; zero+8+width(better) < Width {
		s.add(`<text class="ruleword" x="%s" y="14">%s</text>`, num(zero+8), better)
	}
}

func (f *Forest) span(values []float64) (low, high float64) {
	// A very wide interval may extend beyond the picture. Otherwise all other intervals would be
	// too narrow to read.
	most := 0.01
	for _, r := range f.Rows {
		for _, v := range []float64{r.Value, r.Limit} {
			if finite(v) && finite(r.Value) {
				most = max(most, 1.3*math.Abs(v))
			}
		}
	}
	if next := f.second(); f.Cut && most > 10*1.3*next && next > 0 {
		most = 1.3 * next
	}
	for _, v := range values {
		if finite(v) {
			low, high = min(low, max(v, -most)), max(high, min(v, most))
		}
	}
	return low, high
}

// second returns the largest absolute value or limit in the chart, apart from the row with the
// largest value. It returns 0 if there is none.
func (f *Forest) second() float64 {
	var out, first float64
	for _, r := range f.Rows {
		if v := math.Abs(r.Value); finite(r.Value) && v > first {
			out, first = max(out, first), v
		} else if finite(r.Value) {
			out = max(out, v)
		}
		if finite(r.Value) && finite(r.Limit) {
			out = max(out, math.Abs(r.Limit))
		}
	}
	return out
}

func clip(s string, w float64) string {
	if width(s) <= w {
		return s
	}
	r := []rune(s)
	for len(r) > 1 && width(string(r))+charWidth > w {
		r = r[:len(r)-1]
	}
	return string(r) + "…"
}
