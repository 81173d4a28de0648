package page

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/chart"
)

// fewServers is the smallest number of servers that get a table of configurations. Fewer do not
// need it, because the report shows two servers as a comparison.
const fewServers = 3

// configurations compares three or more servers. It has a table for each load, and charts of the
// speed for one user against the throughput of the server.
func configurations(r Run) Section {
	s := Section{ID: "configurations", Title: "Which configuration?",
		Lead: "All servers at the same loads. ★ marks the best value of a column. ≈ marks a value that the comparisons cannot distinguish from the best."}
	if len(r.Run.Servers) < fewServers {
		return s
	}
	var figures []Figure
	var tables []Block
	for i := range r.Workloads {
		w := &r.Workloads[i]
		if f, ok := pareto(r, w); ok {
			figures = append(figures, f)
		}
		for _, level := range sharedLevels(r, w) {
			if t := ranked(r, w, level); t != nil {
				tables = append(tables, Block{Table: t})
			}
		}
	}
	s.Blocks = []Block{{Figures: figures}}
	if len(tables) > 4 {
		s.Blocks = append(s.Blocks, tables[:4]...)
		tables = []Block{fold(verdict.Count(len(tables)-4, "further tables"), tables[4:]...)}
	}
	s.Blocks = append(s.Blocks, tables...)
	return s
}

func sharedLevels(r Run, w *report.Workload) []string {
	var out []string
	n := map[string]int{}
	for _, c := range r.CasesOf(w.Address, "") {
		if c.Probe != nil || c.Completed == 0 {
			continue
		}
		if n[c.Name]++; n[c.Name] == fewServers {
			out = append(out, c.Name)
		}
	}
	return out
}

// findCase returns the case of a workload at a level on a server. It returns nil if no request of
// the case completed.
func (r Run) findCase(workload, level, server string) *report.Case {
	for _, c := range r.CasesOf(workload, server) {
		if c.Name == level && c.Completed > 0 {
			return c
		}
	}
	return nil
}

// ranked returns a table with a row for each server at one level. The best value in each column is
// marked.
func ranked(r Run, w *report.Workload, level string) *Table {
	t := &Table{Caption: r.title(w.Address) + " at " + r.level(w.Address, level), Columns: Heads("Server")}
	columns := []struct{ name, stat string }{{"throughput", ""}, {"e2e", "mean"}, {"ttft", "mean"}, {"ttft", "p95"}, {"speed", "mean"}, {"success", "rate"}}
	for i := range r.Run.Servers {
		if r.findCase(w.Address, level, r.Run.Servers[i].Address) != nil {
			t.Rows = append(t.Rows, []Cell{text(r.title(r.Run.Servers[i].Address))})
		}
	}
	for _, col := range columns {
		def, _ := metric.Lookup(col.name)
		t.Columns = append(t.Columns, Heads(def.Title+map[bool]string{true: " " + col.stat}[col.stat == "mean" || col.stat == "p95"])...)
		var values []float64
		var servers []string
		for i := range r.Run.Servers {
			if c := r.findCase(w.Address, level, r.Run.Servers[i].Address); c != nil {
				v := math.NaN()
				if n := c.Summary(col.name).Stat(col.stat); n.OK {
					v = n.V
				}
				values, servers = append(values, v), append(servers, c.Server)
			}
		}
		best := bestOf(values, def.Better == metric.HigherIsBetter)
		for i, v := range values {
			x := text("–")
			switch {
			case math.IsNaN(v):
			case i == best && slices.ContainsFunc(values, func(o float64) bool { return o != v && !math.IsNaN(o) }):
				x = Cell{Text: "★ " + metric.Format(def.Unit, v), Class: "pass"}
			case best >= 0 && equalServers(r, w.Address, level, col.name, col.stat, servers[i], servers[best]):
				x = text("≈ " + metric.Format(def.Unit, v))
			default:
				x = text(metric.Format(def.Unit, v))
			}
			t.Rows[i] = append(t.Rows[i], x)
		}
	}
	if len(t.Rows) < fewServers {
		return nil
	}
	return t
}

// bestOf returns the index of the best value; -1 if there is none.
func bestOf(values []float64, higher bool) int {
	best := -1
	for i, v := range values {
		if !math.IsNaN(v) && (best < 0 || higher == (v > values[best]) && v != values[best]) {
			best = i
		}
	}
	return best
}

// equalServers reports whether the comparisons show the servers a and b as equal in a statistic. If
// a and b were compared with each other, that comparison decides. Otherwise both must have been
// compared with the same control, and the intervals of their changes must overlap.
func equalServers(r Run, workload, level, name, stat, a, b string) bool {
	against := map[string]map[string]*compare.Change{} // by control and candidate
	for _, c := range r.Comparisons {
		for j := range c.Changes {
			if x := &c.Changes[j]; x.Workload == workload && x.Level == level && x.Metric.Name == name && x.Stat.String() == stat &&
				x.Change.OK {
				if against[c.Control] == nil {
					against[c.Control] = map[string]*compare.Change{}
				}
				against[c.Control][c.Candidate] = x
			}
		}
	}
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		if x := against[pair[0]][pair[1]]; x != nil {
			return x.Direction == ""
		}
	}
	for _, candidates := range against {
		x, y := candidates[a], candidates[b]
		if x != nil && y != nil && x.Low.OK && x.High.OK && y.Low.OK && y.High.OK {
			return x.Low.V <= y.High.V && y.Low.V <= x.High.V
		}
	}
	return false
}

// felt returns the threshold by which users feel how fast a workload is. It is the first
// threshold on speed or TTFT. If there is none, felt returns the mean speed, without a limit.
func felt(w *report.Workload) verdict.Threshold {
	for _, b := range w.Bounds {
		if t := b.Threshold; slices.Contains([]string{"speed", "request_speed", "ttft"}, t.Metric.Name) && t.Limit.OK {
			return t
		}
	}
	return unlimited("speed")
}

// pareto draws the speed for one user against the throughput of the whole server. Each server is a
// line through its loads.
func pareto(r Run, w *report.Workload) (Figure, bool) {
	t := felt(w)
	def, said := t.Metric, Line(t.Title())
	f := Figure{Title: "What one user gets, by the throughput of the whole server: " + r.title(w.Address),
		Words: "Each line is a server. The points of a line are the loads, from few requests to many. Further right is better, and further " + way(def.Better) + ". A hollow point means that another server is better in both directions."}
	ch := chart.Chart{Name: f.Title,
		X: chart.Axis{Title: "Throughput", Zero: true, Format: metric.In(metric.TokensPerSecond)},
		Y: chart.Axis{Title: said + " of one user", Zero: true, Format: metric.In(def.Unit)}}
	f.Table = &Table{Caption: f.Title, Columns: Heads("Server", "Load", "Throughput", said)}
	for i := range r.Run.Servers {
		s := chart.Series{Index: len(ch.Series)}
		name := r.title(r.Run.Servers[i].Address)
		cases := slices.DeleteFunc(r.CasesOf(w.Address, r.Run.Servers[i].Address), func(c *report.Case) bool { return c.Probe != nil })
		slices.SortStableFunc(cases, func(a, b *report.Case) int { return cmp.Compare(a.Load(), b.Load()) })
		for _, c := range cases {
			x, y := mean(c, "throughput"), c.Summary(t.Metric.Name).Stat(t.Stat.String())
			if !x.OK || !y.OK || math.IsInf(y.V, 0) {
				continue
			}
			s.Points = append(s.Points, chart.Point{X: x.V, Y: y.V, Low: math.NaN(), High: math.NaN(),
				Tip: []string{name, inFlight(c), format("throughput", x.V), format(t.Metric.Name, y.V)}})
			f.Table.Rows = append(f.Table.Rows,
				[]Cell{text(name), text(levelOf(c)), text(format("throughput", x.V)), text(format(t.Metric.Name, y.V))})
		}
		if len(s.Points) > 0 {
			ch.Series = append(ch.Series, s)
			f.Legend = append(f.Legend, Legend{chart.Swatch(s.Index), name})
		}
	}
	dominated(ch.Series, def.Better == metric.HigherIsBetter)
	if t.Limit.OK {
		allowed := chart.Zone{From: 0, To: t.Limit.V, Word: "allowed", Class: "z0"}
		if t.Op == ">" || t.Op == ">=" {
			allowed.From, allowed.To = t.Limit.V, math.Inf(1)
		}
		ch.Zones = []chart.Zone{allowed}
		ch.Rules = []chart.Rule{{At: t.Limit.V, Word: Line(strings.TrimSpace(t.Metric.Name + " " + t.Text))}}
		ch.Y.Include = []float64{t.Limit.V}
		f.Words += " The plan allows the values in the shaded area."
	}
	f.Chart = ch.SVG()
	return f, f.Chart != "" && len(ch.Series) >= fewServers && len(f.Table.Rows) > len(ch.Series)
}

// way says whether higher or lower points on a vertical axis are better: "up" or "down".
func way(better metric.Direction) string {
	if better == metric.HigherIsBetter {
		return "up"
	}
	return "down"
}

// dominated marks a point to be drawn hollow if a point of another line is better on both axes.
func dominated(lines []chart.Series, higher bool) {
	for i := range lines {
		for j := range lines[i].Points {
			p := &lines[i].Points[j]
			p.Hollow = slices.ContainsFunc(lines, func(o chart.Series) bool {
				return o.Index != lines[i].Index &&
					slices.ContainsFunc(o.Points, func(q chart.Point) bool { return q.X > p.X && q.Y != p.Y && (q.Y > p.Y) == higher })
			})
		}
	}
}
