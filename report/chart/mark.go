package chart

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

var dashes = []string{"", "7 4", "2 3", "9 3 2 3"}

// Lines of ordered series, such as increasing loads, have one colour in Shades different shades.
// The index of an ordered series is Ordered or more.
const (
	Ordered = 100
	Shades  = 8
)

func class(index int) string {
	if index >= Ordered {
		return fmt.Sprintf("o%d", (index-Ordered)%Shades)
	}
	return fmt.Sprintf("s%d", index%8)
}

func dash(index int) string {
	if index >= Ordered {
		return ""
	}
	return dashes[index/2%len(dashes)]
}

// Bar draws a share in [0, 1] as a horizontal bar in the colour of the outcome.
func Bar(share float64, outcome string) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg class="bar" viewBox="0 0 100 8" width="100" height="8" preserveAspectRatio="none" aria-hidden="true"><rect class="track" x="0" y="0" width="100" height="8" rx="2" fill="none"/><rect class="fill %s" x="0" y="0" width="%s" height="8" rx="2"/></svg>`,
		esc(outcome), num(min(max(100*share, 1), 100))))
}

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
	s.add(`<polygon class="band %s" points="%s" fill="none"/>`, class(line.Index), strings.Join(up, " "))
}

func (f *frame) line(s *svg, line *Series) {
	if line.Loose {
		return
	}
	var run []string
	last := 0.0
	flush := func() {
		if len(run) > 1 {
			broken := ""
			if d := dash(line.Index); d != "" {
				broken = ` stroke-dasharray="` + d + `"`
			}
			s.add(`<polyline class="line %s" points="%s" fill="none" stroke="currentColor"%s/>`, class(line.Index), strings.Join(run, " "), broken)
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
			// A bar that extends beyond the picture ends in an arrow.
			end := fmt.Sprintf("M%s %sh8", num(x-4), num(high))
			if f.y.at(p.High) < f.top-0.5 {
				end = fmt.Sprintf("M%s %sl4 -6l4 6", num(x-4), num(high+6))
			}
			s.add(`<path class="whisker %s" d="M%s %sV%sM%s %sh8%s" fill="none" stroke="currentColor"/>`, class(line.Index), num(x), num(low), num(high), num(x-4), num(low), end)
		}
		if !line.Plain {
			s.WriteString(glyph(line.Index, p.Mark, p.Hollow, x, y))
		}
	}
}

func glyph(index int, mark Mark, hollow bool, x, y float64) string {
	of := "mark " + class(index)
	switch mark {
	case Pass:
		return fmt.Sprintf(`<circle class="mark pass" cx="%s" cy="%s" r="5"/>`, num(x), num(y))
	case Fail:
		return fmt.Sprintf(`<path class="cross" d="M%s %sl9 9m0 -9l-9 9" fill="none" stroke="currentColor"/>`, num(x-4.5), num(y-4.5))
	case Unsure:
		return fmt.Sprintf(`<path class="mark unsure" d="M%s %sl6 6l-6 6l-6 -6z"/>`, num(x), num(y-6))
	}
	if hollow {
		of += " hollow"
	}
	switch index % 4 {
	case 1:
		return fmt.Sprintf(`<rect class="%s" x="%s" y="%s" width="8" height="8"/>`, of, num(x-4), num(y-4))
	case 2:
		return fmt.Sprintf(`<path class="%s" d="M%s %sl5 9h-10z"/>`, of, num(x), num(y-5.5))
	case 3:
		return fmt.Sprintf(`<path class="%s" d="M%s %sl5.5 5.5l-5.5 5.5l-5.5 -5.5z"/>`, of, num(x), num(y-5.5))
	}
	return fmt.Sprintf(`<circle class="%s" cx="%s" cy="%s" r="4.2"/>`, of, num(x), num(y))
}

// Swatch returns a short sample of a line for a legend. index is the number of the line's series.
func Swatch(index int) template.HTML {
	broken := ""
	if d := dash(index); d != "" {
		broken = ` stroke-dasharray="` + d + `"`
	}
	return template.HTML(fmt.Sprintf(`<svg class="swatch" viewBox="0 0 26 12" width="26" height="12" aria-hidden="true"><line class="line %s" x1="0" x2="26" y1="6" y2="6" stroke="currentColor"%s/>%s</svg>`,
		class(index), broken, glyph(index, OfSeries, false, 13, 6)))
}

// Sign returns an outcome's mark for a legend.
func Sign(m Mark) template.HTML {
	return template.HTML(`<svg class="swatch" viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">` + glyph(0, m, false, 7, 7) + `</svg>`)
}

// tips draws the text that appears when the pointer is on a point. An invisible disc around the
// point reacts to the pointer. The text stays inside the picture.
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
