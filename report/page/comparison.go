package page

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/chart"
)

// comparisons returns the section that shows each candidate beside its control.
func comparisons(runs []Run) (Section, bool) {
	s := Section{ID: "comparison", Title: "Comparison with the control",
		Lead: "What changes between two servers on the same prompts. A change counts only if its whole interval lies on one side of zero. Each row shows the control (hollow dot) and the candidate; the scale is the change in percent of the control. The thin bar is the interval. The upright mark is the change that the plan tolerates or asks for. Right is always better."}
	for _, r := range runs {
		for i := range r.Comparisons {
			c := &r.Comparisons[i]
			s.Blocks = append(s.Blocks, Block{Sub: r.title(c.Candidate) + " against " + r.title(c.Control)})
			said := []string{}
			for _, x := range append([]string{c.Skipped}, c.Notes...) {
				if x = line(x); x != "" {
					said = append(said, x)
				}
			}
			if !c.Paired && c.Skipped == "" {
				said = append(said, "unpaired: the control was recorded at another time, so drift is not excluded")
			}
			if len(said) > 0 {
				s.Blocks = append(s.Blocks, Block{List: said})
			}
			s.Blocks = append(s.Blocks, comparison(r, c)...)
		}
	}
	return s, len(s.Blocks) > 0
}

// mostCompared is how many levels of a comparison the page shows at first. The reader must unfold
// the others.
const mostCompared = 4

func comparison(r Run, c *report.Comparison) []Block {
	var out []Block
	decisions := &Table{Words: true, Caption: "Decisions", Head: []string{"Workload", "Level", "Answer", "Why"}}
	for _, d := range c.Decisions {
		decisions.Rows = append(decisions.Rows, []Cell{text(r.title(d.Workload)), text(r.level(d.Workload, d.Level)), text(answerWord(&d)), text(line(d.Why))})
	}
	if len(decisions.Rows) > 0 {
		out = append(out, Block{Table: decisions})
	}
	// Each workload and level has one chart.
	type key struct{ workload, level string }
	var order []key
	rows := map[key][]*report.Change{}
	for i := range c.Changes {
		x := &c.Changes[i]
		k := key{x.Workload, x.Level}
		if rows[k] == nil {
			order = append(order, k)
		}
		rows[k] = append(rows[k], x)
	}
	var figures, more []Figure
	for i, k := range order {
		pair := []Figure{changes(r, k.workload, k.level, rows[k])}
		if f, ok := overlaid(r, c, k.workload, k.level); ok {
			pair = append(pair, f)
		}
		if i < mostCompared {
			figures = append(figures, pair...)
		} else {
			more = append(more, pair...)
		}
	}
	if len(figures) > 0 {
		out = append(out, Block{Figures: figures, Pairs: true})
	}
	if len(more) > 0 {
		out = append(out, Block{Fold: &Fold{"The other " + plural(len(order)-mostCompared, "level"), []Block{{Figures: more, Pairs: true}}}})
	}
	if t := sideBySide(r, "The worst pairs of answers", c.Answers); t != nil {
		out = append(out, Block{Table: t})
	}
	differ := &Table{Words: true, Caption: "What differs between the two servers", Head: []string{"Fact", "Control", "Candidate", "Declared as the change"}}
	for _, d := range c.Differences {
		allowed := "no"
		if d.Allowed {
			allowed = "yes"
		}
		differ.Rows = append(differ.Rows, []Cell{text(line(d.Key)), text(cmp.Or(line(d.Control), "–")), text(cmp.Or(line(d.Candidate), "–")), text(allowed)})
	}
	if len(differ.Rows) > 0 {
		out = append(out, Block{Table: differ})
	}
	return out
}

// signed returns a change as text with a sign, such as "+3%".
func signed(n report.Number, points bool, unit string) string {
	if !n.OK {
		return "–"
	}
	sign := ""
	if n.V > 0 {
		sign = "+"
	}
	if points {
		return sign + n.Format(unit)
	}
	return sign + n.Format("ratio")
}

// improvement returns the number n of a change, with a sign such that positive means an
// improvement.
func improvement(x *report.Change, n report.Number) float64 {
	v := bound(n)
	if x.Better == "lower" {
		v = -v
	}
	return v
}

// changeMark returns the mark for a change. Only a change for the worse may be red.
func changeMark(x *report.Change) chart.Mark {
	switch way := improvement(x, x.Change); {
	case x.Outcome == report.Fail && !(way > 0), !x.Limit.OK && x.Direction == "worse":
		return chart.Fail
	case x.Direction == "better", x.Outcome == report.Pass && x.Direction != "worse":
		return chart.Pass
	}
	return chart.Unsure
}

// changeLegend returns a legend for those marks that occur in the rows.
func changeLegend(rows []chart.Change) (out []Legend) {
	for _, l := range []struct {
		mark chart.Mark
		name string
	}{{chart.Pass, "better, or shown to be within the tolerance"}, {chart.Fail, "worse"}, {chart.Unsure, "worse but tolerated, or no difference shown"}} {
		if slices.ContainsFunc(rows, func(x chart.Change) bool { return x.Mark == l.mark }) {
			out = append(out, Legend{chart.Sign(l.mark), l.name})
		}
	}
	return out
}

// changeRow returns a change as a row of a chart, with the given name.
func changeRow(x *report.Change, name string) chart.Change {
	low, high := improvement(x, x.Low), improvement(x, x.High)
	if x.Better == "lower" {
		low, high = high, low
	}
	return chart.Change{Name: name + " " + signed(x.Change, x.Points, x.Unit), Detail: x.Control.Format(x.Unit) + " → " + x.Candidate.Format(x.Unit), Value: improvement(x, x.Change), Low: low, High: high, Limit: improvement(x, x.Limit), Mark: changeMark(x),
		Tip: []string{name + ", " + x.Better + " is better", x.Control.Format(x.Unit) + " → " + x.Candidate.Format(x.Unit), signed(x.Change, false, "") + " (" + signed(x.Low, false, "") + " to " + signed(x.High, false, "") + ")"}}
}

func changeName(x *report.Change) string {
	def, _ := metric.Lookup(x.Metric)
	return strings.TrimSpace(cmp.Or(def.Title, line(x.Metric)) + " " + line(x.Stat))
}

func changes(r Run, workload, level string, list []*report.Change) Figure {
	title := r.title(workload) + " at " + line(level)
	f := Figure{Title: title, Words: "Each row shows the change from the control to the candidate.",
		Table: &Table{Caption: "Changes of " + title, Head: []string{"Metric", "Better", "Control", "Candidate", "Change", "From", "To", "Tolerated", "Smallest that could be certified", "Verdict"}}}
	forest := chart.Forest{Name: "Changes of " + title, Cut: true, Sides: true, Format: func(v float64) string { return metric.Format(metric.Ratio, math.Abs(v)) }}
	for _, x := range list {
		name := changeName(x)
		f.Table.Rows = append(f.Table.Rows, []Cell{text(name), text(x.Better), text(x.Control.Format(x.Unit)), text(x.Candidate.Format(x.Unit)),
			text(signed(x.Change, x.Points, x.Unit)), text(signed(x.Low, x.Points, x.Unit)), text(signed(x.High, x.Points, x.Unit)),
			text(signed(x.Limit, x.Points, x.Unit)), text(signed(x.Certifiable, x.Points, x.Unit)), {Text: cmp.Or(line(x.Verdict()), "no difference shown"), Class: changeClass(x)}})
		if !x.Points && x.Change.OK {
			forest.Rows = append(forest.Rows, changeRow(x, name))
		}
	}
	f.Legend, f.Chart = changeLegend(forest.Rows), forest.SVG()
	return f
}

// changeClass returns the CSS class for the verdict on a change.
func changeClass(x *report.Change) string {
	if x.Outcome == report.Error {
		return "error"
	}
	return map[chart.Mark]string{chart.Pass: "pass", chart.Fail: "fail", chart.Unsure: "unsure"}[changeMark(x)]
}

// overall returns a picture of a whole comparison: one metric, with a row for each workload.
func overall(r Run, c *report.Comparison) (Figure, bool) {
	for _, name := range []string{"throughput", "e2e", "ttft", "speed"} {
		forest := chart.Forest{Cut: true, Sides: true, Format: func(v float64) string { return metric.Format(metric.Ratio, math.Abs(v)) }}
		seen := map[string]bool{}
		title := ""
		for i := range c.Changes {
			x := &c.Changes[i]
			row := r.title(x.Workload) + " at " + r.level(x.Workload, x.Level)
			if x.Metric != name || x.Points || !x.Change.OK || seen[row] || len(forest.Rows) == 12 {
				continue
			}
			seen[row], title = true, cmp.Or(title, changeName(x))
			forest.Rows = append(forest.Rows, changeRow(x, row))
		}
		if len(forest.Rows) == 0 {
			continue
		}
		forest.Name = title + " of " + r.title(c.Candidate) + " against " + r.title(c.Control)
		f := Figure{Title: forest.Name, Words: "Each row shows the control (hollow dot), the candidate, and the interval of the change. Right is better.", Legend: changeLegend(forest.Rows), Chart: forest.SVG()}
		return f, f.Chart != ""
	}
	return Figure{}, false
}

// overlaid draws the distributions of control and candidate in one picture.
func overlaid(r Run, c *report.Comparison, workload, level string) (Figure, bool) {
	both := track{r: r, workload: workload}
	var names []string
	for _, side := range []string{c.Control, c.Candidate} {
		for i := range r.Cases {
			if x := &r.Cases[i]; x.Server == side && x.Workload == workload && x.Level == level {
				both.cases, names = append(both.cases, x), append(names, r.title(side))
			}
		}
	}
	if len(names) != 2 {
		return Figure{}, false
	}
	both.name = r.title(workload) + " at " + r.level(workload, level)
	f, ok := spread(both, "e2e", both.cases[0].Kind, names)
	f.Words += " The chart shows the curves of both servers."
	return f, ok
}
