package page

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/chart"
)

const overTimeTitle = "Requests arriving, in flight and waiting, over time"

// arrivals returns the section with charts of open loops, for workloads that have no section of
// their own.
func arrivals(runs []Run) Section {
	s := Section{ID: "arrivals", Title: overTimeTitle,
		Lead: "When requests arrived, how many were in flight, and how many waited for their first token. A server that keeps up works off its backlog; otherwise the backlog grows until the end."}
	for _, r := range runs {
		type owner struct{ server, workload string }
		var seen []owner
		for i := range r.Passages {
			k := owner{r.Passages[i].Server, r.Passages[i].Workload}
			w := r.Workload(k.workload)
			if slices.Contains(seen, k) || len(runs) == 1 && w != nil && r.anchorOf(w) != "" {
				continue
			}
			seen = append(seen, k)
			name := strings.TrimSuffix(r.title(k.workload)+r.serverSuffix(k.server)+" · "+r.Name, " · ")
			figures := Block{Figures: overTime(r, k.workload, k.server, name)}
			if len(seen) > 1 || len(runs) > 1 {
				figures = fold(name, figures)
			}
			s.Blocks = append(s.Blocks, figures)
		}
	}
	return s
}

// overTimeBlock draws charts over time of the open loops of a use case. With several servers the
// charts are folded.
func overTimeBlock(r Run, w *report.Workload) []Block {
	var figures []Figure
	for _, server := range w.Servers {
		figures = append(figures, overTime(r, w.Address, server, r.title(w.Address)+r.serverSuffix(server))...)
	}
	switch {
	case len(figures) == 0:
		return nil
	case len(w.Servers) > 1:
		return []Block{fold(overTimeTitle, Block{Figures: figures})}
	}
	return []Block{{Figures: figures}}
}

// quantity is one thing that a chart shows over time, such as the requests in flight.
type quantity struct {
	title, axis, words string
	unit               metric.Unit
	of                 func(*report.Passage) []float64
}

func counts(list []int) []float64 {
	out := make([]float64, len(list))
	for i, n := range list {
		out[i] = float64(n)
	}
	return out
}

var quantities = []quantity{
	{"Arrivals", "Requests a second", "Requests that were due, whether or not earlier requests had ended.", metric.PerSecond, func(p *report.Passage) []float64 {
		out := counts(p.Arrivals)
		for i := range out {
			out[i] /= p.Step
		}
		return out
	}},
	{"In flight", "Requests in flight", "Requests that were due and had not ended. Each point is the largest number in its time step.", metric.Requests, func(p *report.Passage) []float64 { return counts(p.InFlight) }},
	{"Waiting", "Requests waiting", "The backlog: requests in flight that had no token yet. Each point is the largest number in its time step.", metric.Requests, func(p *report.Passage) []float64 { return counts(p.Waiting) }},
}

// overTime draws charts of several quantities over time, for a workload on a server. Each measured
// window is a line, with at most mostSeries lines.
func overTime(r Run, workload, server, name string) []Figure {
	var list []*report.Passage
	for i := range r.Passages {
		if p := &r.Passages[i]; p.Workload == workload && p.Server == server && p.Step > 0 && len(list) < mostSeries {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return nil
	}
	var out []Figure
	for _, q := range quantities {
		if f := q.figure(r, list, name); f.Chart != "" {
			out = append(out, f)
		}
	}
	return out
}

func (q quantity) figure(r Run, list []*report.Passage, name string) Figure {
	f := Figure{Title: q.title + " over time, " + name, Words: q.words}
	ch := chart.Chart{Name: f.Title, Height: 240, Y: chart.Axis{Title: q.axis, Zero: true, Whole: q.unit == metric.Requests,
		Format: metric.In(q.unit)}}
	f.Table = &Table{Caption: f.Title, Columns: Heads("Load", "Most", "Most at", "At the end")}
	longest, top, found := 0.0, -1.0, ""
	for i, p := range list {
		values, hue, said := q.of(p), i, loadOver(r, p)
		if len(list) > 2 {
			hue = chart.Ordered + i*(chart.Shades-1)/(len(list)-1)
		}
		line := chart.Series{Name: said, Index: hue, Plain: true, Steps: true}
		most := 0
		for j, v := range values {
			line.Points = append(line.Points, chart.Point{X: float64(j) * p.Step, Y: v, Low: math.NaN(), High: math.NaN()})
			if v > values[most] {
				most = j
			}
		}
		n := len(values)
		if n == 0 {
			continue
		}
		length := float64(n) * p.Step
		longest = max(longest, length)
		line.Points = append(line.Points, chart.Point{X: length, Y: values[n-1], Low: math.NaN(), High: math.NaN()})
		ch.Series = append(ch.Series, line)
		f.Legend = append(f.Legend, Legend{chart.Swatch(hue), said})
		f.Table.Rows = append(f.Table.Rows, []Cell{text(said), text(metric.Format(q.unit, values[most])),
			text(chart.Clock(float64(most) * p.Step)), text(metric.Format(q.unit, values[n-1]))})
		if values[most] > top {
			top, found = values[most], fmt.Sprintf("Most: %s at %s", metric.Format(q.unit, values[most]), chart.Clock(float64(most)*p.Step))
			if len(list) > 1 {
				found += " · " + said
			}
		}
	}
	ch.X = chart.Time(longest)
	f.Finding = found + "."
	if len(list) == 1 {
		f.Legend = nil
		f.Words += stages(r, &ch, list[0])
	}
	f.Words += windowsOf(list)
	if q.unit == metric.PerSecond {
		largestOver(r, &ch, list, top)
	}
	f.Chart = ch.SVG()
	return f
}

// loadOver returns the label of a passage (a measured window): the title of its level, or the
// number of its stages.
func loadOver(r Run, p *report.Passage) string {
	if len(p.Levels) == 1 {
		return r.level(p.Workload, p.Levels[0])
	}
	return verdict.Count(len(p.Levels), "stages")
}

// stages marks the beginning of each stage in a chart. It returns a caption for the marks; "" if
// the chart has only one stage.
func stages(r Run, ch *chart.Chart, p *report.Passage) string {
	if len(p.Levels) < 2 {
		return ""
	}
	var names []string
	for i, level := range p.Levels {
		names = append(names, r.level(p.Workload, level))
		if i < len(p.Begins) {
			ch.Rules = append(ch.Rules, chart.Rule{At: p.Begins[i], Word: names[i], Vertical: true})
		}
	}
	return " The vertical lines show where each stage begins (" + strings.Join(names, ", ") + ")."
}

// windowsOf returns a note if a chart shows only the first of several windows, such as " The first
// of 3 windows."; otherwise it returns "".
func windowsOf(list []*report.Passage) string {
	most := 0
	for _, p := range list {
		most = max(most, p.Windows)
	}
	if most < 2 {
		return ""
	}
	return fmt.Sprintf(" The first of %d windows.", most)
}

// largestOver marks the largest rate that the server can sustain, if it is less than twice the
// highest arrival rate.
func largestOver(r Run, ch *chart.Chart, list []*report.Passage, top float64) {
	for _, c := range r.CasesOf(list[0].Workload, list[0].Server) {
		if c.Largest() > 0 && c.Largest() < 2*top {
			ch.Y.Include = []float64{c.Largest()}
			ch.Rules = append(ch.Rules, chart.Rule{At: c.Largest(), Word: "largest rate " + metric.Format(metric.PerSecond, c.Largest())})
			return
		}
	}
}
