package page

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
)

// extreme is the best or the worst value of a metric. It also tells the run and the case that the
// value is from.
type extreme struct {
	v  float64
	r  Run
	c  *report.Case
	ok bool
}

// extremes returns the lowest and the highest value of all levels, with their runs. It includes the
// probes of capacity searches, because the page shows them too.
func extremes(runs []Run, of func(*report.Case) report.Number) (low, high extreme) {
	measured(runs, func(r Run, c *report.Case) {
		n := of(c)
		if !n.OK || math.IsInf(n.V, 0) {
			return
		}
		if !low.ok || n.V < low.v {
			low = extreme{n.V, r, c, true}
		}
		if !high.ok || n.V > high.v {
			high = extreme{n.V, r, c, true}
		}
	})
	return low, high
}

func highlights(runs []Run) (Section, bool) {
	s := Section{ID: "highlights", Title: "Highlights", Lead: "The figures that most people ask for first, and the load at which each figure was measured."}
	if len(runs) == 1 {
		return s, false // page one has them
	}
	t := &Table{Words: true, Caption: "Highlights of each run", Columns: heads("Figure")}
	var order []string
	figures := map[string][]string{}
	for i, r := range runs {
		t.Columns = append(t.Columns, heads(r.Name)...)
		alone := r
		alone.Name = ""
		for _, x := range headline([]Run{alone}) {
			if figures[x.Label] == nil {
				figures[x.Label] = make([]string, len(runs))
				order = append(order, x.Label)
			}
			figures[x.Label][i] = x.Value + " (" + x.Note + ")"
		}
	}
	for _, label := range order {
		row := []Cell{text(label)}
		for _, v := range figures[label] {
			row = append(row, text(cmp.Or(v, "–")))
		}
		t.Rows = append(t.Rows, row)
	}
	s.Blocks = []Block{{Table: t}}
	return s, len(t.Rows) > 0
}

// headline returns the most important figures of one run, as tiles.
func headline(runs []Run) []Tile {
	var tiles []Tile
	if _, high := extremes(runs, func(c *report.Case) report.Number { return mean(c, "throughput") }); high.ok {
		tiles = append(tiles,
			Tile{"Peak throughput", format("throughput", high.v), "output tokens of all requests together, at " + caseName(runs, high.r, high.c)},
			Tile{"Tokens per hour", big(high.v * 3600), "in an hour at the peak throughput: " + format("throughput", high.v) + " × 3600 s"})
	}
	one := func(name string) func(*report.Case) report.Number {
		return func(c *report.Case) report.Number {
			if c.N != 1 {
				return report.Number{}
			}
			return mean(c, name)
		}
	}
	if low, _ := extremes(runs, one("ttft")); low.ok {
		tiles = append(tiles, Tile{"First token, one request", format("ttft", low.v), "mean TTFT with no other request in flight" + addPlace(runs, low)})
	}
	if _, high := extremes(runs, func(c *report.Case) report.Number { return mean(c, "speed") }); high.ok {
		tiles = append(tiles, Tile{"Fastest stream", format("speed", high.v), "mean speed of one user's text, at " + caseName(runs, high.r, high.c)})
	}
	tiles = append(tiles, limits(runs)...)
	due, completed, cases := 0, 0, 0
	measured(runs, func(_ Run, c *report.Case) {
		if c.Of == "" {
			due, completed, cases = due+c.Due, completed+c.Completed, cases+1
		}
	})
	if due > 0 {
		tiles = append(tiles, Tile{"Success", metric.Format(metric.Ratio, float64(completed)/float64(due)),
			fmt.Sprintf("%s of %s requests completed correctly, at %s", count(completed), count(due), plural(cases, "level"))})
	}
	return tiles
}

// addPlace adds the workload, server and run of a case to a text that already has the load of the
// case.
func addPlace(runs []Run, e extreme) string {
	w := strings.TrimPrefix(caseName(runs, e.r, e.c), inFlight(e.c))
	if w == "" {
		return ""
	}
	return ", " + strings.TrimPrefix(w, " · ")
}

// limits returns a tile for each capacity that was found.
func limits(runs []Run) []Tile {
	var tiles []Tile
	n := 0
	for _, r := range runs {
		n += len(r.Capacities)
	}
	if n > 4 { // too many tiles; other sections list all capacities
		return nil
	}
	for _, r := range runs {
		for i := range r.Capacities {
			c := &r.Capacities[i]
			if c.Pass == 0 {
				continue
			}
			note := "requests in flight at which every threshold held"
			if c.Over == "speedup" {
				note = "times the recorded traffic at which every threshold held"
			} else if c.OfRate() {
				note = "requests per second at which every threshold is certified to hold"
			} else if c.Over == string(metric.Users) {
				note = "users for whom every threshold held"
			} else if c.Over == "burst" {
				note = "requests at once at which every threshold held"
			} else if people := r.Workload(c.Workload).People(c.Pass); people != "" {
				note += ": " + people
			}
			label := "Capacity"
			if len(r.Capacities) > 1 || len(runs) > 1 {
				label += ", " + r.title(c.Workload)
			}
			if len(r.Servers) > 1 {
				note += "; " + r.title(c.Server)
			}
			if r.Name != "" {
				note += "; " + r.Name
			}
			tiles = append(tiles, Tile{label, c.Limit(), note})
		}
	}
	return tiles
}

// big formats a large number with a prefix and three significant digits.
func big(v float64) string {
	switch {
	case v >= 0.9995e9:
		return metric.Format(metric.Count, v/1e9) + " billion"
	case v >= 0.9995e6:
		return metric.Format(metric.Count, v/1e6) + " million"
	case v >= 0.9995e4:
		return metric.Format(metric.Count, v/1e3) + " thousand"
	}
	return metric.Format(metric.Count, math.Round(v))
}
