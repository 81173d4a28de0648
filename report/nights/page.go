package nights

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	judged "github.com/tokgate/tokgate/assert/nights"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/text"
)

//go:embed page.html
var pageSource string

var pageTemplate = template.Must(template.New("page").Parse(pageSource))

// view holds what the template shows: texts and charts.
type view struct {
	Verdict, Class string
	Heading        string
	Summary        string
	Chance         string
	Differs        []string
	Accept         string
	Problems       []string
	Groups         []group
	// ChartX, ChartY, ChartBy and ChartWidth give the place of the plot in a chart, in pixels. It
	// is the same in all charts.
	ChartX, ChartY, ChartBy, ChartWidth int
}

type group struct {
	Name   string
	Trends []row
}

type row struct {
	ID, Name       string
	Word, Class    string
	Tonight        string
	Expected       string
	Noise          string
	Reference      int
	Message        string
	Changes        []string
	Chart          *chart // nil if there is only one night
	Nights         []nightRow
	NeedsAttention bool
}

type nightRow struct {
	Run, Date, Value, Note string
}

// HTML writes one self-contained page: the verdict, and each series over its nights
// as a chart and as a table. The page loads nothing and has no scripts.
func HTML(w io.Writer, n judged.Result, o Options) error {
	p := view{Verdict: conclusion(n), Class: n.Outcome.String(), Heading: heading(n, o), Summary: summary(n), Chance: chance(n), Differs: n.Differs, Accept: accept(n, o), Problems: o.Problems,
		ChartX: marginLeft, ChartY: marginTop, ChartBy: chartHeight - marginBottom, ChartWidth: chartWidth - marginLeft - marginRight}
	for i, t := range n.Trends {
		name := place(t)
		if len(p.Groups) == 0 || p.Groups[len(p.Groups)-1].Name != name {
			p.Groups = append(p.Groups, group{Name: name})
		}
		g := &p.Groups[len(p.Groups)-1]
		g.Trends = append(g.Trends, pageRow(i, t))
	}
	return pageTemplate.Execute(w, p)
}

func pageRow(i int, t judged.Trend) row {
	c := cells(t)
	r := row{
		ID: fmt.Sprintf("s%d", i), Name: c[1] + " at " + c[0], Word: word(t), Class: t.Outcome.String(),
		Tonight: c[2], Expected: c[3], Noise: c[4], Message: text.Line(t.Message), NeedsAttention: hasDetail(t),
	}
	if t.Tonight != nil {
		r.Reference = t.Tonight.Reference
	}
	for _, ch := range t.Changes {
		r.Changes = append(r.Changes, change(t, ch))
	}
	for _, p := range t.Points {
		r.Nights = append(r.Nights, nightRow{p.Run, p.Started.UTC().Format("2006-01-02 15:04"), metric.Format(t.Unit, p.Value), alarm(p)})
	}
	if len(t.Points) > 1 {
		r.Chart = draw(t)
	}
	return r
}

// alarm returns the label of a night with a change; "" for every other night.
func alarm(p judged.Point) string {
	switch {
	case p.Suspect:
		return "suspect"
	case !p.Alarm:
		return ""
	case p.Worse:
		return "worse"
	}
	return "better"
}

// way returns the CSS class of a change: "worse", "better" or "other".
func way(t judged.Trend, c judged.Change) string {
	switch up := c.After > c.Before; t.Better {
	case metric.LowerIsBetter:
		return either(up, "worse", "better")
	case metric.HigherIsBetter:
		return either(up, "better", "worse")
	}
	return "other"
}

// chart is a drawing of chartWidth by chartHeight pixels.
type chart struct {
	Title           string
	Width, Height   int
	Line            string // points of the polyline
	Band            *band
	Dots            []dot
	Changes         []rule
	Top, Bottom     string // of the axis
	First, Last     string // nights
	PlotX, PlotY    float64
	PlotEnd, PlotBy float64
}

type band struct{ Y, Height, Center float64 }

type dot struct {
	X, Y  float64
	Alarm string // "worse" or "better"; "" without a change
	Title string
}

type rule struct {
	X          float64
	Title, Way string
}

const (
	chartWidth, chartHeight = 720, 180
	marginLeft, marginRight = 84, 12
	marginTop, marginBottom = 12, 26
)

// draw turns the values of the nights and their expected range into positions in the chart.
func draw(t judged.Trend) *chart {
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range t.Points {
		low, high = math.Min(low, p.Value), math.Max(high, p.Value)
	}
	if b := t.Tonight; b != nil {
		low, high = math.Min(low, b.Low), math.Max(high, b.High)
	}
	if !(high > low) {
		low, high = low-math.Abs(low)*0.05-1e-9, high+math.Abs(high)*0.05+1e-9
	}
	bottom, top := low, high
	pad := (high - low) * 0.06
	low, high = low-pad, high+pad
	x := func(i int) float64 {
		return round(marginLeft + float64(i)/float64(len(t.Points)-1)*(chartWidth-marginLeft-marginRight))
	}
	y := func(v float64) float64 {
		return round(marginTop + (high-v)/(high-low)*(chartHeight-marginTop-marginBottom))
	}
	c := &chart{
		Title: fmt.Sprintf("%s of %s at %s, %s", name(t), t.Workload, t.Level, count(len(t.Points), "night")),
		Width: chartWidth, Height: chartHeight,
		Top: metric.Format(t.Unit, top), Bottom: metric.Format(t.Unit, bottom),
		First: t.Points[0].Started.UTC().Format("2006-01-02"), Last: t.Points[len(t.Points)-1].Started.UTC().Format("2006-01-02"),
		PlotX: marginLeft, PlotY: marginTop, PlotEnd: chartWidth - marginRight, PlotBy: chartHeight - marginBottom,
	}
	if b := t.Tonight; b != nil {
		c.Band = &band{Y: y(b.High), Height: round(y(b.Low) - y(b.High)), Center: y(b.Center)}
	}
	var line strings.Builder
	at := map[string]int{}
	for i, p := range t.Points {
		at[p.Run] = i
		fmt.Fprintf(&line, "%g,%g ", x(i), y(p.Value))
		c.Dots = append(c.Dots, dot{x(i), y(p.Value), alarm(p), fmt.Sprintf("%s: %s (run %s)", p.Started.UTC().Format("2006-01-02"), metric.Format(t.Unit, p.Value), p.Run)})
	}
	c.Line = strings.TrimSpace(line.String())
	for _, ch := range t.Changes {
		i := at[ch.Run]
		c.Changes = append(c.Changes, rule{round((x(i-1) + x(i)) / 2), change(t, ch), way(t, ch)})
	}
	return c
}

// round rounds to a tenth of a pixel.
func round(v float64) float64 { return math.Round(v*10) / 10 }
