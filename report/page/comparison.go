package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/chart"
)

func comparisons(runs []Run) Section {
	s := Section{ID: "comparison", Title: "Comparison with the control",
		Lead: "What changes between two servers on the same prompts. A change counts only if its whole interval lies on one side of zero. " +
			"Each row shows the control (hollow dot) and the candidate; the scale is the change in percent of the control. The thin bar is the interval. " +
			"The upright mark is the change that the plan tolerates or asks for. Right is always better."}
	for _, r := range runs {
		for _, c := range r.Comparisons {
			s.Blocks = append(s.Blocks, comparison(r, c)...)
		}
	}
	return s
}

func sides(r Run, c *compare.Comparison) string {
	if c.Control == "" {
		return r.title(c.Candidate)
	}
	return r.title(c.Candidate) + " against " + r.title(c.Control)
}

func how(c *compare.Comparison) string {
	switch {
	case c.Skipped != "":
		return "not compared"
	case c.SideBySide:
		return verdict.Count(c.Rounds, "rounds") + " side by side on swapped GPUs"
	case !c.Paired:
		return "against a record, so drift is not excluded"
	}
	return verdict.Count(c.Rounds, "rounds") + " in turns, restart " + string(c.Restart)
}

// mostCompared is how many levels of a comparison the page shows at first. The reader must unfold
// the others.
const mostCompared = 4

func comparison(r Run, c *compare.Comparison) []Block {
	out := []Block{
		{Heading: Line(fmt.Sprintf("compare %s: %s · %s", c.Name, sides(r, c), how(c)))},
		{Text: Line(cmp.Or(c.Skipped, c.Line)), Strong: true},
		{List: append(lines(c.Notes), outliers(r, c)...)},
	}
	decisions := &Table{Words: true, Caption: "Decisions", Columns: Heads("Workload", "Level", "Answer", "Why")}
	for i := range c.Decisions {
		d := &c.Decisions[i]
		decisions.Rows = append(decisions.Rows, Row(r.title(d.Workload), r.level(d.Workload, d.Level), answerWord(c, d), d.Why))
	}
	out = append(out, Block{Table: decisions})
	// Each workload and level has one chart.
	type key struct{ workload, level string }
	var order []key
	rows := map[key][]*compare.Change{}
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
		pair := []Figure{changesAt(r, k.workload, k.level, rows[k])}
		if f, ok := overlaid(r, c, k.workload, k.level); ok {
			pair = append(pair, f)
		}
		if i < mostCompared {
			figures = append(figures, pair...)
		} else {
			more = append(more, pair...)
		}
	}
	out = append(out, Block{Figures: figures, Pairs: true})
	if len(more) > 0 {
		title := "The other " + verdict.Count(len(order)-mostCompared, "levels")
		out = append(out, Block{Fold: &Fold{Title: title, Open: true, Blocks: []Block{{Figures: more, Pairs: true}}}})
	}
	differ := &Table{Words: true, Caption: "What differs between the two servers", Columns: Heads("Fact", "Control", "Candidate", "Declared as the change")}
	for _, d := range c.Differences {
		allowed := "no"
		if d.Allowed {
			allowed = "yes"
		}
		differ.Rows = append(differ.Rows, Row(d.Key, cmp.Or(d.Control, "–"), cmp.Or(d.Candidate, "–"), allowed))
	}
	return append(out, answersBeside(r, "The worst pairs of answers", r.AnswersOf(c.Name)).folded(), Block{Table: differ})
}

// outliers returns a line for each round that is far from all other rounds.
func outliers(r Run, c *compare.Comparison) []string {
	var out []string
	for i := range c.Changes {
		x := &c.Changes[i]
		for _, p := range x.Pairs {
			if p.Note != "" && len(out) < 20 {
				out = append(out, Line(fmt.Sprintf("round %d of %s at %s, %s: %s", p.Round+1, r.title(x.Workload), x.Level, changeName(x), p.Note)))
			}
		}
	}
	return out
}

func shift(x *compare.Change, n metric.Value) string {
	if !n.OK {
		return "–"
	}
	if math.IsInf(n.V, 0) {
		return map[bool]string{true: "+∞", false: "-∞"}[n.V > 0]
	}
	return compare.FormatChange(x.Unit(), n.V, x.Points)
}

func bounds(x *compare.Change) string {
	if !x.Low.OK && !x.High.OK {
		return "–"
	}
	return shift(x, x.Low) + " to " + shift(x, x.High)
}

func required(x *compare.Change) string {
	switch {
	case !x.Limit.OK:
		return "–"
	case x.Improve:
		return "improve " + shift(x, x.Limit)
	}
	return shift(x, x.Limit)
}

// changeVerdict returns a change's verdict: its outcome if the plan limits it, or else its direction.
// A change that is better, but not by as much as the plan asks for, fails and is not called worse.
func changeVerdict(x *compare.Change) Cell {
	st := x.Status()
	s := statuses[st]
	switch {
	case x.Outcome == verdict.Skipped && x.Why != "":
		return Cell{Text: "not applicable", Class: s[0], Sign: s[1]}
	case !x.Limit.OK && x.Direction == "better":
		return Cell{Text: "better", Class: Passed, Sign: "▲"}
	case !x.Limit.OK && x.Direction == "worse":
		return Cell{Text: "worse", Class: Worse, Sign: "▼"}
	case !x.Limit.OK:
		return Cell{Text: "no difference shown", Class: s[0], Sign: s[1]}
	}
	out := Cell{Text: s[2], Class: s[0], Sign: s[1]}
	if x.Improve && x.Direction != "worse" && (st == verdict.StatusFail || st == verdict.StatusWarning && x.Outcome == verdict.Fail) {
		out.Text += ": not improved enough"
	}
	return out
}

// changeColumns are the columns of every table of changes, but for those that say where.
var changeColumns = []Column{{"Metric", 0}, {"Control", 0}, {"Candidate", 0}, {"Change", 0}, {"Bounds", 1}, {"Limit", 2}, {"Could be certified", 4}, {"Better", 3}}

func changeCells(x *compare.Change) []Cell {
	return Row(changeName(x), x.Control.Format(x.Unit()), x.Candidate.Format(x.Unit()), shift(x, x.Change), bounds(x), required(x),
		shift(x, x.Certifiable), x.Metric.Better.String())
}

// changes returns the changes of all comparisons that matter: those that miss their limit, those of
// the capacity, those that decide a workload, and those that are certain. The worst come first.
func changes(r Run) *Table {
	t := &Table{Columns: slices.Concat(Heads("", "Where"), changeColumns[:6])}
	for _, c := range r.Comparisons {
		binding := c.Binding()
		var list []*compare.Change
		for j := range c.Changes {
			if x := &c.Changes[j]; x.Status() < verdict.StatusSkipped || x.OfCapacity || x.Direction != "" || slices.Contains(binding, x) {
				list = append(list, x)
			}
		}
		slices.SortStableFunc(list, func(a, b *compare.Change) int {
			first := func(x *compare.Change) bool { return x.OfCapacity || slices.Contains(binding, x) }
			return map[[2]bool]int{{true, false}: -1, {false, true}: 1}[[2]bool{first(a), first(b)}]
		})
		for _, x := range list {
			where := r.title(x.Workload) + " at " + r.level(x.Workload, x.Level)
			if len(r.Comparisons) > 1 {
				where = Line(c.Name) + ": " + where
			}
			t.Rows = append(t.Rows, slices.Concat([]Cell{changeVerdict(x), text(where)}, changeCells(x)[:6]))
		}
	}
	slices.SortStableFunc(t.Rows, func(a, b []Cell) int { return cmp.Compare(rank(a[0].Class), rank(b[0].Class)) })
	return t
}

// improvement returns the number n of a change, with a sign such that positive means an
// improvement.
func improvement(x *compare.Change, n metric.Value) float64 {
	v := bound(n)
	if x.Metric.Better == metric.LowerIsBetter {
		v = -v
	}
	return v
}

// changeMark returns the mark for a change. Only a change for the worse may be red.
func changeMark(x *compare.Change) chart.Mark {
	switch way := improvement(x, x.Change); {
	case x.Outcome == verdict.Fail && !(way > 0), !x.Limit.OK && x.Direction == "worse":
		return chart.Fail
	case x.Direction == "better", x.Outcome == verdict.Pass && x.Direction != "worse":
		return chart.Pass
	}
	return chart.Unsure
}

func changeLegend(rows []chart.Row) (out []Legend) {
	for _, l := range []struct {
		mark chart.Mark
		name string
	}{{chart.Pass, "better, or shown to be within the tolerance"}, {chart.Fail, "worse"}, {chart.Unsure, "worse but tolerated, or no difference shown"}} {
		if slices.ContainsFunc(rows, func(x chart.Row) bool { return x.Mark == l.mark }) {
			out = append(out, Legend{chart.Sign(l.mark), l.name})
		}
	}
	return out
}

func changeRow(x *compare.Change, name string) chart.Row {
	low, high := improvement(x, x.Low), improvement(x, x.High)
	if x.Metric.Better == metric.LowerIsBetter {
		low, high = high, low
	}
	return chart.Row{Name: name + " " + shift(x, x.Change), Detail: x.Control.Format(x.Unit()) + " → " + x.Candidate.Format(x.Unit()),
		Value: improvement(x, x.Change), Low: low, High: high, Limit: improvement(x, x.Limit), Mark: changeMark(x),
		Tip: []string{name + ", " + x.Metric.Better.String() + " is better", x.Control.Format(x.Unit()) + " → " + x.Candidate.Format(x.Unit()),
			shift(x, x.Change) + " (" + bounds(x) + ")"}}
}

func changeName(x *compare.Change) string { return Line(x.Title()) }

func changesAt(r Run, workload, level string, list []*compare.Change) Figure {
	title := r.title(workload) + " at " + r.level(workload, level)
	f := Figure{Title: title, Words: "Each row shows the change from the control to the candidate.",
		Table: &Table{Caption: "Changes of " + title, Columns: append(slices.Clone(changeColumns), Heads("Verdict")...)}}
	forest := chart.Forest{Name: "Changes of " + title, Cut: true, Sides: true,
		Format: func(v float64) string { return metric.Format(metric.Ratio, math.Abs(v)) }}
	for _, x := range list {
		f.Table.Rows = append(f.Table.Rows, append(changeCells(x), changeVerdict(x)))
		if !x.Points && x.Change.OK {
			forest.Rows = append(forest.Rows, changeRow(x, changeName(x)))
		}
	}
	f.Legend, f.Chart = changeLegend(forest.Rows), forest.SVG()
	return f
}

// overall returns a picture of a whole comparison: one metric, with a row for each workload.
func overall(r Run, c *compare.Comparison) (Figure, bool) {
	names := []string{"throughput", "e2e", "ttft", "speed"}
	for i := range c.Changes {
		if x := &c.Changes[i]; x.Status() < verdict.StatusWarning {
			names = append([]string{x.Metric.Name}, names...)
			break
		}
	}
	for _, name := range names {
		forest := chart.Forest{Cut: true, Sides: true, Format: func(v float64) string { return metric.Format(metric.Ratio, math.Abs(v)) }}
		seen := map[string]bool{}
		title := ""
		for i := range c.Changes {
			x := &c.Changes[i]
			row := r.title(x.Workload) + " at " + r.level(x.Workload, x.Level)
			if x.Metric.Name != name || x.Points || !x.Change.OK || seen[row] || len(forest.Rows) == 12 {
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

func overlaid(r Run, c *compare.Comparison, workload, level string) (Figure, bool) {
	both := track{r: r, workload: workload}
	var names []string
	for _, side := range []string{c.Control, c.Candidate} {
		for _, x := range r.CasesOf(workload, side) {
			if x.Name == level {
				both.cases, names = append(both.cases, x), append(names, r.title(side))
			}
		}
	}
	if len(names) != 2 {
		return Figure{}, false
	}
	both.name = r.title(workload) + " at " + r.level(workload, level)
	f, ok := spread(both, "e2e", names)
	f.Words, f.Aside = f.Words+" The chart shows the curves of both servers.", true
	return f, ok
}

// answerWord returns the decision on the candidate in a few words. A candidate that fails because it
// did not improve enough is not called worse.
func answerWord(c *compare.Comparison, d *compare.Decision) string {
	if d.Answer == "no" && !c.Loses(d) {
		return "not better"
	}
	return cmp.Or(map[string]string{"yes": "better", "no": "worse", "unknown": "no certain difference"}[d.Answer], Line(d.Answer))
}
