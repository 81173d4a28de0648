package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
)

// tiles returns the figures that a reader of a report looks for first. All are of one server.
// Throughput and cost are of a load at which every requirement held. An open loop has none of its
// own: its throughput is what it was sent.
func tiles(r Run) []Tile {
	server := shown(r)
	on := func(of func(*report.Case) metric.Value, keep func(*report.Case) bool) (low, high extreme) {
		return extremes([]Run{r}, func(c *report.Case) metric.Value {
			if c.Server != server || !keep(c) {
				return metric.Value{}
			}
			return of(c)
		})
	}
	of := func(name string) func(*report.Case) metric.Value {
		return func(c *report.Case) metric.Value { return mean(c, name) }
	}
	held := func(c *report.Case) bool { return c.Kind != metric.OpenLoop && holds(r, c) }
	single := func(c *report.Case) bool { return c.N == 1 && c.Kind == metric.ClosedLoop }
	var out []Tile
	low, high := on(of("throughput"), held)
	if high.ok {
		out = append(out, Tile{"Peak throughput", format("throughput", high.v), "output tokens of all requests together, at " + caseName([]Run{r}, r, high.c)})
	}
	if first, last := on(of("ttft"), single); first.ok {
		out = append(out, span("First token, one request", "ttft", []Run{r}, first, last, "mean TTFT with no other request in flight"))
	}
	if last, first := on(of("speed"), single); first.ok {
		out = append(out, span("Speed of one request", "speed", []Run{r}, first, last, "mean tokens a second after the first token"))
	}
	if cheap, _ := on(of("cost_per_million_tokens"), held); cheap.ok {
		label, by := "Million output tokens", "by the plan's prices, at "
		if r.electricityOnly(server) {
			label, by = "Electricity of a million output tokens", "the plan prices nothing but electricity; at "
		}
		unit := cheap.c.Summary("cost_per_million_tokens").Unit
		out = append(out, Tile{label, metric.Value{V: cheap.v, OK: true}.Format(unit), by + caseName([]Run{r}, r, cheap.c)})
	} else if high.ok && high.c != low.c {
		out = append(out, Tile{"Tokens in an hour", big(high.v * 3600), "if the peak throughput lasted: " + format("throughput", high.v) + " × 3600 s"})
	}
	due, completed, cases := 0, 0, 0
	measured([]Run{r}, func(_ Run, c *report.Case) {
		if c.Alone() && c.Server == server {
			due, completed, cases = due+c.Due(), completed+c.Completed, cases+1
		}
	})
	if due > 0 {
		out = append(out, Tile{"Success", metric.Format(metric.Ratio, float64(completed)/float64(due)),
			fmt.Sprintf("%s of %s requests completed correctly, at %s%s", count(completed), count(due), verdict.Count(cases, "loads"), r.serverSuffix(server))})
	}
	return out
}

// span returns a tile with the best and the worst value of a metric, and where each was measured.
func span(label, name string, runs []Run, best, worst extreme, words string) Tile {
	places := []string{words}
	add := func(joint string, e extreme) {
		if at := placeOf(runs, e.r, e.c); len(at) > 0 {
			places = append(places, joint+strings.Join(at, " · "))
		}
	}
	t := Tile{Label: label, Value: format(name, best.v)}
	add(", ", best)
	if math.Max(best.v, worst.v) > 1.1*math.Min(best.v, worst.v) {
		t.Value += " to " + format(name, worst.v)
		add(" and ", worst)
	}
	t.Note = strings.Join(places, "")
	return t
}

// shown returns the server whose figures stand first: the candidate that a workload should take, or
// the first candidate, or the first server with a measured case.
func shown(r Run) string {
	for _, c := range r.Comparisons {
		for _, w := range decided(r) {
			if better, _, _ := winners(r, w); slices.Contains(better, c.Candidate) {
				return c.Candidate
			}
		}
	}
	for i := range r.Comparisons {
		return r.Comparisons[i].Candidate
	}
	server := ""
	measured([]Run{r}, func(_ Run, c *report.Case) { server = cmp.Or(server, c.Server) })
	return server
}

// holds reports whether no requirement failed at the load of a case. Above a capacity it does not.
func holds(r Run, c *report.Case) bool {
	if worst, judged := levelStatus(r, c); judged && worst < verdict.StatusWarning {
		return false
	}
	limit := r.Capacity(c.Workload, c.Server)
	return limit == nil || limit.Over != c.Kind || limit.Pass == 0 && limit.Fail == 0 || c.Load() <= limit.Load(limit.Pass)
}

// electricityOnly reports whether the plan prices electricity, but not the hours of a server.
func (r Run) electricityOnly(server string) bool {
	s := r.Server(server)
	return s != nil && s.ElectricityOnly
}

// frontChart returns the only picture on page one: the metric of the worst verdict, or the changes of
// a comparison, or the metric that limits a capacity, or else the throughput by load.
func frontChart(r Run) *Figure {
	if f := worstChart(r); f != nil {
		return f
	}
	first := func(c *compare.Comparison) int {
		if slices.ContainsFunc(c.Changes, func(x compare.Change) bool { return x.Status() <= verdict.StatusFail }) {
			return 0
		}
		return map[bool]int{true: 1, false: 2}[c.Candidate == shown(r)]
	}
	compared := slices.SortedStableFunc(slices.Values(r.Comparisons),
		func(a, b *compare.Comparison) int { return cmp.Compare(first(a), first(b)) })
	for _, c := range compared {
		if f, ok := overall(r, c); ok {
			return &f
		}
	}
	for _, c := range r.Run.Capacities {
		for _, t := range searchedBounds(r, c) {
			if f, ok := search(r, c, t); ok && c.Binding != "" {
				return bare(f)
			}
		}
	}
	for _, kind := range everyKind {
		cv := throughputCurve
		if cv.kind = kind; kind == metric.OpenLoop {
			cv = curveOf("ttft", "p95", kind)
		}
		if figures := cv.figures([]Run{r}); len(figures) > 0 {
			return bare(figures[0])
		}
	}
	return nil
}

// worstChart draws the metric of the worst threshold that did not pass, against the load; nil if
// every threshold passed.
func worstChart(r Run) *Figure {
	var worst *verdict.Verdict
	for i := range r.Verdicts {
		if v := &r.Verdicts[i]; v.Threshold != nil && v.Status() < verdict.StatusWarning && (worst == nil || v.Status() < worst.Status()) {
			worst = v
		}
	}
	if worst == nil {
		return nil
	}
	for _, kind := range everyKind {
		cv := curveOf(worst.Threshold.Metric.Name, worst.Threshold.Stat.String(), kind)
		cv.keep = func(c *report.Case) bool { return c.Workload == worst.Workload && c.Server == worst.Server }
		if figures := cv.figures([]Run{r}); len(figures) > 0 {
			figures[0].Title += ", " + r.title(worst.Workload) + r.serverSuffix(worst.Server)
			return bare(figures[0])
		}
	}
	return nil
}

// bare returns a figure without its table and its links to definitions, for the first page.
func bare(f Figure) *Figure {
	f.Table, f.Terms = nil, nil
	return &f
}

func highlights(runs []Run) Section {
	s := Section{ID: "highlights", Title: "Highlights", Lead: "The figures that most people ask for first, and the load at which each figure was measured."}
	t := &Table{Words: true, Caption: "Highlights of each run", Columns: Heads("Figure")}
	for _, r := range runs {
		t.Columns = append(t.Columns, Heads(r.Name)...)
	}
	for i, r := range runs {
		r.Name = ""
		for _, x := range tiles(r) {
			t.row(x.Label, "–")[i+1] = text(x.Value + " (" + x.Note + ")")
		}
	}
	s.Blocks = []Block{{Table: t}}
	return s
}
