package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
)

// mostProblems is the number of problems that the page shows. It folds the rest.
const mostProblems = 6

// ended shows how each of several runs ended: its outcome, its answers, and what did not pass.
func ended(runs []Run) Section {
	s := Section{ID: "outcomes", Title: "How the runs ended", Lead: "Each run has its own verdict. The curves below are drawn together."}
	for _, r := range runs {
		_, sentence := meaning(r.Document)
		first, more, warnings := attention(r)
		s.Blocks = append(s.Blocks,
			Block{Heading: r.Name + ": " + Line(r.Word())}, Block{Text: Line(r.Headline())}, Block{Text: sentence},
			Block{List: answers(r, 12), Strong: true}, Block{Checks: first})
		s.Blocks = append(s.Blocks, folded(more, "more checks", " that did not pass"), folded(warnings, "warnings", ""))
	}
	return s
}

// folded returns checks that stay hidden.
func folded(list []Check, what, rest string) Block {
	return fold(verdict.Count(len(list), what)+rest, Block{Checks: list})
}

func checks(r Run, of func(*verdict.Verdict) bool) []Check {
	var out []Check
	for i := range r.Verdicts {
		if v := &r.Verdicts[i]; of(v) {
			out = append(out, check(r, v))
		}
	}
	return out
}

// underResult returns the check of a capacity without what stands in the result above it.
func underResult(r Run, v *verdict.Verdict) Check {
	c := check(r, v)
	limit := r.Capacity(v.Workload, v.Server)
	if v.Kind != "capacity" || limit == nil || !report.States(v, limit) {
		return c
	}
	c.Message = ""
	if limit.Require > 0 {
		c.Message = "the plan requires " + limit.Named(limit.Require)
	}
	if v.Outcome == verdict.Error {
		c.Message = strings.TrimSuffix("no load certainly passed or failed: "+Line(limit.Reason)+"; "+c.Message, "; ")
	}
	if v.Outcome == verdict.Inconclusive {
		c.Message = strings.TrimPrefix(c.Message+": "+Line(v.Needs), ": ")
	}
	facts := lines(r.Facts(limit))
	c.Notes, c.Cautions = slices.DeleteFunc(c.Notes, func(n string) bool { return slices.Contains(facts, n) }), nil
	return c
}

// unmet returns the checks that did not pass, the worst first. It leaves out checks that the plan or
// the budget skipped.
func unmet(r Run) []Check {
	list := checks(r, func(v *verdict.Verdict) bool { return v.Status() != verdict.StatusPass && v.Outcome != verdict.Skipped })
	slices.SortStableFunc(list, func(a, b Check) int { return cmp.Compare(a.Status, b.Status) })
	return list
}

// together makes one check of those that were not measured for the same reason.
func together(list []Check) []Check {
	var out []Check
	others := map[int]int{}
	for _, c := range list {
		i := slices.IndexFunc(out, func(x Check) bool {
			return c.Status == verdict.StatusError && x.Status == c.Status && x.Kind == c.Kind && x.Message == c.Message
		})
		if i < 0 {
			out = append(out, c)
			continue
		}
		others[i]++
	}
	for i, n := range others {
		out[i].Name += fmt.Sprintf(" and %d more for the same reason", n)
	}
	return out
}

// attention divides the checks that did not pass into those to show, those to fold, and warnings.
func attention(r Run) (first, more, warnings []Check) {
	list := unmet(r)
	at := slices.IndexFunc(list, func(c Check) bool { return c.Status >= verdict.StatusWarning })
	if at < 0 {
		at = len(list)
	}
	first, more, warnings = list[:min(at, mostProblems)], list[min(at, mostProblems):at], list[at:]
	const most = 400
	return first, more[:min(len(more), most)], warnings[:min(len(warnings), most)]
}

// problems returns a section with the verdicts that did not pass. Warnings and passed checks are
// folded below them.
func problems(r Run) Section {
	s := Section{ID: "problems", Title: "What did not pass", Lead: "The most serious problem comes first. Each problem names its line in the plan."}
	first, more, warnings := attention(r)
	if len(first) == 0 {
		s.Title, s.Lead = "What was checked", ""
	}
	t := passed(r)
	s.Blocks = []Block{{Checks: first}, folded(more, "more checks", " that did not pass"), folded(warnings, "warnings", ""),
		fold(verdict.Count(len(t.Rows), "checks")+" passed", Block{Table: t})}
	return s
}

// passed returns a table of the checks that passed. A check that has the same result at several
// levels gets one row.
func passed(r Run) *Table {
	t := &Table{Words: true, Caption: "What passed", Columns: Heads("Check", "Where", "Value", "To spare")}
	rows := map[[4]string]int{}
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		if v.Status() != verdict.StatusPass {
			continue
		}
		value := "–"
		if v.Threshold != nil && v.Value.OK {
			value = v.Value.Format(v.Threshold.Unit()) + ", must be " + Line(v.Threshold.Text)
		}
		name, level := v.Check(), r.level(v.Workload, v.Level)
		key := [4]string{name, r.title(cmp.Or(v.Workload, v.Server)) + r.serverSuffix(v.Server), value,
			cmp.Or(v.Spare(), "–")}
		if at, ok := rows[key]; ok && level != "" {
			t.Rows[at][0].Text += ", " + level
			continue
		}
		rows[key] = len(t.Rows)
		if level != "" {
			name += " at " + level
		}
		t.Rows = append(t.Rows, Row(name, key[1], value, key[3]))
	}
	t.cut(200)
	return t
}

func meaning(d *report.Document) (class, sentence string) {
	switch {
	case d.ExitCode == 130:
		return "error", "The run was interrupted, so it decides nothing. The measurements until then are below."
	case d.Outcome == verdict.Pass && d.ExitCode == 0 && d.Partial:
		return "pass", "Every requirement that was checked was met. Parts of the plan were left out on request, so this is not a verdict on the whole plan."
	case d.Outcome == verdict.Pass && d.ExitCode == 0 && d.Tally().Required == 0 && d.Uncompared() != "":
		return "pass", "No requirement was judged, so this report shows measurements without a verdict on them."
	case d.Outcome == verdict.Pass && d.ExitCode == 0 && d.Tally().Required == 0:
		return "pass", "The plan requires nothing, so this report shows measurements without a verdict on them."
	case d.Outcome == verdict.Pass && d.ExitCode == 0:
		return "pass", "Every requirement of the plan was met" + confidence(d) + "."
	case d.Outcome == verdict.Fail:
		return "fail", "At least one requirement was not met" + confidence(d) + ". What failed is listed first."
	case d.Outcome == verdict.Inconclusive:
		return "unsure", "The measurements do not decide every requirement" + confidence(d) + "."
	}
	return "error", "Something could not be measured, so there is no verdict on it. A missing measurement never passes."
}

func unmetWords(r Run) string {
	if r.Outcome != verdict.Fail {
		return ""
	}
	t := r.Tally()
	var named []string
	for i := range r.Verdicts {
		if v := &r.Verdicts[i]; v.Status() == verdict.StatusFail && v.Gates() && len(named) < 2 {
			named = append(named, failed(r, v))
		}
	}
	s := fmt.Sprintf("%d of %s failed%s", t.Failed, verdict.Count(t.Required, "requirements"), confidence(r.Document))
	if len(named) > 0 {
		s += ": " + strings.Join(named, "; ")
	}
	if left := t.Failed - len(named); left > 0 && len(named) > 0 {
		s += fmt.Sprintf("; and %d more", left)
	}
	return s + "."
}

func failed(r Run, v *verdict.Verdict) string {
	name := Line(v.Name)
	if th := v.Threshold; th != nil {
		name = Line(th.Title())
		if v.Value.OK && th.Limit.OK && !math.IsInf(v.Value.V, 0) {
			value, limit := metric.FormatPair(th.Unit(), v.Value.V, th.Limit.V)
			name += fmt.Sprintf(" %s (allowed %s %s)", value, relation(th.Op), limit)
		}
	}
	if v.Workload != "" {
		name += " in " + r.title(v.Workload)
	}
	if v.Level != "" {
		name += " at " + r.level(v.Workload, v.Level)
	}
	return name + r.serverSuffix(v.Server)
}

func confidence(d *report.Document) string {
	if d.Plan.Decide == "estimate" {
		return ", by point estimates, which certify nothing"
	}
	if d.Plan.Confidence == 0 {
		return ""
	}
	return " at " + metric.Format(metric.Ratio, d.Plan.Confidence) + " confidence"
}

func check(r Run, v *verdict.Verdict) Check {
	s := statuses[v.Status()]
	c := Check{
		Status: v.Status(), Kind: v.Kind, Class: s[0], Sign: s[1], Word: s[2],
		Name: Line(v.Name), Title: checkName(r, v), Message: Line(v.Explain()), Short: inShort(v),
		Change: v.Kind == "compare" && v.Workload != "", Skipped: v.Outcome == verdict.Skipped, Quoted: len(v.NotesOf(verdict.Quote)) > 0,
	}
	if v.Workload != "" {
		c.Where = r.title(v.Workload) + r.serverSuffix(v.Server)
	} else {
		c.Where = r.title(v.Server)
	}
	c.Notes = lines(v.NotesOf()[:min(len(v.Notes), 6)])
	c.Cautions = c.Notes
	if v.Kind == "sla" {
		c.Cautions = lines(v.NotesOf(verdict.Caution))
	}
	if v.File != "" {
		c.Place = Line(v.File)
		if v.Line > 0 {
			c.Place = fmt.Sprintf("%s:%d", c.Place, v.Line)
		}
		c.Link = anchor(r, v.File, v.Line)
	}
	if t := v.Threshold; t != nil {
		c.Source = Line(fmt.Sprintf("%s = %q", t.Metric.Name, t.Text))
	}
	return c
}

// inShort returns the message of a threshold in fewer and fewer words: without the name of the
// metric, then only value and limit with the number of requests, then without that number. It
// returns nil if the verdict is not on a threshold.
func inShort(v *verdict.Verdict) []string {
	th := v.Threshold
	if th == nil {
		return nil
	}
	out := []string{Line(strings.TrimPrefix(v.Explain(), th.Label()+" "))}
	if !v.Value.OK || !th.Limit.OK || th.Op == "" {
		return out
	}
	value, limit := metric.FormatPair(th.Unit(), v.Value.V, th.Limit.V)
	if th.Metric.Scope == metric.Counted && th.Stat.Kind != metric.Mean {
		value = "~" + value // within a bucket
	}
	short := fmt.Sprintf("%s %s %s", value, th.Op, limit)
	if spare := v.Spare(); spare != "" {
		short += "; " + spare + " to spare"
	}
	return append(out, fmt.Sprintf("%s, n = %d", short, v.N), short)
}

// checkName returns a readable name of a verdict. For a threshold it is the name of the metric, its
// statistic and the level.
func checkName(r Run, v *verdict.Verdict) string {
	switch {
	case v.Threshold == nil:
		return Line(v.Name)
	case v.Threshold.AtCapacity || v.Level == "":
		return checkLabel(v)
	}
	return checkLabel(v) + " at " + Line(r.level(v.Workload, v.Level))
}

// checkLabel names a check without its level.
func checkLabel(v *verdict.Verdict) string {
	switch {
	case v.Threshold == nil:
		return Line(v.Check())
	case v.Threshold.AtCapacity:
		return Line(v.Threshold.Title() + " at capacity")
	}
	return Line(v.Threshold.Title())
}

// mostColumns is the largest number of levels in a table. Nobody reads a wider table, and the
// charts show all levels.
const mostColumns = 10

// requirements returns tables that show which thresholds hold at which level.
func requirements(runs []Run) Section {
	s := Section{ID: "requirements", Title: "Requirements at a glance", Lead: "What must hold, what was measured, and whether it held."}
	for _, r := range runs {
		for _, t := range matrices(r, "") {
			t.Caption += " · " + r.Name
			s.Blocks = append(s.Blocks, Block{Table: t})
		}
	}
	return s
}

// matrices returns a table for each server of a workload. It shows which thresholds hold at which
// level. workload "" means all workloads.
func matrices(r Run, workload string) []*Table {
	type key struct{ server, workload string }
	var order []key
	list := map[key][]*verdict.Verdict{}
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		if v.Threshold == nil || workload != "" && v.Workload != workload {
			continue
		}
		k := key{v.Server, v.Workload}
		if list[k] == nil {
			order = append(order, k)
		}
		list[k] = append(list[k], v)
	}
	var out []*Table
	for _, k := range order {
		if t := matrix(r, list[k]); len(t.Columns)-1 <= mostColumns && len(out) < 12 {
			t.Caption = "Requirements of " + r.title(k.workload) + r.serverSuffix(k.server)
			out = append(out, t)
		}
	}
	return out
}

func matrix(r Run, list []*verdict.Verdict) *Table {
	t := &Table{Columns: Heads("Must hold")}
	var levels []string
	for _, v := range list {
		if !slices.Contains(levels, v.Level) {
			levels, t.Columns = append(levels, v.Level), append(t.Columns, Heads("At "+r.level(v.Workload, v.Level))...)
		}
	}
	for _, v := range list {
		name := v.Threshold.Metric.Title + " " + Line(v.Threshold.Text)
		if v.Severity == verdict.SeverityWarn {
			name += " (warns)"
		}
		x := sign(v.Status())
		if v.Value.OK {
			x.Text = Line(v.Value.Format(v.Threshold.Unit()))
		}
		t.row(Line(name), "")[1+slices.Index(levels, v.Level)] = x
	}
	return t
}
