package page

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
)

// useCases returns a section for each use case. It shows what the use case is, its requirements,
// what was measured at each load, and the outcome.
func useCases(runs []Run) []Section {
	if len(runs) != 1 {
		return nil
	}
	r := runs[0]
	var out []Section
	for i := range r.Workloads {
		if w := &r.Workloads[i]; r.useCase(w) && len(out) < mostCases {
			out = append(out, useCase(r, w))
		}
	}
	return out
}

func useCase(r Run, w *report.Workload) Section {
	s := Section{ID: caseID(w, r), Title: r.title(w.Address), Lead: Capital(Line(size(w))) + ". Must hold: " + rules(w) + "."}
	if about := Line(w.Description); about != "" {
		s.Lead = strings.TrimSuffix(about, ".") + ". " + s.Lead
	}
	s.Blocks = []Block{{List: levelWords(r, w)}}
	for _, server := range w.Servers {
		s.Blocks = append(s.Blocks, Block{Result: outcomeOf(r, w, server)})
	}
	var tables []*Table
	for _, server := range w.Servers {
		if t := besideLimit(r, w, server); t != nil {
			tables = append(tables, t)
		}
	}
	s.Blocks = append(s.Blocks, Block{Figures: overLoad(r, w), Beside: tables})
	s.Blocks = append(s.Blocks, overTimeBlock(r, w)...)
	var more []Block
	for _, server := range w.Servers {
		if c := r.Capacity(w.Address, server); c != nil {
			more = append(more, Block{Heading: strings.TrimPrefix(r.serverSuffix(server), " ")},
				Block{List: append(margins(r, c), lines(r.Facts(c))...)}, Block{Table: probes(r, c)})
		}
	}
	for _, m := range matrices(r, w.Address) {
		more = append(more, Block{Table: m})
	}
	s.Blocks = append(s.Blocks, fold("How "+r.title(w.Address)+" was decided: each requirement and each probe", more...))
	return s.filled()
}

func levelWords(r Run, w *report.Workload) []string {
	var out []string
	for _, c := range r.CasesOf(w.Address, "") {
		if c.Description == "" {
			continue
		}
		if words := levelOf(c) + ": " + Line(c.Description); !slices.Contains(out, words) {
			out = append(out, words)
		}
	}
	return out
}

// outcomeOf returns the outcome of a use case (one workload on one server) in one sentence. It adds
// the capacity if there was a search.
func outcomeOf(r Run, w *report.Workload, server string) *Result {
	class, said := carries(r, w, server)
	l := &Result{Class: class, Sentence: Capital(said)}
	if len(r.Run.Servers) > 1 {
		l.Sentence = r.title(server) + ": " + said
	}
	c := r.Capacity(w.Address, server)
	if c == nil {
		return l
	}
	l.Value, l.Unit = c.Limit(), kinds[c.Over]+disputed(r, c)
	if people := w.People(c.Pass); people != "" {
		l.Unit += ", " + people
	}
	if c.Require > 0 {
		l.Facts = append(l.Facts, "required by the plan: "+c.Named(c.Require))
	}
	if c.Pass > 0 {
		l.Facts = append(l.Facts, trust(r, c))
	}
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		if above := r.Above(v); above == c {
			l.Facts = append(l.Facts, failed(r, v)+" failed, but "+Line(r.Joining(v, c)))
		}
	}
	return l
}

func trust(r Run, c *metric.Capacity) string {
	switch {
	case r.Plan.Decide == "estimate" && !c.Confirmed:
		return "by point estimates, not confirmed on fresh requests"
	case r.Plan.Decide == "estimate":
		return "by point estimates, and again by point estimates on fresh requests"
	case c.OfRate():
		return "certified on fresh requests"
	case !c.Confirmed:
		return "certified once, not confirmed on fresh requests"
	}
	return "certified, and confirmed on fresh requests"
}

// overLoad draws charts of how metrics of a use case depend on the load. Metrics with thresholds
// come first. If there are fewer than two charts, other metrics follow.
func overLoad(r Run, w *report.Workload) []Figure {
	const most = 2
	var out []Figure
	var drawn []string
	for _, c := range r.Run.Capacities {
		if c.Workload != w.Address || len(w.Servers) > 1 {
			continue
		}
		for _, t := range searchedBounds(r, c) {
			if f, ok := search(r, c, t); ok && len(out) < most && !slices.Contains(drawn, t.Metric.Name) {
				out, drawn = append(out, f), append(drawn, t.Metric.Name)
			}
		}
	}
	asked := []verdict.Threshold{}
	for _, b := range w.Bounds {
		asked = append(asked, b.Threshold)
	}
	asked = append(asked, unlimited("ttft"), unlimited("speed"))
	for _, t := range asked {
		same := t.Metric.Name
		if same == "request_speed" {
			same = "speed"
		}
		if same == "success" || len(out) >= most || slices.Contains(drawn, t.Metric.Name) || slices.Contains(drawn, same) {
			continue
		}
		for _, kind := range everyKind {
			cv := curveOf(t.Metric.Name, t.Stat.String(), kind)
			cv.keep = func(c *report.Case) bool { return c.Workload == w.Address }
			for _, f := range cv.figures([]Run{r}) {
				f.Title += ", " + r.title(w.Address)
				out = append(out, f)
				drawn = append(drawn, t.Metric.Name, same)
			}
		}
	}
	return out[:min(len(out), most+1)]
}

func unlimited(name string) verdict.Threshold {
	return verdict.Threshold{Metric: metric.MustLookup(name), Stat: metric.Stat{Kind: metric.Mean}}
}

func curveOf(name, stat string, kind metric.LoadKind) curve {
	def, _ := metric.Lookup(name)
	cv := curve{kind: kind, name: name, title: Line(strings.TrimSpace(cmp.Or(def.Title, name) + " " + stat)),
		axis: strings.TrimSpace(stat + " " + def.Title)}
	if stat == "" || stat == "mean" {
		cv.stats, cv.band = []string{stat}, stat == "mean"
	} else {
		cv.stats, cv.of = []string{stat}, func(c *report.Case) metric.Value { return c.Summary(name).Stat(stat) }
	}
	switch {
	case name == "ttft":
		cv.zones = ttftZones
	case name == "speed" || name == "request_speed":
		cv.zones = speedZones
	}
	switch def.Better {
	case metric.HigherIsBetter:
		cv.words = "Higher is better."
	case metric.LowerIsBetter:
		cv.words = "Lower is better."
	}
	if cv.band {
		cv.words += " The shaded band reaches from p5 to p95."
	}
	return cv
}

// besideLimit returns a table of three levels: the smallest load, the capacity, and a larger load.
// Without a capacity search the table shows up to three measured levels. It is nil if too few
// levels were measured.
func besideLimit(r Run, w *report.Workload, server string) *Table {
	cases := slices.DeleteFunc(r.CasesOf(w.Address, server), func(x *report.Case) bool { return x.Completed == 0 })
	c := r.Capacity(w.Address, server)
	if c == nil {
		cases = slices.DeleteFunc(cases, func(x *report.Case) bool { return x.Probe != nil })
		if len(cases) == 0 {
			return nil
		}
		var heads []string
		shown := evenly(cases, 3)
		for _, x := range shown {
			heads = append(heads, Capital(levelOf(x)))
		}
		return columns(r, w, server, shown, heads)
	}
	return aroundLimit(r, w, c, cases)
}

func aroundLimit(r Run, w *report.Workload, c *metric.Capacity, cases []*report.Case) *Table {
	byN, ns := byLoad(c, cases)
	if len(ns) < 2 {
		return nil
	}
	var shown []*report.Case
	var heads []string
	last := -1
	for _, n := range []int{ns[0], c.Pass, cmp.Or(c.Fail, ns[len(ns)-1])} {
		if byN[n] == nil || n <= last {
			continue
		}
		head := c.Amount(n)
		switch n {
		case c.Pass:
			head += ", the limit"
			switch {
			case c.Kind == metric.CapacityAtLeast:
				head = c.Amount(n) + ", the most tried"
			case c.OfRate() && c.Fail == 0:
				head = c.Amount(n) + ", certified"
			}
		case c.Fail:
			head += ", too many"
		case 1:
			if c.Step == 0 {
				head = "One request"
			}
		}
		shown, heads, last = append(shown, byN[n]), append(heads, head), n
	}
	return columns(r, w, c.Server, shown, heads)
}

// byLoad returns the cases of a capacity search by load, and the loads in ascending order. If
// several cases have the same load, it returns the one with the most requests.
func byLoad(c *metric.Capacity, cases []*report.Case) (byN map[int]*report.Case, ns []int) {
	byN = map[int]*report.Case{}
	for _, x := range cases {
		n := x.N
		switch {
		case c.Over == "speedup" && x.Speedup > 0:
			n = int(math.Round(x.Speedup / c.Load(1)))
		case x.Kind != c.Over:
			continue
		case c.OfRate():
			n = int(math.Round(x.Rate / c.Load(1)))
		}
		if byN[n] == nil {
			ns = append(ns, n)
		}
		if old := byN[n]; old == nil || x.Completed > old.Completed {
			byN[n] = x
		}
	}
	slices.Sort(ns)
	return byN, ns
}

func columns(r Run, w *report.Workload, server string, shown []*report.Case, names []string) *Table {
	unit := kinds[shown[0].Kind]
	if shown[0].Speedup > 0 {
		unit = kinds["speedup"]
	}
	t := &Table{Caption: "What users see, by " + unit + r.serverSuffix(server), Columns: Heads(append([]string{Capital(unit)}, names...)...)}
	for _, f := range []struct{ name, stat string }{{"ttft", "mean"}, {"ttft", "p95"}, {"speed", "mean"}, {"e2e", "mean"}, {"itl", "mean"}, {"success", "rate"}, {"throughput", ""}} {
		def, _ := metric.Lookup(f.name)
		row := []Cell{text(strings.TrimSpace(def.Title + " " + strings.TrimSuffix(f.stat, "rate")))}
		some := false
		for _, c := range shown {
			v := c.Summary(f.name).Stat(f.stat)
			some = some || v.OK
			x := text(v.Format(def.Unit))
			for _, b := range w.Bounds {
				if th := b.Threshold; th.Metric.Name == f.name && th.Stat.String() == f.stat && th.Limit.OK && v.OK &&
					margin(th.Op, v.V, th.Limit.V) < 0 {
					x.Class, x.Text = "fail", "✗ "+strings.TrimPrefix(x.Text, "✗ ")
				}
			}
			row = append(row, x)
		}
		if some {
			t.Rows = append(t.Rows, row)
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	if slices.ContainsFunc(shown, func(c *report.Case) bool { return rho(c) != "" }) {
		row := []Cell{text("Share of the largest sustainable rate, ρ")}
		for _, c := range shown {
			row = append(row, text(cmp.Or(rho(c), "–")))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
