package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/chart"
)

// curve is a metric over the load, with one line for each workload, server and run.
type curve struct {
	kind  metric.LoadKind // "closed", "burst" or "rate"
	name  string          // name of the metric
	title string
	axis  string // title of the Y axis; "" for the metric's title
	words string
	zones []chart.Zone
	of    func(*report.Case) metric.Value // value to draw for a case; nil: the mean, or the level's value
	band  bool                            // show the range from p5 to p95 as a shaded band
	stats []string                        // statistics whose limits are drawn; nil means all
	zero  bool
	quiet bool                    // omit the chart if every value is zero
	keep  func(*report.Case) bool // selects the cases to draw; nil: those of the whole system
	ends  bool                    // the caption names the lowest and the highest value
}

// kinds are the titles of an axis for each kind of load.
var kinds = map[metric.LoadKind]string{
	metric.ClosedLoop: "requests in flight", metric.Burst: "requests at once", metric.Users: "users",
	metric.OpenLoop: "requests per second", metric.Speedup: "times the recorded traffic",
}

// everyKind lists the kinds of load in the order of the page.
var everyKind = []metric.LoadKind{metric.ClosedLoop, metric.Burst, metric.Users, metric.OpenLoop}

// mostSeries is the largest number of lines in one chart. Readers cannot tell more apart.
const mostSeries = 8

// track holds the cases of one line of a chart, by load.
type track struct {
	name             string
	r                Run
	server, workload string
	cases            []*report.Case
}

// tracks sorts the measured cases of a kind of load into lines, one for each server and workload of
// a run. If a line has several cases at one load, it uses the case with the most completed
// requests.
func tracks(runs []Run, kind metric.LoadKind, keep func(*report.Case) bool) []track {
	type key struct{ Run, server, workload string }
	var order []key
	byKey := map[key]*track{}
	measured(runs, func(r Run, c *report.Case) {
		if c.Kind != kind || c.Stage != nil || c.Speedup > 0 || !keep(c) {
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
	showRun, showServer := differ(func(k key) string { return k.Run }), differ(func(k key) string { return k.server })
	showWorkload := differ(func(k key) string { return k.workload })
	// Put the control and the candidate of a workload next to each other.
	if showServer && showWorkload && !showRun {
		at := map[string]int{}
		for i, k := range order {
			if _, ok := at[k.workload]; !ok {
				at[k.workload] = i
			}
		}
		slices.SortStableFunc(order, func(a, b key) int { return at[a.workload] - at[b.workload] })
	}
	for _, k := range order {
		t := byKey[k]
		var parts []string
		if showWorkload || !showRun && !showServer {
			parts = append(parts, t.r.title(t.workload))
		}
		if showServer {
			parts = append(parts, t.r.title(t.server))
		}
		if showRun {
			parts = append(parts, t.r.Name)
		}
		t.name = strings.Join(parts, " · ")
		slices.SortStableFunc(t.cases, func(a, b *report.Case) int { return cmp.Compare(a.Load(), b.Load()) })
		out = append(out, *t)
	}
	return out
}

// line returns one case for each load. If a load has several cases, it takes the one with the most
// completed requests.
func (t track) line() []*report.Case {
	var out []*report.Case
	for _, c := range t.cases {
		if n := len(out); n > 0 && out[n-1].Load() == c.Load() {
			if c.Completed > out[n-1].Completed {
				out[n-1] = c
			}
			continue
		}
		out = append(out, c)
	}
	return out
}

func loadAxis(kind metric.LoadKind, ns []float64) chart.Axis {
	a := chart.Axis{Title: Capital(kinds[kind]), Ticks: ns,
		Format: func(v float64) string { return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64) }}
	if len(ns) > 0 && slices.Max(ns) > 8*slices.Min(ns) {
		a.Log = true
	}
	return a
}

// figures draws the curve in charts of at most mostSeries lines each. It returns nil if there is no
// data.
func (cv curve) figures(runs []Run) []Figure {
	of := cv.of
	if of == nil {
		of = func(c *report.Case) metric.Value { return mean(c, cv.name) }
	}
	keep := cv.keep
	if keep == nil {
		keep = common(runs)
	}
	has := func(c *report.Case) bool { n := of(c); return keep(c) && n.OK && !math.IsInf(n.V, 0) }
	all := tracks(runs, cv.kind, has)
	if cv.quiet && !slices.ContainsFunc(all, func(t track) bool {
		return slices.ContainsFunc(t.cases, func(c *report.Case) bool { return of(c).V != 0 })
	}) {
		return nil
	}
	var out []Figure
	for _, panel := range panels(all) {
		f := cv.figure(runs, panel.lines, of)
		if panel.name != "" {
			f.Title += ": " + panel.name
			f.Table.Caption += ": " + panel.name
		}
		out = append(out, f)
	}
	return out
}

// panel holds the lines of one chart.
type panel struct {
	name  string
	lines []track
}

// panels distributes the lines over several charts if there are more than mostSeries. It groups them
// by the for_each block of their workloads, and divides groups that are still too large.
func panels(all []track) []panel {
	if len(all) == 0 {
		return nil
	}
	if len(all) <= mostSeries {
		return []panel{{"", all}}
	}
	var out []panel
	for _, t := range all {
		name := Line(family(t.workload))
		i := slices.IndexFunc(out, func(p panel) bool { return p.name == name })
		if i < 0 {
			out, i = append(out, panel{name: name}), len(out)
		}
		out[i].lines = append(out[i].lines, t)
	}
	// Many small groups would make many charts, so they share charts.
	if len(out) > mostSeries/2 {
		out = []panel{{"", all}}
	}
	var short []panel
	for _, p := range out {
		for i := 0; i < len(p.lines); i += mostSeries {
			name := p.name
			if len(p.lines) > mostSeries {
				name = strings.TrimSpace(fmt.Sprintf("%s %d of %d", name, i/mostSeries+1, (len(p.lines)+mostSeries-1)/mostSeries))
			}
			short = append(short, panel{name, p.lines[i:min(i+mostSeries, len(p.lines))]})
		}
	}
	return short
}

func (cv curve) figure(runs []Run, lines []track, of func(*report.Case) metric.Value) Figure {
	def, _ := metric.Lookup(cv.name)
	// The unit of a price is the plan's currency.
	if sum := lines[0].cases[0].Summary(cv.name); sum != nil {
		def.Unit = sum.Unit
	}
	f := Figure{Title: cv.title, Words: cv.words, Terms: []string{cv.name}}
	axis := cv.axis
	if axis == "" {
		axis = def.Title
	}
	ch := chart.Chart{
		Name: cv.title + " against " + kinds[cv.kind], Zones: cv.zones,
		Y: chart.Axis{Title: Capital(axis), Zero: true, Format: metric.In(def.Unit)},
	}
	f.Table = cv.table(lines, of, axis, def.Unit)
	var ns []float64
	low, high := math.Inf(1), 0.0
	for i, t := range lines {
		s := chart.Series{Name: t.name, Index: hue(i, lines), Band: cv.band && len(lines) <= 3}
		for _, c := range t.line() {
			v := of(c)
			ns = append(ns, c.Load())
			low, high = min(low, v.V), max(high, v.V)
			p := chart.Point{X: c.Load(), Y: v.V, Low: math.NaN(), High: math.NaN(), Hollow: c.Probe != nil,
				Tip: []string{t.name, inFlight(c) + rhoOf(c), axis + " " + v.Format(def.Unit)}}
			if sum := c.Summary(cv.name); cv.band && sum != nil && sum.Percentiles != nil {
				p.Low, p.High = bound(sum.Percentiles.P5), bound(sum.Percentiles.P95)
				p.Tip = append(p.Tip, "p5 "+sum.Percentiles.P5.Format(sum.Unit)+", p95 "+sum.Percentiles.P95.Format(sum.Unit))
			}
			if word := metric.Band(cv.name, v.V); word != "" && len(cv.zones) > 0 {
				p.Tip[2] += ": " + word
			}
			s.Points = append(s.Points, p)
		}
		ch.Series = append(ch.Series, s)
		f.Legend = append(f.Legend, Legend{chart.Swatch(hue(i, lines)), t.name})
	}
	if len(lines) == 1 {
		f.Legend = nil
	}
	if single, words := drawPoints(ch, cv.title, lines, def.Unit); single != "" {
		f.Words, f.Legend, f.Chart = f.Words+words, nil, single
		return f
	}
	ch.X = loadAxis(cv.kind, ns)
	f.Words += cv.limit(&ch, lines, high)
	// A linear axis would squeeze small values together if others are much larger.
	if !cv.zero && low > 0 && high > 30*low {
		ch.Y.Log, ch.Y.Zero = true, false
		ch.Y.Title += " (logarithmic)"
	}
	f.Chart = ch.SVG()
	if cv.ends {
		f.Finding = cv.finding(lines, of)
	}
	return f
}

func (cv curve) finding(lines []track, of func(*report.Case) metric.Value) string {
	var low, high extreme
	var of2 [2]string
	for _, t := range lines {
		for _, c := range t.cases {
			n, at := of(c), inFlight(c)
			if len(lines) > 1 {
				at += " · " + t.name
			}
			if !low.ok || n.V < low.v {
				low, of2[0] = extreme{n.V, t.r, c, true}, at
			}
			if !high.ok || n.V > high.v {
				high, of2[1] = extreme{n.V, t.r, c, true}, at
			}
		}
	}
	if !low.ok || low.c == high.c {
		return ""
	}
	said := func(v float64) string {
		if word := metric.Band(cv.name, v); word != "" && len(cv.zones) > 0 {
			return format(cv.name, v) + " (" + word + ")"
		}
		return format(cv.name, v)
	}
	return fmt.Sprintf("Highest: %s at %s. Lowest: %s at %s.", said(high.v), of2[1], said(low.v), of2[0])
}

// common selects the cases for the charts of the whole system. On a page with one run, it leaves
// out use cases, which have their own sections, unless there are only use cases. A workload with
// both levels and search probes shows only its levels.
func common(runs []Run) func(*report.Case) bool {
	if len(runs) != 1 {
		return func(*report.Case) bool { return true }
	}
	r := runs[0]
	own, others := map[string]bool{}, false
	levels := map[[2]string]bool{}
	for i := range r.Workloads {
		w := &r.Workloads[i]
		own[w.Address] = r.useCase(w)
		others = others || !own[w.Address]
	}
	for i := range r.Cases {
		if c := &r.Cases[i]; c.Probe == nil && c.Completed > 0 {
			levels[[2]string{c.Server, c.Workload}] = true
		}
	}
	return func(c *report.Case) bool {
		return !(others && own[c.Workload]) && (c.Probe == nil || !levels[[2]string{c.Server, c.Workload}])
	}
}

// hue returns the number of the colour of line i. The lines get darker and darker if their
// workloads are ordered by a number.
func hue(i int, lines []track) int {
	if len(lines) < 3 {
		return i
	}
	last := math.Inf(-1)
	for _, t := range lines {
		_, key := report.Named(t.workload)
		n, ok := report.KeyNumber(key)
		if !ok || n <= last {
			return i
		}
		last = n
	}
	return chart.Ordered + i*(chart.Shades-1)/max(len(lines)-1, 1)
}

func relation(op string) string {
	switch op {
	case "<=":
		return "≤"
	case ">=":
		return "≥"
	}
	return op
}

// bound returns the value of n; NaN if it is missing or infinite.
func bound(n metric.Value) float64 {
	if !n.OK || math.IsInf(n.V, 0) {
		return math.NaN()
	}
	return n.V
}

// limit draws the limits of the plan's thresholds as lines, and returns a caption for them.
func (cv curve) limit(ch *chart.Chart, lines []track, high float64) string {
	ch.Rules = cv.rules(lines, high)
	var limits []string
	words := ""
	for i := range ch.Rules {
		r := &ch.Rules[i]
		ch.Y.Include, limits = append(ch.Y.Include, r.At), append(limits, r.Word)
		// With several limits, the caption names them, because their labels would overlap.
		if r.Word = "limit: " + r.Word; len(ch.Rules) > 1 {
			r.Word = ""
		}
	}
	if len(limits) > 1 {
		words = " The dashed lines are the limits of the plan: " + strings.Join(limits, ", ") + "."
	}
	return words + cv.largest(ch, lines)
}

// largest marks the largest sustainable rate of each line, and returns a caption for the marks.
// Rates above four times the largest measured load are left out.
func (cv curve) largest(ch *chart.Chart, lines []track) string {
	var known []string
	for _, t := range lines {
		c := t.cases[len(t.cases)-1]
		if c.Largest() == 0 || c.Largest() > 4*c.Load() {
			continue
		}
		word := "largest rate " + metric.Format(metric.PerSecond, c.Largest())
		if known = append(known, t.name+" "+word); len(lines) > 1 {
			word = ""
		}
		ch.X.Include = append(ch.X.Include, c.Largest())
		ch.Rules = append(ch.Rules, chart.Rule{At: c.Largest(), Word: word, Vertical: true})
	}
	switch {
	case len(known) == 0:
		return ""
	case len(lines) == 1:
		return rhoWords
	}
	return " The upright lines: " + strings.Join(known, ", ") + "." + rhoWords
}

const rhoWords = " ρ is the rate as a share of the largest rate that the server can sustain."

// rho returns ρ, the rate as a share of the largest sustainable rate. It is "" if that rate is
// unknown.
func rho(c *report.Case) string {
	if c.Largest() <= 0 {
		return ""
	}
	return metric.Format(metric.Count, c.Rate/c.Largest())
}

func rhoOf(c *report.Case) string {
	if rho(c) == "" {
		return ""
	}
	return ", ρ " + rho(c)
}

// rules returns a line across the chart for each threshold on its metric. A threshold above four
// times the highest value would flatten the curves, so it is left out.
func (cv curve) rules(lines []track, high float64) []chart.Rule {
	var out []chart.Rule
	def, _ := metric.Lookup(cv.name) // the metric's unit, also for a threshold on a share
	seen := map[string]bool{}
	for _, t := range lines {
		for _, w := range t.r.Workloads {
			if w.Address != t.workload {
				continue
			}
			for _, b := range w.Bounds {
				th := b.Threshold
				if share := th.Unit() == metric.Ratio; th.Metric.Name != cv.name || share != (def.Unit == metric.Ratio) || !th.Limit.OK ||
					th.Limit.V > 4*high || cv.stats != nil && !slices.Contains(cv.stats, th.Stat.String()) {
					continue
				}
				word := strings.TrimSpace(th.Stat.String()+" "+relation(th.Op)) + " " + th.Limit.Format(th.Unit())
				if seen[word] {
					continue
				}
				seen[word] = true
				out = append(out, chart.Rule{At: th.Limit.V, Word: Line(word)})
			}
		}
	}
	out = out[:min(len(out), 4)]
	slices.SortFunc(out, func(a, b chart.Rule) int { return cmp.Compare(a.At, b.At) })
	return out
}

// Ranges of metrics, drawn as coloured zones of a chart. metric.Band uses the same words for them.
var (
	ttftZones = []chart.Zone{
		{From: 0, To: 0.5, Word: "instant", Class: "z0"}, {From: 0.5, To: 2, Word: "responsive", Class: "z1"},
		{From: 2, To: 5, Word: "noticeable", Class: "z2"}, {From: 5, To: 10, Word: "slow", Class: "z3"},
		{From: 10, To: math.Inf(1), Word: "frustrating", Class: "z4"}}
	speedZones = []chart.Zone{
		{From: 0, To: 15, Word: "slow", Class: "z3"}, {From: 15, To: 25, Word: "acceptable", Class: "z2"},
		{From: 25, To: 50, Word: "fast", Class: "z1"}, {From: 50, To: math.Inf(1), Word: "very fast", Class: "z0"}}
	itlZones = []chart.Zone{
		{From: 0, To: 0.020, Word: "instant", Class: "z0"}, {From: 0.020, To: 0.070, Word: "acceptable", Class: "z2"},
		{From: 0.070, To: math.Inf(1), Word: "sluggish", Class: "z3"}}
)
