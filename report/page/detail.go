package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/chart"
)

// shares returns the share of requests that belongs to point i of a Summary.Curve. It rises from 0
// at the first point to 1 at the last.
func shares(curve []metric.Value, i int) float64 { return float64(i) / float64(len(curve)-1) }

// distributions shows the distribution of the requests at each level. A curve gives the share of
// requests that were at least as good as a value.
func distributions(runs []Run) Section {
	s := Section{ID: "distributions", Title: "Distributions",
		Lead: "A mean hides slow requests. Each curve shows what share of the requests stayed at or below a value; it crosses 95% at the p95. A curve that ends below 100% had failed requests."}
	var all []Figure
	groups := 0
	for _, kind := range []metric.LoadKind{metric.ClosedLoop, metric.Burst, metric.Users} {
		for _, t := range tracks(runs, kind, func(c *report.Case) bool {
			s := c.Summary("ttft")
			return c.Probe == nil && s != nil && len(s.Curve) > 1
		}) {
			var figures []Figure
			for _, name := range []string{"ttft", "speed"} {
				if f, ok := spread(t, name, nil); ok {
					figures = append(figures, f)
				}
			}
			if len(figures) > 0 && groups < mostDistributions {
				all, groups = append(all, figures...), groups+1
			}
		}
	}
	s.Blocks = []Block{fold("TTFT and speed of "+verdict.Count(groups, "workloads"), Block{Figures: all})}
	return s
}

// mostDistributions is the largest number of distribution charts on a page. mostLevels is the
// largest number of levels in one chart.
const (
	mostDistributions = 12
	mostLevels        = 6
)

// spread draws the distributions of several cases in one chart. All cases are in the track t. Their
// labels are in the list names; if the list is nil, the labels are the loads.
func spread(t track, name string, names []string) (Figure, bool) {
	def, _ := metric.Lookup(name)
	noun := map[string]string{"itl": "gaps"}[name]
	noun = cmp.Or(noun, "requests")
	f := Figure{Title: def.Title + ": " + t.name, Terms: []string{name}, Words: "Share of " + noun + " with at most this value."}
	if def.Better == metric.HigherIsBetter {
		f.Words += " Here further right is better."
	} else {
		f.Words += " Further left is better."
	}
	ch := chart.Chart{Name: "Distribution of " + def.Title + ", " + t.name, Height: 260,
		X: chart.Axis{Title: def.Title, Format: metric.In(def.Unit)},
		Y: chart.Axis{Title: "Share of " + noun, Min: 0, Max: 1, Ticks: []float64{0, 0.25, 0.5, 0.75, 0.95},
			Format: metric.In(metric.Ratio)}}
	tab := &Table{Caption: def.Title + " of " + t.name + " by level", Columns: Heads("Level", Capital(noun), "p5", "p50", "p95", "p99", "Max")}
	cases := t.cases
	if names == nil {
		cases = t.line()
	}
	tab.Rows = percentiles(cases, name)
	low, high := math.Inf(1), 0.0
	for i, c := range evenly(cases, mostLevels) {
		sum := c.Summary(name)
		if sum == nil || len(sum.Curve) < 2 {
			continue
		}
		series := chart.Series{Index: i, Plain: true, Points: make([]chart.Point, 0, len(sum.Curve))}
		for j, n := range sum.Curve {
			if !n.OK || math.IsInf(n.V, 0) {
				break
			}
			series.Points = append(series.Points, chart.Point{X: n.V, Y: shares(sum.Curve, j)})
			low, high = min(low, n.V), max(high, n.V)
		}
		if len(series.Points) == 0 {
			continue
		}
		ch.Series = append(ch.Series, series)
		said := inFlight(c)
		if names != nil {
			said = names[i]
		}
		f.Legend = append(f.Legend, Legend{chart.Swatch(i), said})
	}
	for _, w := range t.r.Workloads {
		for _, b := range w.Bounds {
			if th := b.Threshold; w.Address == t.workload && th.Metric.Name == name && th.Limit.OK && th.Limit.V < 3*high &&
				len(ch.Rules) == 0 {
				ch.Rules = append(ch.Rules, chart.Rule{At: th.Limit.V, Vertical: true, Word: Line(th.Text)})
				ch.X.Include = append(ch.X.Include, th.Limit.V)
			}
		}
	}
	if low > 0 && high > 50*low {
		ch.X.Log = true
		ch.X.Title += " (logarithmic)"
	}
	f.Chart, f.Table = ch.SVG(), tab
	return f, f.Chart != ""
}

// percentiles returns one table row for each case, with the percentiles of the named metric. It
// skips cases without percentiles.
func percentiles(cases []*report.Case, name string) [][]Cell {
	var out [][]Cell
	for _, c := range cases {
		sum := c.Summary(name)
		if sum == nil || sum.Percentiles == nil || sum.Why != "" {
			continue
		}
		p := sum.Percentiles
		row := []Cell{text(levelOf(c)), text(count(sum.N))}
		for _, n := range []metric.Value{p.P5, p.P50, p.P95, p.P99, sum.Max} {
			row = append(row, text(n.Format(sum.Unit)))
		}
		out = append(out, row)
	}
	return out
}

// timelines returns a section that shows one level of each run. Each request is a bar.
func timelines(runs []Run) Section {
	s := Section{ID: "timeline", Title: "Request by request",
		Lead: "A part of one level over time. Each row is a slot, and each bar is a request. The pale part of a bar is the wait for the first token (queue and prefill). The dark part is the answer. Long pale parts mean that requests wait. Long dark parts mean that other requests slow the answers down."}
	for _, r := range runs {
		for i := range r.Timelines {
			t := &r.Timelines[i]
			f, ok := timeline(r, t)
			if !ok || len(s.Blocks) == mostTimelines {
				continue
			}
			s.Blocks = append(s.Blocks, fold(f.Title, Block{Figures: []Figure{f}}, Block{Figures: telemetry(r, t)}))
		}
	}
	return s
}

// mostTimelines is the largest number of timelines on a page, over all runs.
const mostTimelines = 2

func timeline(r Run, t *report.Timeline) (Figure, bool) {
	title := fmt.Sprintf("%s at %s on %s", r.title(t.Workload), r.level(t.Workload, t.Level), r.title(t.Server))
	if r.Name != "" {
		title += " · " + r.Name
	}
	g := chart.Gantt{Name: "Timeline of " + title, Length: t.To - t.From, Format: metric.In(metric.Seconds)}
	f := Figure{Title: title, Wide: true, Words: fmt.Sprintf("This level is shown because it is %s. The chart shows round %d.", Line(t.Why), t.Round+1),
		Table: &Table{Caption: "Requests of " + title, Columns: Heads("Slot", "Sent", "Wait for the first token", "Answer", "Ended", "What")}}
	if t.Left > 0 {
		f.Words += fmt.Sprintf(" %s of the round are not shown.", verdict.Count(t.Left, "further requests"))
	}
	for _, b := range t.Requests {
		x := chart.Request{Row: b.Slot, Start: b.Sent, First: math.NaN(), End: b.End}
		g.Rows = max(g.Rows, b.Slot+1)
		wait, Capacity, what := metric.Format(metric.Seconds, b.End-b.Sent), "–", cmp.Or(Line(b.Phase), "measured")
		if b.First.OK {
			x.First = b.First.V
			wait, Capacity = metric.Format(metric.Seconds, b.First.V-b.Sent), metric.Format(metric.Seconds, b.End-b.First.V)
		}
		if b.Phase == "filler" {
			x.Class, what = "faint", "not measured: sent to keep the load up"
		}
		switch b.Failure {
		case "":
		case string(metric.FailCanceled):
			x.Class, what = "faint", "not measured: cancelled at the end of the round"
		default:
			x.Class, what = "failed", "failed: "+Line(b.Failure)
		}
		x.Tip = fmt.Sprintf("slot %d, sent at %s: waited %s, answered in %s (%s)", b.Slot+1, metric.Format(metric.Seconds, b.Sent), wait, Capacity, what)
		g.Bars = append(g.Bars, x)
		f.Table.Rows = append(f.Table.Rows,
			[]Cell{text(strconv.Itoa(b.Slot + 1)), text(metric.Format(metric.Seconds, b.Sent)), text(wait), text(Capacity),
				text(metric.Format(metric.Seconds, b.End)), text(what)})
	}
	f.Legend = []Legend{{chart.Block("wait"), "wait for the first token"}, {chart.Block("decode"), "answer"}}
	if slices.ContainsFunc(g.Bars, func(b chart.Request) bool { return b.Class == "faint" }) {
		f.Legend = append(f.Legend, Legend{chart.Block("faint"), "not measured: sent to keep the load up"})
	}
	if slices.ContainsFunc(g.Bars, func(b chart.Request) bool { return b.Class == "failed" }) {
		f.Legend = append(f.Legend, Legend{chart.Block("failed"), "failed"})
	}
	f.Table.cut(20)
	f.Chart = g.SVG()
	return f, f.Chart != ""
}

func levels(runs []Run) Section {
	s := Section{ID: "levels", Title: "All levels", Lead: "Every level of the plan, with the figures behind the charts. The probes of a search are in the section of their use case."}
	for _, r := range runs {
		for _, g := range report.Groups(r.Document) {
			if len(g.Cases) == 0 {
				continue
			}
			name := strings.TrimSuffix(r.title(g.Workload)+r.serverSuffix(g.Server)+" · "+r.Name, " · ")
			blocks := levelTables(g.Cases)
			if t := blocks[0].Table; t != nil {
				t.Columns = slices.Insert(t.Columns, 1, Column{"Requirements", 0})
				for i, c := range g.Cases {
					x := text("–")
					if worst, judged := levelStatus(r, c); judged {
						x = sign(worst)
					}
					t.Rows[i] = slices.Insert(t.Rows[i], 1, x)
				}
			}
			notes := remarks(r, g.Cases)
			s.Blocks = append(s.Blocks, fold(name, append(blocks, Block{List: notes[:min(len(notes), 50)]})...))
		}
	}
	return s
}

func failures(runs []Run) Section {
	s := Section{ID: "failures", Title: "Failed requests", Lead: "What went wrong, in the server's own words. The most frequent failure comes first. A failed request counts as slower than every other request."}
	t := &Table{Words: true, Caption: "Failed requests", Columns: Heads("Where", "Requests", "Kind", "What was said")}
	measured(runs, func(r Run, c *report.Case) {
		for _, f := range c.Failures {
			for i, m := range f.Messages {
				row := []Cell{text(caseName(runs, r, c)), text(count(m.Count)), text(Line(f.Kind)), text(Line(m.Text))}
				if i > 0 {
					row[0], row[2] = text("〃"), text("〃")
				}
				t.Rows = append(t.Rows, row)
			}
		}
	})
	t.cut(100)
	s.Blocks = []Block{{Table: t}}
	return s
}
