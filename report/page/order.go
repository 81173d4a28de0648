package page

import (
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
	clean "github.com/tokgate/tokgate/report/text"
)

// build makes the sections that have data, in order.
func build(runs []Run, list ...func([]Run) Section) []Section {
	var out []Section
	for _, of := range list {
		if s := of(runs).filled(); len(s.Blocks) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// ofOne makes a section that only a page with one run has, and ofSeveral one of several runs.
func ofOne(of func(Run) Section) func([]Run) Section {
	return func(runs []Run) (s Section) {
		if len(runs) == 1 {
			s = of(runs[0])
		}
		return s
	}
}

func ofSeveral(of func([]Run) Section) func([]Run) Section {
	return func(runs []Run) (s Section) {
		if len(runs) > 1 {
			s = of(runs)
		}
		return s
	}
}

// Terminal returns the sections of a terminal: the servers, each comparison, each workload with its
// levels and its checks, and what belongs to none of them. The reader sees the end first.
func Terminal(d *report.Document) []Section {
	runs := named([]*report.Document{d})
	out := append(serversOf(runs[0]), build(runs, comparisons)...)
	out = append(out, workloads(runs[0], true)...)
	return append(out, build(runs, otherChecks, strength, consistency, cost)...)
}

// mostBrief is the largest number of checks in the short form of the terminal.
const mostBrief = 12

// Summary returns the short form of the terminal: a line for each comparison and workload, and what
// did not pass.
func Summary(d *report.Document) []Section {
	r := named([]*report.Document{d})[0]
	out := []Section{{Blocks: []Block{{List: compared(r), Strong: true}, overview(r)}}}
	if list := together(unmet(r)); len(list) > 0 {
		out = append(out, Select([]Section{{Blocks: []Block{{Checks: list}}}}, mostBrief)...)
	}
	return out
}

// Job returns the sections of a job's summary. The first are what everybody must see; they may be
// cut. The others are added as far as they fit.
func Job(d *report.Document) (first, more []Section) {
	runs := named([]*report.Document{d})
	r := runs[0]
	first = []Section{{Blocks: []Block{{List: answers(r, 3), Strong: true}, {Table: changes(r)}, overview(r), {Checks: unmet(r)}}}}
	more = build(runs, strength, consistency, cost, comparisons)
	more = append(more, workloads(r, false)...)
	return first, append(more, build(runs, passedSection, environment, definitions)...)
}

// Comment returns the sections of a comment on a pull request.
func Comment(d *report.Document) []Section {
	r := named([]*report.Document{d})[0]
	unmet := slices.DeleteFunc(together(unmet(r)), func(c Check) bool { return c.Change && c.Status == verdict.StatusFail && !c.Quoted })
	return []Section{{Blocks: []Block{{List: answers(r, 8), Strong: true}, {Table: changes(r)}, {Checks: unmet}, {Table: met(r)}}}}
}

func serversOf(r Run) []Section {
	var out []Section
	for _, s := range r.Run.Servers {
		var facts []string
		for _, key := range s.Fingerprint.Keys() {
			if fact, _ := metric.FactOf(key); !fact.Detail || s.Fingerprint[key] == metric.Unknown {
				facts = append(facts, Line(key+" "+s.Fingerprint[key]))
			}
		}
		blocks := []Block{{Text: strings.Join(append([]string{"server " + r.title(s.Address)}, facts...), " · ")}}
		list := checks(r, func(v *verdict.Verdict) bool { return v.Kind == "server" && v.Server == s.Address })
		blocks = append(blocks, Block{Checks: list})
		failed := slices.ContainsFunc(list, func(c Check) bool { return c.Status == verdict.StatusError })
		if s.Error != "" && !failed {
			blocks = append(blocks, Block{Text: "error: " + Line(s.Error)})
		}
		if s.Log != "" {
			blocks = append(blocks, Block{Log: &Log{"End of the log of " + r.title(s.Address), clean.Block(clean.Tail(s.Log, 8000))}})
		}
		out = append(out, Section{Blocks: blocks})
	}
	return out
}

// workloads returns a section for each workload on each server: its levels, its capacity and, if
// checked is set, its checks.
func workloads(r Run, checked bool) []Section {
	var out []Section
	for _, g := range report.Groups(r.Document) {
		s := Section{Title: r.title(g.Workload) + " on " + r.title(g.Server)}
		s.Blocks = append(levelTables(g.Cases), Block{List: remarks(r, g.Cases)})
		for _, c := range g.Capacities {
			s.Blocks = append(s.Blocks, Block{Result: result(r, c)}, Block{Table: probes(r, c)})
		}
		var list []Check
		for i := range r.Verdicts {
			if v := &r.Verdicts[i]; checked && v.Kind != "server" && v.Workload == g.Workload && v.Server == g.Server {
				list = append(list, underResult(r, v))
			}
		}
		s.Blocks = append(s.Blocks, Block{Checks: list})
		if s = s.filled(); len(s.Blocks) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// otherChecks returns the checks that belong to no workload and to no server of the run.
func otherChecks(runs []Run) Section {
	r := runs[0]
	list := checks(r, func(v *verdict.Verdict) bool {
		return v.Workload == "" && (v.Kind != "server" || r.Run.Server(v.Server) == nil)
	})
	return Section{Blocks: []Block{{Checks: list}}}
}

func passedSection(runs []Run) Section {
	t := passed(runs[0])
	return Section{Blocks: []Block{fold(verdict.Count(len(t.Rows), "checks")+" passed", Block{Table: t})}}
}

// overview returns a table with a row for each workload on each server: its worst outcome, how many
// requirements were met, and what it carries.
func overview(r Run) Block {
	t := &Table{Columns: Heads("", "Workload", "Server", "Capacity", "Requirements"), Words: true}
	for _, g := range report.Groups(r.Document) {
		worst, tally := g.Worst(r.Document)
		said := tally.Line()
		if worst == verdict.StatusSkipped && tally.Required+tally.Inconclusive+tally.Warnings == 0 {
			said = "not run"
		}
		var carried []string
		for _, c := range g.Capacities {
			carried = append(carried, c.Holds()+disputed(r, c))
		}
		t.Rows = append(t.Rows,
			append([]Cell{sign(worst)}, Row(r.title(g.Workload), r.title(g.Server), strings.Join(carried, ", "), said)...))
	}
	return Block{Table: t}
}

func met(r Run) *Table {
	t := &Table{Columns: Heads("", "Where", "Met"), Words: true}
	for i := range r.Verdicts {
		if v := &r.Verdicts[i]; v.Spare() != "" {
			c := check(r, v)
			t.Rows = append(t.Rows, []Cell{sign(v.Status()), text(c.Where), text(c.Title + ": " + c.Short[len(c.Short)-1])})
		}
	}
	return t
}
