package chart

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

var labels = regexp.MustCompile(`<text class="(tick|title|zoneword|ruleword[^"]*)" x="([^"]+)" y="([^"]+)"(?: text-anchor="([a-z]+)")?>([^<]*)</text>`)

// box is the rectangle around a label in the chart. Its width is estimated from the text.
type box struct {
	text                     string
	left, right, top, bottom float64
}

func boxes(t *testing.T, svg string) []box {
	t.Helper()
	var out []box
	for _, m := range labels.FindAllStringSubmatch(svg, -1) {
		x, errX := strconv.ParseFloat(m[2], 64)
		y, errY := strconv.ParseFloat(m[3], 64)
		if errX != nil || errY != nil {
			t.Fatalf("%q is not placed", m[5])
		}
		w := width(strings.NewReplacer("&lt;", "<", "&#39;", "'").Replace(m[5]))
		left := map[string]float64{"": x, "middle": x - w/2, "end": x - w}[m[4]]
		out = append(out, box{m[5], left, left + w, y - 9, y})
	}
	return out
}

// A bar has a cap at both ends. An end outside the picture has an arrow at the edge instead.
func TestBars(t *testing.T) {
	c := Chart{Y: Axis{Min: 0, Max: 10}, X: Axis{Min: 0, Max: 2}, Series: []Series{{Bars: true, Points: []Point{{X: 1, Y: 5, Low: 4, High: 6}, {X: 2, Y: 5, Low: 4, High: 99}}}}}
	svg := string(c.SVG())
	for _, want := range []*regexp.Regexp{regexp.MustCompile(`d="M[\d.]+ ([\d.]+)V([\d.]+)M[\d.]+ [\d.]+h8M[\d.]+ [\d.]+h8"`), regexp.MustCompile(`d="M[\d.]+ [\d.]+V30M[\d.]+ [\d.]+h8M[\d.]+ 36l4 -6l4 6"`)} {
		must.Hold(t, want.MatchString(svg), "%v is not in %s", want, svg)
	}
}

func TestClock(t *testing.T) {
	got := Clock(90) + " " + Clock(3725)
	must.Hold(t, got == "1:30 1:02:05", "%v", got)
	// An axis of seven minutes has a tick every two minutes.
	a := Time(420)
	must.Hold(t, len(a.Ticks) == 4 && a.Ticks[1] == 120, "%v", a.Ticks)
}

// Axis labels stay inside the picture and do not touch each other, whatever the data.
func TestLabels(t *testing.T) {
	seconds := func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) + " seconds" }
	for name, c := range map[string]*Chart{
		"many loads":      {X: Axis{Title: "requests in flight", Log: true}, Y: Axis{Title: "TTFT", Zero: true, Format: seconds}, Series: []Series{{Points: points(1, 2, 3, 5, 8, 13, 21, 22, 23, 24, 34, 55, 89, 144, 233, 256)}}},
		"one load":        {X: Axis{Title: "requests in flight"}, Y: Axis{Title: "TTFT", Zero: true, Format: seconds}, Series: []Series{{Points: points(8)}}},
		"far apart":       {X: Axis{Title: "requests in flight"}, Y: Axis{Title: "TTFT", Log: true, Format: seconds}, Series: []Series{{Points: points(1, 1000, 100000)}}},
		"with zones":      {X: Axis{Title: "requests in flight"}, Y: Axis{Title: "TTFT", Zero: true, Format: seconds}, Zones: []Zone{{0, 5, "instant", "z0"}, {5, 9, "slow", "z1"}, {9, math.Inf(1), "frustrating", "z2"}}, Series: []Series{{Points: points(1, 20)}}},
		"a limit":         {X: Axis{Title: "requests in flight"}, Y: Axis{Title: "TTFT", Zero: true, Format: seconds, Include: []float64{15}}, Rules: []Rule{{At: 15, Word: "limit: p95 < 15 seconds"}}, Series: []Series{{Points: points(1, 20)}}},
		"nothing but one": {X: Axis{}, Y: Axis{}, Series: []Series{{Points: []Point{{X: 0, Y: 0}}}}},
	} {
		svg := string(c.SVG())
		must.Hold(t, svg != "", "%s: nothing was drawn", name)
		list := boxes(t, svg)
		for i, a := range list {
			must.Hold(t, a.left >= -1 && a.right <= Width+1 && a.top >= 0 && a.bottom <= 300, "%s: %q leaves the picture: %+v", name, a.text, a)
			for _, b := range list[i+1:] {
				if min(a.right, b.right)-max(a.left, b.left) > 1 && min(a.bottom, b.bottom)-max(a.top, b.top) > 3 {
					t.Errorf("%s: %q and %q overlap", name, a.text, b.text)
				}
			}
		}
	}
}

// points returns one point for each load in ns. The value of a point equals its load.
func points(ns ...float64) []Point {
	var out []Point
	for _, n := range ns {
		out = append(out, Point{X: n, Y: n, Low: math.NaN(), High: math.NaN(), Tip: []string{"at " + strconv.FormatFloat(n, 'f', -1, 64)}})
	}
	return out
}

// A point is drawn at the place of its value on the axis.
func TestScale(t *testing.T) {
	a := Axis{Zero: true}
	s := a.scale([]float64{3, 18}, 5) // 18/5 = 3.6, so ticks are 5 apart, and the axis ends at 20
	s.place(300, 100)
	for v, want := range map[float64]float64{0: 300, 10: 200, 20: 100, 5: 250} {
		got := s.at(v)
		must.Hold(t, math.Abs(got-want) <= 1e-9, "%v is at %v, want %v", v, got, want)
	}
	a = Axis{Log: true, Ticks: []float64{1, 100}}
	s = a.scale([]float64{1, 100}, 5)
	s.place(0, 200)
	if got := s.at(10); math.Abs(got-100) > 1e-9 { // half way between 1 and 100 on a log scale
		t.Errorf("10 is at %v, want 100", got)
	}
	if got := decades(0.2, 30); len(got) != 7 { // the values 0.2, 0.5, 1, 2, 5, 10 and 20
		t.Errorf("decades of 0.2 to 30: %v", got)
	}
}

func TestNothingToDraw(t *testing.T) {
	for name, svg := range map[string]string{
		"no series":  string((&Chart{}).SVG()),
		"no value":   string((&Chart{Series: []Series{{Points: []Point{{X: 1, Y: math.NaN()}, {X: 2, Y: math.Inf(1)}}}}}).SVG()),
		"no bars":    string((&Gantt{Rows: 3, Length: 2}).SVG()),
		"no changes": string((&Forest{Rows: []Row{{Value: math.NaN()}}}).SVG()),
	} {
		must.Hold(t, svg == "", "%s: %.60q", name, svg)
	}
}

// A missing value leaves a gap in the line.
func TestGaps(t *testing.T) {
	c := Chart{Series: []Series{{Points: []Point{{X: 1, Y: 1}, {X: 2, Y: 2}, {X: math.NaN(), Y: math.NaN()}, {X: 4, Y: 4}, {X: 5, Y: 5}}}}}
	n := strings.Count(string(c.SVG()), "<polyline")
	must.Hold(t, n == 2, "%d lines, want 2", n)
}

func TestForest(t *testing.T) {
	f := Forest{Format: func(v float64) string { return strconv.FormatFloat(100*v, 'f', 0, 64) + "%" }, Rows: []Row{
		{Name: "Throughput", Value: 0.07, Low: 0.05, High: 0.08, Limit: -0.05, Mark: Pass},
		{Name: "TTFT p95", Value: 0.02, Low: -4, High: 5, Limit: math.NaN(), Mark: Unsure},
	}}
	svg := string(f.SVG())
	// The axis fits the largest value, 0.07. The wide interval does not extend it.
	must.Hold(t, !strings.Contains(svg, ">100%<") && strings.Contains(svg, ">5%<"), "the scale is not that of the values: %v", boxes(t, svg))
	for _, b := range boxes(t, svg) {
		must.Hold(t, b.left >= -1 && b.right <= Width+1, "%q leaves the picture", b.text)
	}
	// A bar that is ten times as long as the rest is cut off at the edge of the axis. Its value is
	// written there.
	f.Cut, f.Rows = true, append(f.Rows, Row{Name: "ITL p99", Value: 56, Low: 50, High: 60, Limit: 0.02, Mark: Fail})
	svg = string(f.SVG())
	must.Hold(t, strings.Contains(svg, ">5%<") && strings.Contains(svg, ">5600% →<"), "%v", boxes(t, svg))
	for _, b := range boxes(t, svg) {
		must.Hold(t, b.left >= -1 && b.right <= Width+1, "%q leaves the picture", b.text)
	}
}

func TestTextIsEscaped(t *testing.T) {
	bad := "<script>\x1b[31m&\"'</svg>"
	c := Chart{Name: bad, X: Axis{Title: bad, Format: func(float64) string { return bad }}, Y: Axis{Title: bad}, Rules: []Rule{{At: 1, Word: bad, Class: bad}},
		Zones: []Zone{{0, 9, bad, bad}}, Spans: []Span{{1, 2, bad}}, Series: []Series{{Points: []Point{{X: 1, Y: 1, Tip: []string{bad}}, {X: 3, Y: 3}}}}}
	g := Gantt{Name: bad, Rows: 1, Length: 2, Format: func(float64) string { return bad }, Bars: []Request{{End: 1, First: 0.5, Class: bad, Tip: bad}}}
	f := Forest{Name: bad, Rows: []Row{{Name: bad, Value: 1, Tip: []string{bad}}}}
	for _, svg := range []string{string(c.SVG()), string(g.SVG()), string(f.SVG())} {
		must.Hold(t, !strings.Contains(svg, "<script") && !strings.Contains(svg, "\x1b") && strings.Count(svg, "</svg>") == 1, "text came through: %.300s", svg)
	}
}

// The words next to a limit stand where the curve does not cross them.
func TestLimitsWords(t *testing.T) {
	word := regexp.MustCompile(`<text class="ruleword halo" x="[^"]+" y="([^"]+)" text-anchor="([a-z]+)">`)
	for _, row := range []struct {
		name   string
		ys     []float64
		anchor string
	}{
		{"far below", []float64{5, 6, 7}, "start"},
		{"up through it, at once", []float64{34, 60, 66}, "end"},
		{"down through it, at once", []float64{66, 34, 5}, "start"},
		{"up through it, late", []float64{5, 6, 66}, "start"},
	} {
		var points []Point
		for i, y := range row.ys {
			points = append(points, Point{X: []float64{1, 4, 8}[i], Y: y, Low: math.NaN(), High: math.NaN()})
		}
		c := &Chart{Y: Axis{Zero: true, Include: []float64{80}}, Rules: []Rule{{At: 40, Word: "limit: p95 < 40 ms"}}, Series: []Series{{Points: points}}}
		m := word.FindStringSubmatch(string(c.SVG()))
		must.Hold(t, m != nil && m[2] == row.anchor, "%s: %v, want %s", row.name, m, row.anchor)
	}
}
