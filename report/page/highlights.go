package page

import (
	"cmp"
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
		for _, x := range tiles(alone) {
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

// addPlace adds the workload, server and run of a case to a text that already has the load of the
// case.
func addPlace(runs []Run, e extreme) string {
	w := strings.TrimPrefix(caseName(runs, e.r, e.c), inFlight(e.c))
	if w == "" {
		return ""
	}
	return ", " + strings.TrimPrefix(w, " · ")
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
