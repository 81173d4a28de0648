package chart

import "math"

// rules draws the limits of a chart. It puts their labels where no line crosses the text.
func (f *frame) rules(s *svg, rules []Rule, series []Series) {
	var levels, labels []float64 // heights, in pixels, of limits and labels drawn so far
	for _, r := range rules {
		if y := f.y.at(r.At); finite(r.At) && !r.Vertical && y > f.top-1 && y < f.bottom+1 {
			levels = append(levels, y)
			labels = f.level(s, r, series, labels)
		}
	}
	edge := f.left // right end of the labels on vertical lines drawn so far
	for _, r := range rules {
		if finite(r.At) && r.Vertical {
			edge = f.upright(s, r, edge, levels)
		}
	}
}

// level draws a limit on the Y axis as a horizontal line, with a label. The parameter labels holds
// the heights of the labels so far, in pixels; level returns them together with the new label.
func (f *frame) level(s *svg, r Rule, series []Series, labels []float64) []float64 {
	y := f.y.at(r.At)
	s.add(`<line class="rule %s" x1="%s" x2="%s" y1="%s" y2="%[4]s" stroke="currentColor" stroke-dasharray="6 4"/>`, esc(r.Class), num(f.left), num(f.right), num(y))
	if r.Word == "" {
		return labels
	}
	at := y - 5
	if at < f.top+10 {
		at = y + 14
	}
	for tries := 0; tries < 12 && taken(labels, at); tries++ {
		at += 14
	}
	if at > f.bottom-2 || taken(labels, at) {
		return labels
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
	s.add(`<text class="ruleword halo" x="%s" y="%s" text-anchor="%s">%s</text>`, num(left), num(at), anchor, esc(r.Word))
	return append(labels, at)
}

// upright draws a limit on the X axis as a vertical line. Its label is above or below the
// horizontal limits, and to the right of edge, where the previous label ends. upright returns the
// end of the new label.
func (f *frame) upright(s *svg, r Rule, edge float64, levels []float64) float64 {
	x := f.x.at(r.At)
	if x < f.left-1 || x > f.right+1 {
		return edge
	}
	s.add(`<line class="rule %s" x1="%s" x2="%[2]s" y1="%s" y2="%s" stroke="currentColor" stroke-dasharray="6 4"/>`, esc(r.Class), num(x), num(f.top), num(f.bottom))
	left, at, anchor := x+4, x+4, "start"
	if left+width(r.Word) > f.right {
		left, at, anchor = x-4-width(r.Word), x-4, "end"
	}
	if r.Word == "" || left < edge {
		return edge
	}
	y := f.top + 12
	if taken(levels, y-4) {
		y = f.bottom - 6
	}
	s.add(`<text class="ruleword halo" x="%s" y="%s" text-anchor="%s">%s</text>`, num(at), num(y), anchor, esc(r.Word))
	return left + width(r.Word)
}

// crossed reports whether a line or a point lies in a rectangle of the picture.
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
			// Compute the heights a and b of the line at the left and the right end of the
			// rectangle.
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
