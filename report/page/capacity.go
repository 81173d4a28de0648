package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/chart"
	clean "github.com/tokgate/tokgate/report/text"
)

// limitKinds explains each kind of capacity to readers of the page.
var limitKinds = map[metric.CapacityKind]string{
	metric.CapacityExact:        "the search measured a load that passes and a load that fails, as close together as the plan asks for",
	metric.CapacityInterpolated: "between: the limit lies between the largest load that passed and the smallest load that failed",
	metric.CapacityAtLeast:      "at least: the server passed at every load that was tried",
	metric.CapacityBelow:        "below: the server failed even at the smallest load that was tried",
	metric.CapacityServerCap:    "the server's own admission limit",
	metric.CapacityUnknown:      "not known",
}

func capacities(runs []Run) Section {
	s := Section{ID: "capacity", Title: "Capacity",
		Lead: "How much load the server carries before it breaks a threshold. The search tries loads until it finds the largest one that passes, and checks every threshold at the stated confidence. It measures that load again on fresh requests."}
	n := 0
	for _, r := range runs {
		n += len(r.Run.Capacities)
	}
	for _, r := range runs {
		for _, c := range r.Run.Capacities {
			if len(runs) == 1 && r.Workload(c.Workload) != nil {
				continue // the use case's section shows the capacity
			}
			if n > 1 {
				name := r.title(c.Workload) + " on " + r.title(c.Server)
				if r.Name != "" {
					name += " · " + r.Name
				}
				s.Blocks = append(s.Blocks, Block{Heading: name})
			}
			s.Blocks = append(s.Blocks, Block{Result: result(r, c)}, Block{Figures: searched(r, c)}, fold("The search, probe by probe", Block{Table: probes(r, c)}))
		}
	}
	return s
}

func result(r Run, c *metric.Capacity) *Result {
	out := &Result{Class: capacityClass(r, c), Value: c.Limit(), Unit: kinds[c.Over] + disputed(r, c), Kind: limitKinds[c.Kind],
		Sentence: sentence(c), Line: Line(c.Answer()) + disputed(r, c)}
	if c.OfRate() && c.Kind == metric.CapacityInterpolated {
		out.Kind = "this rate is certified; the true limit is higher, near the estimate"
	}
	if c.Require > 0 {
		out.Facts = append(out.Facts, "required by the plan: "+c.Named(c.Require))
	}
	out.Facts = append(out.Facts, margins(r, c)...)
	out.Facts = append(out.Facts, lines(r.Facts(c))...)
	return out
}

// signs has the mark for each outcome of a probe.
var signs = map[verdict.Outcome]chart.Mark{verdict.Pass: chart.Pass, verdict.Fail: chart.Fail}

// searched draws a chart for each threshold of the capacity. The chart shows the threshold's metric
// at each measured load.
func searched(r Run, c *metric.Capacity) []Figure {
	var out []Figure
	for _, b := range searchedBounds(r, c) {
		if f, ok := search(r, c, b); ok {
			out = append(out, f)
		}
	}
	return out[:min(len(out), 4)]
}

// searchedBounds returns the thresholds that a capacity search applied. The threshold that limits
// the capacity comes first.
func searchedBounds(r Run, c *metric.Capacity) []verdict.Threshold {
	var out []verdict.Threshold
	for _, w := range r.Workloads {
		if w.Address != c.Workload {
			continue
		}
		for _, b := range w.Bounds {
			if b.Capacity && b.Severity != "warn" && b.Threshold.Limit.OK {
				out = append(out, b.Threshold)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b verdict.Threshold) int {
		binds := func(t verdict.Threshold) int {
			if t.Label() == c.Binding {
				return 0
			}
			return 1
		}
		return binds(a) - binds(b)
	})
	return out
}

func search(r Run, c *metric.Capacity, t verdict.Threshold) (Figure, bool) {
	label := Line(t.Title())
	rule := strings.TrimSpace(relation(t.Op) + " " + t.Limit.Format(t.Unit()))
	f := Figure{Title: label + " against the load, " + r.title(c.Workload), Terms: []string{t.Metric.Name},
		Words: "Each point is a probe.",
		Table: &Table{Caption: label + " at each probe, must be " + rule, Columns: Heads("Load", "Outcome", label, "Interval", "To spare")}}
	series, through := chart.Series{Loose: true, Bars: true}, chart.Series{Plain: true}
	var ns []float64
	ordered := slices.SortedStableFunc(slices.Values(c.Probes), func(a, b metric.CapacityProbe) int { return cmp.Compare(a.N, b.N) })
	for i := range ordered {
		point, row := searchPoint(r, c, &ordered[i], t, label)
		if row == nil {
			continue
		}
		series.Points, ns = append(series.Points, point), append(ns, point.X)
		through.Points = append(through.Points, chart.Point{X: point.X, Y: point.Y})
		f.Table.Rows = append(f.Table.Rows, row)
	}
	if len(series.Points) == 0 {
		return f, false
	}
	explain(&f, r, series.Points)
	ch := chart.Chart{Name: f.Title, X: loadAxis(c.Over, ns),
		Y: chart.Axis{Title: label, Zero: true, Include: []float64{t.Limit.V},
			Format: func(v float64) string { return metric.Format(t.Unit(), v) }},
		Rules:  []chart.Rule{{At: t.Limit.V, Word: Line("must be " + rule)}},
		Series: []chart.Series{through, series},
	}
	ch.X.First = []float64{c.Load(c.Pass), c.Load(c.Fail)}
	if c.Pass > 0 && c.Fail > c.Pass {
		ch.Spans = []chart.Span{{From: c.Load(c.Pass), To: c.Load(c.Fail), Word: fmt.Sprintf("the limit lies between %s and %s", c.Amount(c.Pass), c.Amount(c.Fail))}}
		f.Words += " The limit lies in the shaded range."
	}
	if top := r.Largest(c); top > 0 && top < 4*slices.Max(ns) {
		ch.X.Include = []float64{top}
		ch.Rules = append(ch.Rules, chart.Rule{At: top, Word: "largest rate " + metric.Format(metric.PerSecond, top), Vertical: true})
		f.Words += rhoWords
	}
	if low, high := lowHigh(series.Points); low > 0 && high > 30*low {
		ch.Y.Log, ch.Y.Zero = true, false
		ch.Y.Title += " (logarithmic)"
	}
	f.Chart = ch.SVG()
	return f, true
}

// searchPoint returns a probe of a search as a point of a chart. It also returns the row of the
// chart's table; nil if the probe has no value for the threshold.
func searchPoint(r Run, c *metric.Capacity, p *metric.CapacityProbe, t verdict.Threshold, label string) (chart.Point, []Cell) {
	v, low, high, outcome := probed(r, c, p, t)
	if !v.OK {
		return chart.Point{}, nil
	}
	mark, known := signs[outcome]
	if !known {
		mark = chart.Unsure
	}
	at := loadOf(c, p.N)
	at.Saturation = []float64{r.Largest(c)}
	tip := []string{inFlight(&at) + rhoOf(&at), label + " " + v.Format(t.Unit()),
		judgedAs(outcome) + ", " + verdict.Count(p.Requests, "requests") + " measured"}
	interval := "–"
	if low.OK || high.OK {
		interval = ends(low, t.Unit(), false) + " to " + ends(high, t.Unit(), true)
		tip = append(tip, "from "+interval)
	}
	load := c.Amount(p.N)
	if share := rho(&at); share != "" {
		load += " (ρ " + share + ")"
	}
	return chart.Point{X: c.Load(p.N), Y: v.V, Low: bound(low), High: bound(high), Mark: mark, Tip: tip},
		[]Cell{text(load), {Text: outcome.String(), Class: outcomeClass(outcome)}, text(v.Format(t.Unit())), text(interval),
			text(toSpare(margin(t.Op, v.V, t.Limit.V)))}
}

func judgedAs(o verdict.Outcome) string {
	if o == verdict.Pending {
		return "not judged"
	}
	return o.String()
}

// toSpare formats the margin of a threshold; "–" if the margin is unknown.
func toSpare(margin float64) string {
	if math.IsNaN(margin) || math.IsInf(margin, 0) {
		return "–"
	}
	return metric.Format(metric.Ratio, margin)
}

func explain(f *Figure, r Run, points []chart.Point) {
	if slices.ContainsFunc(points, func(p chart.Point) bool { return !math.IsNaN(p.Low) || !math.IsNaN(p.High) }) {
		f.Words += " The bar of a point is its interval; each end holds at the plan's confidence."
	}
	if r.Plan.Decide == "estimate" {
		f.Words += " The plan decides by the points alone."
	} else {
		f.Words += " A probe passes or fails only if its whole bar lies on one side of the dashed line."
	}
	for _, l := range []struct {
		mark chart.Mark
		name string
	}{{chart.Pass, "held"}, {chart.Fail, "did not hold"}, {chart.Unsure, "not settled"}} {
		if slices.ContainsFunc(points, func(p chart.Point) bool { return p.Mark == l.mark }) {
			f.Legend = append(f.Legend, Legend{chart.Sign(l.mark), l.name})
		}
	}
}

// probed returns the value of the threshold's metric at a probe, and its interval. If the probe did
// not record the value, probed returns that of the probe's level, without an interval.
func probed(r Run, c *metric.Capacity, p *metric.CapacityProbe, t verdict.Threshold) (v, low, high metric.Value, outcome verdict.Outcome) {
	outcome = p.Outcome
	for _, x := range p.Values {
		if x.Threshold == t.Label() {
			v, low, high, outcome = x.Value, x.Low, x.High, x.Outcome
		}
	}
	for _, x := range r.CasesOf(c.Workload, c.Server) {
		if !v.OK && x.Name == p.Level {
			v = x.Summary(t.Metric.Name).Stat(t.Stat.String())
		}
	}
	if math.IsInf(v.V, 0) {
		v = metric.Value{}
	}
	return v, low, high, outcome
}

// ends formats one end of an interval. If there is no bound on that side, it says so.
func ends(n metric.Value, unit metric.Unit, upper bool) string {
	if n.OK {
		return n.Format(unit)
	}
	if upper {
		return "no upper bound"
	}
	return "no lower bound"
}

func lowHigh(points []chart.Point) (low, high float64) {
	low = math.Inf(1)
	for _, p := range points {
		low, high = min(low, p.Y), max(high, p.Y)
	}
	return low, high
}

func outcomeClass(outcome verdict.Outcome) string {
	switch outcome {
	case verdict.Pass, verdict.Fail:
		return outcome.String()
	case verdict.Inconclusive:
		return "unsure"
	case verdict.Error, metric.Saturated:
		return "error"
	}
	return "none"
}

func probes(r Run, c *metric.Capacity) *Table {
	t := &Table{Caption: "Probes of the search, in the order in which they were made",
		Columns: []Column{{"Load", 0}, {"Why", 0}, {"Outcome", 0}, {"Requests", 0}, {"Took", 1}, {"Threshold nearest to its limit", 0}, {"Note", 0}}}
	for i := range c.Probes {
		p := &c.Probes[i]
		took := "–"
		if p.Spent > 0 {
			took = clean.Clock(p.Spent.Seconds())
		}
		cells := Row(c.Named(p.N), cmp.Or(p.Purpose, "–"), p.Outcome.String(), count(p.Requests), took,
			cmp.Or(strings.TrimSpace(p.Binding+" "+p.Shown), "–"), cmp.Or(p.Note, "–"))
		cells[2].Class = outcomeClass(p.Outcome)
		t.Rows = append(t.Rows, cells)
	}
	t.cut(200)
	return t
}

func margins(r Run, c *metric.Capacity) []string {
	var out []string
	for _, t := range searchedBounds(r, c) {
		// If several probes passed at the capacity, the last one confirmed it.
		for i := len(c.Probes) - 1; i >= 0; i-- {
			p := &c.Probes[i]
			if p.N != c.Pass || p.Outcome != verdict.Pass {
				continue
			}
			v, _, _, _ := probed(r, c, p, t)
			m := margin(t.Op, v.V, t.Limit.V)
			if !v.OK || math.IsNaN(m) || math.IsInf(m, 0) {
				continue
			}
			value, limit := metric.FormatPair(t.Unit(), v.V, t.Limit.V)
			out = append(out, Line(fmt.Sprintf("at a load of %s, %s is %s: %s of %s %s, with %s to spare", c.Amount(c.Pass),
				Line(t.Title()), value, nearness(m), relation(t.Op), limit, metric.Format(metric.Ratio, m))))
			break
		}
	}
	return out
}
