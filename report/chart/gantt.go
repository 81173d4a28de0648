package chart

import (
	"fmt"
	"html/template"
)

// Gantt shows requests as bars over time, with one row for each slot. The wait for the first token
// is light, the answer is dark.
type Gantt struct {
	Name   string
	Rows   int                  // at least 1
	Length float64              // seconds shown
	Format func(float64) string // of a time
	Bars   []Request
}

// Request is one request in the chart. It waits from Start to First and answers from First to End,
// in seconds. First is NaN if no token came.
type Request struct {
	Row               int
	Start, First, End float64
	Class             string // "", "faint" or "failed"
	Tip               string
}

// ganttWidth is the chart's width in pixels. On a phone, which is narrower, the chart scrolls.
const ganttWidth = 960.0

// mostRows is the largest number of rows. Nobody could read more.
const mostRows = 512

// SVG draws the bars. It returns "" if there are none.
func (g *Gantt) SVG() template.HTML {
	if len(g.Bars) == 0 || g.Length <= 0 || !finite(g.Length) || g.Rows < 1 || g.Rows > mostRows {
		return ""
	}
	row := 16.0
	if g.Rows > 24 {
		row = 11
	}
	height := 10 + row*float64(g.Rows) + 40
	axis := Axis{Min: 0, Max: g.Length, Format: g.Format}
	x := axis.scale(nil, 9)
	left := 44.0
	x.place(left, ganttWidth-14)
	x.across = ganttWidth
	bottom := 10 + row*float64(g.Rows)
	var s svg
	s.add(`<svg class="chart gantt" viewBox="0 0 %s %s" width="%s" height="%s" role="img" aria-label="%s">`, num(ganttWidth), num(height), num(ganttWidth), num(height), esc(g.Name))
	for _, t := range x.separateTicks() {
		at := x.at(t)
		s.add(`<line class="grid" x1="%s" x2="%[1]s" y1="6" y2="%s" stroke="currentColor" stroke-opacity=".15"/>`, num(at), num(bottom+4))
		s.add(`<text class="tick" x="%s" y="%s" text-anchor="middle">%s</text>`, num(x.labelCenter(t)), num(bottom+18), esc(g.Format(t)))
	}
	every := 1
	for float64(every)*row < 15 || g.Rows/every > 24 {
		every++
	}
	for i := 0; i < g.Rows; i += every {
		s.add(`<text class="tick" x="%s" y="%s" text-anchor="end">%d</text>`, num(left-8), num(10+row*float64(i)+row/2+4), i+1)
	}
	s.add(`<text class="title" x="0" y="%s">slot</text>`, num(height-4))
	s.add(`<text class="title" x="%s" y="%s" text-anchor="end">time</text>`, num(ganttWidth-14), num(height-4))
	for _, b := range g.Bars {
		if !finite(b.Start) || !finite(b.End) || b.Row < 0 || b.Row >= g.Rows {
			continue
		}
		y := 10 + row*float64(b.Row) + 1.5
		s.add(`<g class="req %s"><title>%s</title>`, esc(b.Class), esc(b.Tip))
		first := b.First
		if !finite(first) {
			first = b.End
		}
		bar := func(class string, from, to float64) string {
			return fmt.Sprintf(`<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`, class, num(x.at(from)), num(y), num(max(x.at(to)-x.at(from), 0.7)), num(row-3))
		}
		s.WriteString(bar("wait", b.Start, first))
		if b.End > first {
			s.WriteString(bar("decode", first, b.End))
		}
		s.WriteString(`</g>`)
	}
	s.WriteString("</svg>")
	return template.HTML(s.String())
}

// Block returns the legend's sample for a part of a bar: "wait", "decode", "faint" or "failed".
func Block(class string) template.HTML {
	inner := class
	if class == "faint" || class == "failed" {
		inner = "decode"
	}
	return template.HTML(`<svg class="swatch" viewBox="0 0 22 12" width="22" height="12" aria-hidden="true"><g class="req ` + esc(class) + `"><rect class="` + esc(inner) + `" x="0" y="1" width="22" height="10"/></g></svg>`)
}
