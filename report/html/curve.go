package html

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/chart"
)

// curve is a metric against the load, one line for each workload, server and
// run.
type curve struct {
	kind   string // "closed" or "burst"
	metric string
	title  string
	axis   string // of Y; "": the metric's title
	words  string
	zones  []chart.Zone
	of     func(*report.Case) report.Number // nil: the mean, or a level's value
	band   bool                             // shade from p5 to p95
	stats  []string                         // statistics of thresholds that are drawn as lines; nil: all
	zero   bool
}

// kinds of load, as an axis names them.
var kinds = map[string]string{"closed": "requests in flight", "burst": "requests at once"}

// mostSeries are drawn in one chart: more than that nobody tells apart.
const mostSeries = 8

// track is the cases of one line, by load.
type track struct {
	name             string
	r                run
	server, workload string
	cases            []*report.Case
}

// tracks sorts the measured cases of a kind into lines. Of several cases at
// one load the line goes through the one with the most completed requests.
func tracks(runs []run, kind string, keep func(*report.Case) bool) []track {
	type key struct{ run, server, workload string }
	var order []key
	byKey := map[key]*track{}
	measured(runs, func(r run, c *report.Case) {
		if c.Kind != kind || !keep(c) {
			return
		}
		k := key{r.ID, c.Server, c.Workload}
		t := byKey[k]
		if t == nil {
			t = &track{r: r, server: c.Server, workload: c.Workload}
			byKey[k], order = t, append(order, k)
		}
		t.cases = append(t.cases, c)
	})
	var out []track
	differ := func(of func(key) string) bool {
		return slices.ContainsFunc(order, func(k key) bool { return of(k) != of(order[0]) })
	}
	showRun, showServer := differ(func(k key) string { return k.run }), differ(func(k key) string { return k.server })
	showWorkload := differ(func(k key) string { return k.workload })
	for _, k := range order {
		t := byKey[k]
		var parts []string
		if showWorkload || !showRun && !showServer {
			parts = append(parts, line(t.workload))
		}
		if showServer {
			parts = append(parts, line(t.server))
		}
		if showRun {
			parts = append(parts, t.r.Name)
		}
		t.name = strings.Join(parts, " · ")
		slices.SortStableFunc(t.cases, func(a, b *report.Case) int { return a.N - b.N })
		out = append(out, *t)
	}
	return out
}

// line is one case for each load.
func (t track) line() []*report.Case {
	var out []*report.Case
	for _, c := range t.cases {
		if n := len(out); n > 0 && out[n-1].N == c.N {
			if c.Completed > out[n-1].Completed {
				out[n-1] = c
			}
			continue
		}
		out = append(out, c)
	}
	return out
}

// loadAxis is the axis of N.
func loadAxis(kind string, ns []float64) chart.Axis {
	a := chart.Axis{Title: kinds[kind], Ticks: ns}
	if len(ns) > 0 && slices.Max(ns) > 8*slices.Min(ns) {
		a.Log = true
	}
	return a
}

// figures draws the curve, mostSeries lines at a time; none without data.
func (cv curve) figures(runs []run) []figure {
	of := cv.of
	if of == nil {
		of = func(c *report.Case) report.Number { return mean(c, cv.metric) }
	}
	has := func(c *report.Case) bool { n := of(c); return n.OK && !math.IsInf(n.V, 0) }
	all := tracks(runs, cv.kind, has)
	var out []figure
	for len(all) > 0 {
		n := min(len(all), mostSeries)
		out = append(out, cv.figure(runs, all[:n], of))
		all = all[n:]
	}
	for i := range out {
		if len(out) > 1 {
			out[i].Title += fmt.Sprintf(" (%d of %d)", i+1, len(out))
		}
	}
	return out
}

func (cv curve) figure(runs []run, lines []track, of func(*report.Case) report.Number) figure {
	def, _ := metric.Lookup(cv.metric)
	f := figure{Title: cv.title, Words: cv.words, Terms: []string{cv.metric}}
	axis := cv.axis
	if axis == "" {
		axis = def.Title
	}
	ch := chart.Chart{
		Name: cv.title + " against " + kinds[cv.kind], Zones: cv.zones,
		Y: chart.Axis{Title: axis, Zero: true, Format: func(v float64) string { return metric.Format(def.Unit, v) }},
	}
	tab := &table{Caption: cv.title + " by " + kinds[cv.kind], Head: []string{"line", kinds[cv.kind], axis}}
	if cv.band {
		tab.Head = append(tab.Head, "p5", "p95")
	}
	tab.Head = append(tab.Head, "requests")
	var ns []float64
	low, high := math.Inf(1), 0.0
	for i, t := range lines {
		s := chart.Series{Name: t.name, Index: i, Band: cv.band && len(lines) <= 3}
		for _, c := range t.line() {
			v := of(c)
			ns = append(ns, float64(c.N))
			low, high = min(low, v.V), max(high, v.V)
			p := chart.Point{X: float64(c.N), Y: v.V, Low: math.NaN(), High: math.NaN(), Hollow: c.Probe != nil,
				Tip: []string{t.name, inFlight(c), axis + " " + v.Format(string(def.Unit))}}
			if sum := c.Summary(cv.metric); cv.band && sum != nil && sum.Percentiles != nil {
				p.Low, p.High = bound(sum.Percentiles.P5), bound(sum.Percentiles.P95)
				p.Tip = append(p.Tip, "p5 "+sum.Percentiles.P5.Format(sum.Unit)+", p95 "+sum.Percentiles.P95.Format(sum.Unit))
			}
			if word := metric.Band(cv.metric, v.V); word != "" && len(cv.zones) > 0 {
				p.Tip[2] += ": " + word
			}
			s.Points = append(s.Points, p)
		}
		for _, c := range t.cases {
			v := of(c)
			row := []cell{text(t.name), text(line(c.Level)), text(v.Format(string(def.Unit)))}
			if cv.band {
				if sum := c.Summary(cv.metric); sum != nil && sum.Percentiles != nil {
					row = append(row, text(sum.Percentiles.P5.Format(sum.Unit)), text(sum.Percentiles.P95.Format(sum.Unit)))
				} else {
					row = append(row, text("–"), text("–"))
				}
			}
			tab.Rows = append(tab.Rows, append(row, text(count(c.Completed))))
		}
		ch.Series = append(ch.Series, s)
		f.Legend = append(f.Legend, legend{chart.Swatch(i), t.name})
	}
	if len(lines) == 1 {
		f.Legend = nil
		tab.Head = tab.Head[1:]
		for i := range tab.Rows {
			tab.Rows[i] = tab.Rows[i][1:]
		}
	}
	ch.X = loadAxis(cv.kind, ns)
	ch.Rules = cv.rules(runs, lines, high)
	for _, r := range ch.Rules {
		ch.Y.Include = append(ch.Y.Include, r.At)
	}
	// Far apart on a straight axis, the small ones all lie on the ground.
	if !cv.zero && low > 0 && high > 30*low {
		ch.Y.Log, ch.Y.Zero = true, false
		ch.Y.Title += " (logarithmic)"
	}
	f.Chart, f.Table = ch.SVG(), tab
	return f
}

// bound is the end of a range that may be missing or infinite.
func bound(n report.Number) float64 {
	if !n.OK || math.IsInf(n.V, 0) {
		return math.NaN()
	}
	return n.V
}

// rules are the thresholds of the metric for the workloads shown. One that is
// far above everything measured would flatten the lines: it is told in the
// guidance instead.
func (cv curve) rules(runs []run, lines []track, high float64) []chart.Rule {
	var out []chart.Rule
	seen := map[string]bool{}
	for _, t := range lines {
		for _, w := range t.r.Workloads {
			if w.Address != t.workload {
				continue
			}
			for _, b := range w.Bounds {
				th := b.Threshold
				if th.Metric != cv.metric || !th.Limit.OK || th.Limit.V > 4*high || cv.stats != nil && !slices.Contains(cv.stats, th.Stat) {
					continue
				}
				word := "limit: " + strings.TrimSpace(th.Stat+" "+th.Op) + " " + th.Limit.Format(th.Unit)
				if seen[word] {
					continue
				}
				seen[word] = true
				out = append(out, chart.Rule{At: th.Limit.V, Word: line(word)})
			}
		}
	}
	return out[:min(len(out), 4)]
}

// The bands of metric.Band as stretches of a chart, best first.
var (
	ttftZones = []chart.Zone{
		{From: 0, To: 0.5, Word: "instant", Class: "z0"}, {From: 0.5, To: 2, Word: "responsive", Class: "z1"},
		{From: 2, To: 5, Word: "noticeable", Class: "z2"}, {From: 5, To: 10, Word: "slow", Class: "z3"},
		{From: 10, To: math.Inf(1), Word: "frustrating", Class: "z4"}}
	speedZones = []chart.Zone{
		{From: 0, To: 15, Word: "slow", Class: "z3"}, {From: 15, To: 25, Word: "acceptable: reading pace", Class: "z2"},
		{From: 25, To: 50, Word: "fast", Class: "z1"}, {From: 50, To: math.Inf(1), Word: "very fast", Class: "z0"}}
	itlZones = []chart.Zone{
		{From: 0, To: 0.020, Word: "instant", Class: "z0"}, {From: 0.020, To: 0.070, Word: "acceptable", Class: "z2"},
		{From: 0.070, To: math.Inf(1), Word: "sluggish", Class: "z3"}}
)

func p95(name string) func(*report.Case) report.Number {
	return func(c *report.Case) report.Number {
		s := c.Summary(name)
		if s == nil || s.Percentiles == nil {
			return report.Number{}
		}
		return s.Percentiles.P95
	}
}
