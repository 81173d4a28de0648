package page

import (
	"fmt"
	"math"
	"slices"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/chart"
)

func serverSection(runs []Run) Section {
	return Section{
		ID: "inside", Title: "Inside the server",
		Lead: "What the server and its GPUs reported while the load ran. A full cache makes requests wait, or the server preempts them. A falling clock means that a GPU is too hot or short of power.",
	}.folded(runs, 4,
		curve{kind: "closed", name: "running", title: "Requests that the server worked on", axis: "mean running", words: "Requests in flight beyond this number wait in the server's queue."},
		curve{kind: "closed", name: "kv_usage", title: "KV cache in use", axis: "highest share", of: stat("kv_usage", "max"), zero: true, quiet: true, words: "Memory for the tokens read and written so far. At 100% the server is full."},
		curve{kind: "closed", name: "gpu_utilization", title: "GPU busy", axis: "mean share", zero: true, words: "Share of the time in which a GPU was busy."},
		curve{kind: "closed", name: "gpu_memory", title: "GPU memory", axis: "highest in use", of: stat("gpu_memory", "max"), words: "All GPUs together."},
		curve{kind: "closed", name: "gpu_temperature", title: "GPU temperature", axis: "highest", of: stat("gpu_temperature", "max"), words: "Of the hottest GPU."},
		curve{kind: "closed", name: "gpu_clock", title: "GPU clock", axis: "mean clock", words: "Of the slowest GPU."})
}

// telemetry draws what the server reported about itself during the level of the timeline t.
func telemetry(r Run, t *report.Timeline) []Figure {
	var of *report.Case
	for _, c := range r.CasesOf(t.Workload, t.Server) {
		if c.Name == t.Level {
			of = c
		}
	}
	if of == nil {
		return nil
	}
	title := r.title(t.Workload) + " at " + r.level(t.Workload, t.Level)
	var out []Figure
	for i := range of.Series {
		s := &of.Series[i]
		def, ok := metric.Lookup(s.Metric)
		if !ok || len(s.At) < 2 || len(s.At) != len(s.Values) {
			continue
		}
		// The chart covers the timeline's period, and half of that period's length on each side. If
		// that range has fewer than five readings, the chart covers the whole level.
		times, values, words := s.At, s.Values, "The chart shows all rounds of the level."
		if room := (t.To - t.From) / 2; room > 0 {
			if i, j := within(s.At, t.From-room, t.To+room); j-i >= 5 {
				times, values, words = s.At[i:j], s.Values[i:j], "The chart has the same time axis as the bars above."
			}
		}
		if !slices.ContainsFunc(values, func(v float64) bool { return v != 0 }) {
			continue
		}
		series := chart.Series{Index: 0, Plain: true}
		for j, at := range times {
			// A break in the line separates the readings of two rounds.
			if j > 0 && at-times[j-1] > 5*typical(times) {
				series.Points = append(series.Points, chart.Point{X: math.NaN(), Y: math.NaN()})
			}
			series.Points = append(series.Points, chart.Point{X: at - t.From, Y: values[j]})
		}
		ch := chart.Chart{Name: def.Title + " during " + title, Height: 190,
			X: chart.Axis{Title: "Time, as above", Format: metric.In(metric.Seconds)},
			Y: chart.Axis{Title: def.Title, Zero: true,
				Format: func(v float64) string { return metric.Format(metric.Unit(s.Unit), v) }},
			Spans:  []chart.Span{{From: 0, To: t.To - t.From, Word: "the part that is shown request by request"}},
			Series: []chart.Series{series},
		}
		tab := &Table{Caption: def.Title + " during " + title, Columns: Heads("Time", def.Title)}
		const mostRows = 10
		for _, j := range evenly(indexes(len(times)), mostRows) {
			tab.Rows = append(tab.Rows,
				[]Cell{text(metric.Format(metric.Seconds, times[j]-t.From)), text(metric.Format(metric.Unit(s.Unit), values[j]))})
		}
		if left := len(times) - len(tab.Rows); left > 0 {
			tab.Left = verdict.Count(left, "more rows")
		}
		out = append(out, Figure{Title: def.Title + " meanwhile", Words: fmt.Sprintf("%s %s The bars above show the shaded part, request by request.", Line(def.Doc), words), Chart: ch.SVG(), Table: tab})
	}
	return out
}

// within returns the range of indices i to j-1 of the ascending times at. Their times are at or
// after the parameter from, and before the parameter to.
func within(at []float64, from, to float64) (i, j int) {
	i, _ = slices.BinarySearch(at, from)
	j, _ = slices.BinarySearch(at, to)
	return i, max(i, j)
}

func typical(at []float64) float64 { return (at[len(at)-1] - at[0]) / float64(len(at)-1) }

func indexes(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
